"""Which inputs a kernel is run on, where random numbers of any sizes would not do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

Array = npt.NDArray[Any]
Sizes = Mapping[str, int]


@frozen(eq=False)
class InputRules:
    """Rules for the inputs of a kernel; without any, sizes are small admissible ones, and all numbers are random.

    constants: inputs that are numbers and not data, with their values. small: without end, small sizes at which the
    reference has a meaning. kinds: of integers, the first one that at the problem's own sizes. integers: tensors of
    integers by name, at sizes, of a kind.
    """

    constants: Mapping[str, float] = field(factory=dict[str, float])
    small: Callable[[np.random.Generator], Iterator[Sizes]] | None = None
    kinds: tuple[str, ...] = ("",)
    integers: Callable[[Sizes, str, np.random.Generator], Mapping[str, Array]] | None = None

    def given(self, sizes: Sizes, kind: str, generator: np.random.Generator) -> Mapping[str, Array]:
        """The tensors of integers, by name."""
        return {} if self.integers is None else self.integers(sizes, kind, generator)

    def arrays(
        self, shapes: Mapping[str, tuple[int, ...]], sizes: Sizes, kind: str, generator: np.random.Generator
    ) -> dict[str, Array]:
        """The contents of inputs by name: normal numbers, but where there are rules."""
        given = self.given(sizes, kind, generator)
        made: dict[str, Array] = {}
        for name, shape in shapes.items():
            values: Array = generator.standard_normal(shape)
            held = np.full(shape, self.constants[name]) if name in self.constants else values
            made[name] = given.get(name, held)
        return made


PLAIN = InputRules()
