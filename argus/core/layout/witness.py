"""What a predicate answers: whether it holds, why, and a counterexample where it does not."""

from __future__ import annotations

from typing import Union

from attrs import frozen


@frozen
class Collision:
    """Two indices of one image; `second` is the smallest whose image an earlier index has, `first` that index."""

    first: int
    second: int
    image: int


@frozen
class Missed:
    """The smallest value that is no image."""

    value: int


@frozen
class Outside:
    """The smallest index whose image is not in the interval."""

    index: int
    image: int


@frozen
class Disagreement:
    """The smallest index at which two functions differ, and both images."""

    index: int
    left: int
    right: int


@frozen
class Sizes:
    """The numbers of elements of two functions that differ in it."""

    left: int
    right: int


@frozen
class Shared:
    """left(i) = right(j) = value other than 0; `i` is the smallest with such a value, `j` the smallest for it."""

    i: int
    j: int
    value: int


@frozen
class Refusal:
    """Why an operation has no exact result: the code, and where values disagree the index and both of them."""

    code: str
    index: int | None
    expected: int | None
    found: int | None


Witness = Union[Collision, Missed, Outside, Disagreement, Sizes, Shared, Refusal]


@frozen
class Answer:
    """True or false as a condition. `reason` is a sentence; a false answer has a witness, a true one None."""

    holds: bool
    reason: str
    witness: Witness | None = None

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        return f"{'yes' if self.holds else 'no'}: {self.reason}"
