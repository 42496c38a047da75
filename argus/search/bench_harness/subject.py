"""What is examined: the tensors that a candidate is given, what they hold, and what is wrong with what it makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.policy.bounds import Bounds
from argus.search.bench_harness.inputs import Case, RandomInputs, Sizes

Array = npt.NDArray[Any]


@frozen
class Tensor:
    """A row-major tensor. read: its contents before a call matter. written: those after it are looked at."""

    name: str
    dtype: np.dtype[Any]
    read: bool
    written: bool


@frozen
class CheckScope:
    """How much of outputs is looked at. most_products: that a comparison of some rows may make."""

    numbers: bool
    precision: bool
    most_products: int


@frozen
class Mismatch:
    """precise: whether only statistics tell."""

    text: str
    precise: bool


class Subject(Protocol):
    """A problem as its candidates are examined for it, at its own sizes and at others."""

    @property
    def sizes(self) -> Sizes: ...
    @property
    def bounds(self) -> Bounds: ...

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """In the order in which a candidate takes them."""
        ...

    def shapes(self, sizes: Sizes) -> tuple[tuple[int, ...], ...]:
        """Of the tensors, in order."""
        ...

    def normal(self, draws: RandomInputs, sizes: Sizes) -> Case:
        """Normal numbers that nobody can foresee."""
        ...

    def unseen(self, draws: RandomInputs, count: int) -> list[Sizes]:
        """Small sizes that nobody tunes for, so many and a few more."""
        ...

    def adversarial(self, draws: RandomInputs, sizes: Sizes | None) -> Mapping[str, Case]:
        """Inputs that defeat a shortcut, by what they are; small ones unless sizes are given."""
        ...

    def expected(self, case: Case) -> Mapping[str, Array]:
        """The outputs, in their own types."""
        ...

    def complaint(
        self, case: Case, found: Mapping[str, Array], generator: np.random.Generator, looked: CheckScope
    ) -> Mismatch | None:
        """What is wrong with the outputs of a call. Raises ArgusError where that cannot be known."""
        ...
