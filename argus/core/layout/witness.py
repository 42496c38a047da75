"""`Answer`, the result of a predicate, and the counterexamples that it may carry."""

from __future__ import annotations

from typing import Union

from attrs import frozen


@frozen
class Collision:
    """Two indices with the same image; `second` is the smallest index with the image of an earlier one, `first`."""

    first: int
    second: int
    image: int


@frozen
class Missed:
    """The smallest value that is not an image."""

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
    """The different sizes of two functions."""

    left: int
    right: int


@frozen
class Shared:
    """left(i) = right(j) = value, not 0; `i` is the smallest such index, and `j` the smallest for that value."""

    i: int
    j: int
    value: int


@frozen
class Refusal:
    """Why an operation has no exact result: the error code and, where values disagree, the index and both values."""

    code: str
    index: int | None
    expected: int | None
    found: int | None


Witness = Union[Collision, Missed, Outside, Disagreement, Sizes, Shared, Refusal]


@frozen
class Answer:
    """The result of a predicate, usable as a bool. reason: a sentence. witness: of a false answer; None if true."""

    holds: bool
    reason: str
    witness: Witness | None = None

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        return f"{'yes' if self.holds else 'no'}: {self.reason}"
