"""Layouts in CuTe's sense, as values: `shape : stride`, swizzles, and thread-value layouts.

A mode tree is an int or a tuple of mode trees. A layout maps a coordinate, or the index of a coordinate
counted first mode fastest, to an integer. Source: [Cecka 2026, CuTe layout representation and algebra].
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Union

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from argus.core import algebra
from argus.core.index import Index

IntTuple = Union[int, tuple["IntTuple", ...]]
IntArray = npt.NDArray[np.int64]


def flatten(tree: IntTuple) -> tuple[int, ...]:
    """The leaves of a mode tree, left to right."""
    return (tree,) if isinstance(tree, int) else tuple(leaf for part in tree for leaf in flatten(part))


def product(tree: IntTuple) -> int:
    return prod(flatten(tree))


def _congruent(a: IntTuple, b: IntTuple) -> bool:
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int)
    return len(a) == len(b) and all(_congruent(x, y) for x, y in zip(a, b, strict=True))


def _text(tree: IntTuple) -> str:
    return str(tree) if isinstance(tree, int) else f"({','.join(_text(part) for part in tree)})"


@frozen
class Layout:
    """`shape : stride`, congruent mode trees; extents are positive. Raises ValueError otherwise."""

    shape: IntTuple
    stride: IntTuple

    def __attrs_post_init__(self) -> None:
        if not _congruent(self.shape, self.stride):
            raise ValueError(f"shape {_text(self.shape)} and stride {_text(self.stride)} are not congruent")
        if any(extent <= 0 for extent in flatten(self.shape)):
            raise ValueError(f"shape {_text(self.shape)} has an extent that is not positive")

    @property
    def modes(self) -> tuple[tuple[int, int], ...]:
        """(extent, stride) of every leaf, first fastest."""
        return tuple(zip(flatten(self.shape), flatten(self.stride), strict=True))

    @property
    def size(self) -> int:
        return product(self.shape)

    @property
    def cosize(self) -> int:
        """One more than the largest image."""
        return 1 + sum((extent - 1) * max(stride, 0) for extent, stride in self.modes)

    def table(self) -> IntArray:
        """The images of 0 .. size-1."""
        images = np.zeros(1, np.int64)
        for extent, stride in self.modes:
            images = (images[None, :] + stride * np.arange(extent, dtype=np.int64)[:, None]).reshape(-1)
        return images

    def __call__(self, index: int) -> int:
        """The image of an index; the last mode extends beyond the size, as in CuTe."""
        total, rest = 0, index
        modes = self.modes
        for extent, stride in modes[:-1]:
            total += rest % extent * stride
            rest //= extent
        return total + rest * modes[-1][1]

    def at(self, index: Index) -> Index:
        """The image of a symbolic index within the size."""
        terms: list[tuple[Index, int]] = []
        below = 1
        modes = self.modes
        for position, (extent, stride) in enumerate(modes):
            rest = algebra.floordiv(index, below)
            digit = rest if position == len(modes) - 1 else algebra.mod(rest, extent)
            terms.append((digit, stride))
            below *= extent
        return algebra.linear(terms, 0)

    def __str__(self) -> str:
        return f"{_text(self.shape)}:{_text(self.stride)}"


def column_major(shape: tuple[int, ...]) -> Layout:
    """Compact, first mode fastest."""
    strides = tuple(prod(shape[:axis]) for axis in range(len(shape)))
    return Layout(shape, strides)


def row_major(shape: tuple[int, ...]) -> Layout:
    """Compact, last mode fastest."""
    strides = tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))
    return Layout(shape, strides)


@frozen
class Swizzle:
    """CuTe's `Sw<bits, base, shift>`: bits [base, base+bits) ^= bits [base+shift, base+shift+bits)."""

    bits: int
    base: int
    shift: int

    def __attrs_post_init__(self) -> None:
        if self.bits < 0 or self.base < 0 or self.shift < self.bits:
            raise ValueError(f"{self}: needs bits >= 0, base >= 0 and shift >= bits")

    @property
    def period(self) -> int:
        """The swizzle permutes each aligned block of this many elements."""
        return 1 << (self.base + self.shift + self.bits)

    def table(self, offsets: IntArray) -> IntArray:
        mask = ((1 << self.bits) - 1) << self.base
        return offsets ^ ((offsets >> self.shift) & mask)

    def at(self, offset: Index) -> Index:
        """The swizzled offset as an expression."""
        if self.bits == 0:
            return offset
        high = algebra.mod(algebra.floordiv(offset, 1 << (self.base + self.shift)), 1 << self.bits)
        return algebra.bit_xor(offset, algebra.mul(high, 1 << self.base))

    def __str__(self) -> str:
        return f"Sw<{self.bits},{self.base},{self.shift}>"


@frozen
class TV:
    """Which element of a tile each thread holds in each of its values.

    `threads(t) + values(v)` is the element's number in the tile, first axis fastest. Threads count from the
    first of the agent. A stride of 0 among the threads is replication.
    """

    threads: Layout
    values: Layout
    tile: tuple[int, ...] = field(converter=tuple)

    def __attrs_post_init__(self) -> None:
        last = self.threads.cosize + self.values.cosize - 2
        if last >= prod(self.tile):
            raise ValueError(f"thread-value layout {self} reaches element {last} of a tile of {prod(self.tile)}")

    def elements(self) -> IntArray:
        """Element numbers, shape (threads, values)."""
        return self.threads.table()[:, None] + self.values.table()[None, :]

    def coordinates(self) -> tuple[IntArray, ...]:
        """Per axis of the tile, the coordinate of each element held, shape (threads, values)."""
        rest = self.elements()
        axes: list[IntArray] = []
        for extent in self.tile:
            axes.append(rest % extent)
            rest = rest // extent
        return tuple(axes)

    def coordinates_at(self, thread: Index, value: int) -> tuple[Index, ...]:
        """The same for one value of a symbolic thread, one expression per axis.

        Modes that move along one axis only (all that we build) need no division of the sum.
        """
        split = list(self._modes_by_axis(thread, value))
        if all(axis is not None for axis, _ in split):
            return tuple(
                algebra.linear([(term, 1) for at, term in split if at == axis], 0) for axis in range(len(self.tile))
            )
        rest = algebra.add(self.threads.at(thread), self.values(value))
        axes: list[Index] = []
        for extent in self.tile:
            axes.append(algebra.mod(rest, extent))
            rest = algebra.floordiv(rest, extent)
        return tuple(axes)

    def _modes_by_axis(self, thread: Index, value: int) -> Iterator[tuple[int | None, Index]]:
        below = 1
        digits: list[tuple[int, int, Index]] = []
        for extent, stride in self.threads.modes:
            digits.append((extent, stride, algebra.mod(algebra.floordiv(thread, below), extent)))
            below *= extent
        rest = value
        for extent, stride in self.values.modes:
            digits.append((extent, stride, algebra.const(rest % extent)))
            rest //= extent
        for extent, stride, digit in digits:
            axis, unit = self._axis_of(extent, stride)
            yield axis, algebra.mul(digit, unit)

    def _axis_of(self, extent: int, stride: int) -> tuple[int | None, int]:
        """The one axis along which a mode moves, and by how much; None if it wraps."""
        if stride == 0 or extent == 1:
            return 0, 0
        below = 1
        for axis, size in enumerate(self.tile):
            if stride % below == 0 and (stride // below) * (extent - 1) < size:
                return axis, stride // below
            below *= size
        return None, 0

    def __str__(self) -> str:
        return f"{self.threads} ; {self.values}"
