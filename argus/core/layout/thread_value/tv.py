"""`TV`, a thread-value layout: the map from (thread, value index) to the element of a tile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import prod

from attrs import field, frozen

from argus.core import algebra
from argus.core.index import Index
from argus.core.layout.faults import misplaced
from argus.core.layout.thread_value.facets import Facet, tile_axes
from argus.core.layout.thread_value.modes import AxisMode, axis_modes, layout_from_modes
from argus.core.layout.values import IntArray, Layout


def _as_tuple(tile: Iterable[int]) -> tuple[int, ...]:
    return tuple(tile)


@frozen
class TV:
    """A thread-value layout: the tile element that each thread holds in each of its values.

    `threads(t) + values(v)` is the element's number in the tile, first axis fastest. Threads count from the
    agent's first thread. A stride of 0 in `threads` is replication. projection: for a layout made by `axis` or
    `partial`, the relation of its axes to the original tile; it does not affect which thread holds which element, and
    equality ignores it.
    """

    threads: Layout
    values: Layout
    tile: tuple[int, ...] = field(converter=_as_tuple)
    projection: tuple[Facet, ...] | None = field(default=None, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        last = self.threads.cosize() + self.values.cosize() - 2
        negative = [(s - 1) * d for layout in (self.threads, self.values) for s, d in layout.flat_modes if d < 0]
        if last >= prod(self.tile) or any(negative):
            reached = sum(negative) if any(negative) else last
            raise misplaced(
                f"thread-value layout {self} reaches element {reached} of a tile of {prod(self.tile)}",
                "make the tile larger, or the strides such that all elements lie in it",
            )

    @property
    def facets(self) -> tuple[Facet, ...]:
        """For each axis, its relation to the tile that this one was projected from."""
        return tile_axes(self.tile) if self.projection is None else self.projection

    def axis(self, *axes: int) -> TV:
        """The projection onto these axes: the layout of a row, a column or (no axes) a scalar.

        All threads that hold an element of a row hold the row's projected element. Raises ValueError for invalid axes.
        """
        if list(axes) != sorted(set(axes)) or not all(0 <= axis < len(self.tile) for axis in axes):
            raise ValueError(f"a fragment of {self.tile} has no axes {axes}")
        tile = tuple(self.tile[axis] for axis in axes)
        weights = dict(zip(axes, _weights(tile), strict=True))
        return self._project(weights, tile, tuple(self.facets[axis] for axis in axes))

    def partial(self, axis: int, within: int = 1) -> TV:
        """The layout after each group of `within` consecutive threads has reduced its elements along an axis.

        The axis then numbers the groups that hold different partial results; it is dropped if there is only one. All
        threads of a group hold its result. Raises ValueError for an invalid axis or groups that split a mode unevenly.
        """
        others = [other for other in range(len(self.tile)) if other != axis]
        if len(others) == len(self.tile):
            raise ValueError(f"a fragment of {self.tile} has no axis {axis}")
        moves = [
            rest
            for move in axis_modes(self.threads, self.tile)
            if move.axis == axis and (rest := _across_groups(move, within)) is not None
        ]
        if not moves:
            return self.axis(*others)
        ascending = sorted(moves, key=lambda move: move.step)
        groups = prod(move.extent for move in moves)
        tile = tuple(groups if at == axis else extent for at, extent in enumerate(self.tile))
        weights = dict(enumerate(_weights(tile)))
        facets = list(self.facets)
        facets[axis] = facets[axis].select_digits(tuple((move.step, move.extent) for move in ascending))
        numbers = _weights(tuple(move.extent for move in ascending))
        steps = {move.above: number for move, number in zip(ascending, numbers, strict=True)}
        return self._project(weights, tile, tuple(facets), axis, steps)

    def _project(
        self,
        weights: Mapping[int, int],
        tile: tuple[int, ...],
        facets: tuple[Facet, ...],
        folded: int | None = None,
        groups: Mapping[int, int] | None = None,
    ) -> TV:
        """The layout over the axes with a weight; along the reduced axis `folded`, only the group numbers remain."""
        threads: list[tuple[int, int]] = []
        for move in axis_modes(self.threads, self.tile):
            if move.axis is None or move.axis not in weights:
                threads.append((move.extent, 0))
            elif folded is None or move.axis != folded:
                threads.append((move.extent, move.step * weights[move.axis]))
            else:
                threads += _number_groups(move, groups or {}, weights[move.axis])
        values = [
            (move.extent, move.step * weights[move.axis])
            for move in axis_modes(self.values, self.tile)
            if move.axis is not None and move.axis in weights and move.axis != folded
        ]
        return TV(layout_from_modes(threads, self.threads.size()), layout_from_modes(values), tile, facets)

    def tiled(self, *, k: int) -> TV:
        """The fragment of a matrix operand of shape (rows, k of one instruction), repeated along k; the registers of
        successive instructions follow each other.


        Raises ValueError unless `k` is a multiple of the instruction's.
        """
        if len(self.tile) != 2 or k < 1 or k % self.tile[1] != 0:
            raise ValueError(f"a fragment of {self.tile} does not repeat along k up to {k}")
        rows, own = self.tile
        modes = list(self.values.flat_modes)
        last = max((at for at, (_, stride) in enumerate(modes) if stride >= rows), default=len(modes) - 1)
        more = (k // own, rows * own)
        # Instructions along k come before those along the rows, as in a fragment built for the full k.
        modes[last : last + 1] = [more] if modes[last][0] == 1 else [modes[last], more]
        values = Layout(tuple(extent for extent, _ in modes), tuple(stride for _, stride in modes))
        return TV(self.threads, values, (rows, k))

    @property
    def T(self) -> TV:  # noqa: N802 reason: NumPy's name
        """The transpose: the same registers with the axes in reverse order."""
        order = tuple(reversed(range(len(self.tile))))
        tile = tuple(self.tile[axis] for axis in order)
        weights = dict(zip(order, _weights(tile), strict=True))
        return self._project(weights, tile, tuple(self.facets[axis] for axis in order))

    def elements(self) -> IntArray:
        """Element numbers, shape (threads, values)."""
        return self.threads.table()[:, None] + self.values.table()[None, :]

    def coordinates(self) -> tuple[IntArray, ...]:
        """For each axis of the tile, the coordinates of the elements, shape (threads, values)."""
        rest = self.elements()
        axes: list[IntArray] = []
        for extent in self.tile:
            axes.append(rest % extent)
            rest = rest // extent
        return tuple(axes)

    def coordinates_at(self, thread: Index, value: int) -> tuple[Index, ...]:
        """The coordinates of one value of a symbolic thread, one expression per axis.

        If each mode moves along one axis only, as in all layouts that this library builds, no division of the sum is
        needed.
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
        """The axis along which a mode moves, and its step; axis None if the mode wraps across axes."""
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


def _weights(tile: tuple[int, ...]) -> tuple[int, ...]:
    """The element-number stride of each axis, first axis fastest."""
    return tuple(prod(tile[:axis]) for axis in range(len(tile)))


def _across_groups(move: AxisMode, within: int) -> AxisMode | None:
    """The part of a thread mode that moves across groups of `within` threads; None if there is none.

    Raises ValueError if the groups split the mode unevenly.
    """
    if move.above >= within:
        return move
    inside = -(-within // move.above)
    if move.extent <= inside:
        return None
    if within % move.above != 0 or move.extent % inside != 0:
        raise ValueError(f"groups of {within} threads cut {move.extent} threads unevenly")
    return AxisMode(move.axis, move.step * inside, move.extent // inside, move.above * inside)


def _number_groups(move: AxisMode, groups: Mapping[int, int], weight: int) -> list[tuple[int, int]]:
    """The modes of a thread mode along the reduced axis: replication within a group, the group number across groups."""
    start = next((above for above in groups if move.above <= above < move.above * move.extent), None)
    if start is None:
        return [(move.extent, 0)]
    inside = start // move.above
    return [(inside, 0), (move.extent // inside, groups[start] * weight)]
