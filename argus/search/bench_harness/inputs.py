"""Generates unpredictable inputs: normal numbers, and adversarial contents that defeat shortcuts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import define, field, frozen

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]
Sizes = Mapping[str, int]
_DRAWN = 4_194_301
"""Size of the pool of normal numbers for a tensor; a prime, so that rows of a larger tensor differ."""
_DIRECTLY = 1 << 18
"""Largest number of elements for which each element is drawn independently."""
_EXPONENTS = 20
UNSIGNED: Mapping[int, type[np.unsignedinteger[Any]]] = {1: np.uint8, 2: np.uint16, 4: np.uint32}
MOST_HOSTILE = 3
"""Most inputs for which adversarial contents are generated."""


@frozen(eq=False)
class Case:
    """Inputs of one call. arrays: by name, in the tensors' types.

    statistical: normal numbers, for which the error statistics are known. hostile: otherwise the kind of contents.
    """

    sizes: Sizes
    arrays: Mapping[str, Array]
    statistical: bool = False
    hostile: str = ""

    @property
    def at(self) -> str:
        """The sizes, for messages."""
        return ", ".join(f"{name}={extent}" for name, extent in self.sizes.items())


@define(slots=False)
class RandomInputs:
    """Random inputs from a seed. constant: return the same ones each time."""

    seed: int
    constant: bool = False
    drawn: int = 0
    _pools: dict[np.dtype[Any], Array] = field(factory=dict[np.dtype[Any], Array])

    def generator(self) -> np.random.Generator:
        """A fresh generator for each call."""
        self.drawn += 1
        return np.random.default_rng([self.seed, self.drawn])

    def normal(self, shapes: Sequence[tuple[tuple[int, ...], np.dtype[Any]]]) -> list[Array]:
        """Normal numbers; large tensors are windows of a pool at a random offset, with random signs per row."""
        if self.constant:
            return normal_arrays(np.random.default_rng(0), shapes)
        if max((prod(shape) for shape, _ in shapes), default=0) <= _DIRECTLY:
            return normal_arrays(self.generator(), shapes)
        generator = self.generator()
        return [self._piece(generator, shape, dtype) for shape, dtype in shapes]

    def _piece(self, generator: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        unsigned = UNSIGNED[dtype.itemsize]
        start = int(generator.integers(0, _DRAWN))
        found = np.resize(np.roll(self._pool(dtype), start), _in_rows(shape)).view(unsigned)
        sign = unsigned(8 * dtype.itemsize - 1)
        found ^= generator.integers(0, 2, (len(found), 1), unsigned) << sign
        return found.view(dtype).reshape(shape)

    def _pool(self, dtype: np.dtype[Any]) -> Array:
        if dtype not in self._pools:
            self._pools[dtype] = self.generator().standard_normal(_DRAWN, np.float32).astype(dtype)
        return self._pools[dtype]


def normal_arrays(
    generator: np.random.Generator, shapes: Sequence[tuple[tuple[int, ...], np.dtype[Any]]]
) -> list[Array]:
    """Tensors of independently drawn normal numbers."""
    return [generator.standard_normal(shape, np.float32).astype(dtype) for shape, dtype in shapes]


def _in_rows(shape: tuple[int, ...]) -> tuple[int, int]:
    """The shape flattened to (rows, columns); columns are the last axis."""
    columns = shape[-1] if shape else 1
    return prod(shape[:-1]), columns


@frozen(slots=False)
class _Adversary:
    """Generates adversarial contents of one input (`at`); the other inputs stay normal numbers."""

    generator: np.random.Generator
    shapes: tuple[tuple[int, ...], ...]
    at: int

    @cached_property
    def plain(self) -> list[Floats]:
        return [self.generator.standard_normal(_in_rows(shape), np.float32) for shape in self.shapes]

    def _with(self, changed: Floats) -> list[Floats]:
        return [changed if place == self.at else each for place, each in enumerate(self.plain)]

    def zeros_but_few(self) -> list[Floats]:
        """Zeros except in a tenth of the rows, never the first: defeats sampling of a few elements."""
        held = self.plain[self.at]
        kept = self.generator.random(len(held)) < 0.1
        kept[0], kept[-1] = False, True
        changed: Floats = np.where(kept[:, None], held, np.float32(0))
        return self._with(changed)

    def alike_but_one(self) -> list[Floats]:
        """Equal numbers except for one element per row."""
        same = np.ones_like(self.plain[self.at])
        same[np.arange(len(same)), self._places()] = 3
        return self._with(same)

    def one_hot(self) -> list[Floats]:
        """Each row selects a column of another operand; results are exact."""
        picked = np.zeros_like(self.plain[self.at])
        picked[np.arange(len(picked)), self._places()] = 1
        return self._with(picked)

    def _places(self) -> npt.NDArray[np.int64]:
        held = self.plain[self.at]
        return self.generator.integers(0, held.shape[1], len(held))

    def huge_range(self) -> list[Floats]:
        """Numbers with random exponents of a wide range."""
        held = self.plain[self.at]
        scales = self.generator.integers(-_EXPONENTS, _EXPONENTS, held.shape)
        return self._with(np.ldexp(held, scales).astype(np.float32))

    def cancelled(self) -> list[Floats]:
        """Large numbers that cancel along rows, leaving a small sum; other inputs repeat their half to match."""
        made = [each.copy() for each in self.plain]
        held = made[self.at]
        columns = held.shape[1]
        half = columns // 2
        held[:, half : 2 * half] = -held[:, :half]
        held[:, : 2 * half] *= 1024
        for place, other in enumerate(made):
            if place != self.at and other.shape[1] == columns:
                other[:, half : 2 * half] = other[:, :half]
                other[:, 0] *= 2
        return made

    def repeated_rows(self) -> list[Floats]:
        """A few distinct rows in random order with random signs."""
        held = self.plain[self.at]
        order = self.generator.integers(0, min(3, len(held)), len(held))
        return self._with(held[order] * self.generator.choice([-1.0, 1.0], (len(held), 1)).astype(np.float32))


_KINDS: Mapping[str, Callable[[_Adversary], list[Floats]]] = {
    "zeros but in few rows": _Adversary.zeros_but_few,
    "equal numbers but one a row": _Adversary.alike_but_one,
    "one-hot rows": _Adversary.one_hot,
    "a huge range": _Adversary.huge_range,
    "cancelling numbers": _Adversary.cancelled,
    "repeated rows": _Adversary.repeated_rows,
}


def adversarial(
    draws: RandomInputs, shapes: Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]], sizes: Sizes, which: Sequence[str]
) -> Iterator[tuple[str, Case]]:
    """(kind, inputs) of adversarial cases. shapes: of all inputs by name. which: inputs to change, one at a time."""
    extents = tuple(shape for shape, _ in shapes.values())
    for name in which:
        for kind, made in _KINDS.items():
            arrays = made(_Adversary(draws.generator(), extents, list(shapes).index(name)))
            pairs = zip(arrays, shapes.items(), strict=True)
            with np.errstate(over="ignore"):
                held = {each: array.astype(dtype).reshape(shape) for array, (each, (shape, dtype)) in pairs}
            kind_of_input = kind if len(which) == 1 else f"{kind} of {name}"
            yield kind_of_input, Case(sizes, held, hostile=kind_of_input)
