"""Thread-value layouts: which element of a tile each thread holds in each of its values."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from attrs import field, frozen

from argus.core import algebra
from argus.core.index import Index
from argus.core.layout.faults import misplaced
from argus.core.layout.values import IntArray, Layout


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
        last = self.threads.cosize() + self.values.cosize() - 2
        negative = [(s - 1) * d for layout in (self.threads, self.values) for s, d in layout.flat_modes if d < 0]
        if last >= prod(self.tile) or any(negative):
            reached = sum(negative) if any(negative) else last
            raise misplaced(
                f"thread-value layout {self} reaches element {reached} of a tile of {prod(self.tile)}",
                "make the tile larger, or the strides such that all elements lie in it",
            )

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
        for extent, stride in self.threads.flat_modes:
            digits.append((extent, stride, algebra.mod(algebra.floordiv(thread, below), extent)))
            below *= extent
        rest = value
        for extent, stride in self.values.flat_modes:
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
