"""Interface of a test subject: its tensors, inputs, expected outputs and comparison."""

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
    """A row-major tensor. read: it is an input. written: it is an output."""

    name: str
    dtype: np.dtype[Any]
    read: bool
    written: bool


@frozen
class CheckScope:
    """Extent of the output checks. most_products: limit of multiply-adds of a reference comparison."""

    numbers: bool
    precision: bool
    most_products: int


@frozen
class Mismatch:
    """A failed comparison. precise: whether it was found by error statistics only."""

    text: str
    precise: bool


class Subject(Protocol):
    """A problem as the harness tests it, at its own sizes and at others."""

    @property
    def sizes(self) -> Sizes: ...
    @property
    def bounds(self) -> Bounds: ...

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """In the order of a candidate's parameters."""
        ...

    def shapes(self, sizes: Sizes) -> tuple[tuple[int, ...], ...]:
        """Shapes of the tensors, in order."""
        ...

    def normal(self, draws: RandomInputs, sizes: Sizes) -> Case:
        """Unpredictable normal numbers."""
        ...

    def unseen(self, draws: RandomInputs, count: int) -> list[Sizes]:
        """At least `count` small sizes that are unlikely to be tuned for."""
        ...

    def adversarial(self, draws: RandomInputs, sizes: Sizes | None) -> Mapping[str, Case]:
        """Adversarial inputs by kind, at `sizes`, or at small sizes for None."""
        ...

    def expected(self, case: Case) -> Mapping[str, Array]:
        """The expected outputs, in the tensors' types."""
        ...

    def compare(
        self, case: Case, found: Mapping[str, Array], generator: np.random.Generator, looked: CheckScope
    ) -> Mismatch | None:
        """Check the outputs of a call; None if correct. Raises ArgusError if there is no usable reference."""
        ...
