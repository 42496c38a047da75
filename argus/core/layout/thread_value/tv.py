"""Thread-value layouts: which element of a tile each thread holds in each of its values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import prod

from attrs import field, frozen

from argus.core import algebra
from argus.core.index import Index
from argus.core.layout.faults import misplaced
from argus.core.layout.thread_value.facets import Facet, whole
from argus.core.layout.thread_value.modes import AxisMode, axis_modes, layout_of
from argus.core.layout.values import IntArray, Layout


def _numbers(tile: Iterable[int]) -> tuple[int, ...]:
    return tuple(tile)


@frozen
class TV:
    """Which element of a tile each thread holds in each of its values.

    `threads(t) + values(v)` is the element's number in the tile, first axis fastest. Threads count from the
    first of the agent. A stride of 0 among the threads is replication. projection: for a layout made by `axis` or
    `partial`, what its axes are of the tile; it says nothing of who holds what, and layouts that differ in it alone
    are equal.
    """

    threads: Layout
    values: Layout
    tile: tuple[int, ...] = field(converter=_numbers)
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
        """What each axis is of the tile that this one was projected from."""
        return whole(self.tile) if self.projection is None else self.projection

    def axis(self, *axes: int) -> TV:
        """Who needs which coordinate along these axes: the elements of a row, a column or (no axes) one number.

        Threads that hold elements of one row all hold its element. Raises ValueError for axes that are none.
        """
        if list(axes) != sorted(set(axes)) or not all(0 <= axis < len(self.tile) for axis in axes):
            raise ValueError(f"a fragment of {self.tile} has no axes {axes}")
        tile = tuple(self.tile[axis] for axis in axes)
        weights = dict(zip(axes, _weights(tile), strict=True))
        return self._remade(weights, tile, tuple(self.facets[axis] for axis in axes))

    def partial(self, axis: int, within: int = 1) -> TV:
        """Who holds what after each group of `within` consecutive threads has folded its elements along an axis.

        The axis then numbers the groups that hold different parts of it; it is dropped where there is one. Threads of
        a group all hold its result. Raises ValueError for an axis that is none, or groups that cut a mode unevenly.
        """
        others = [other for other in range(len(self.tile)) if other != axis]
        if len(others) == len(self.tile):
            raise ValueError(f"a fragment of {self.tile} has no axis {axis}")
        kept = [
            rest
            for move in axis_modes(self.threads, self.tile)
            if move.axis == axis and (rest := _beyond(move, within)) is not None
        ]
        if not kept:
            return self.axis(*others)
        ascending = sorted(kept, key=lambda move: move.step)
        groups = prod(move.extent for move in kept)
        tile = tuple(groups if at == axis else extent for at, extent in enumerate(self.tile))
        weights = dict(enumerate(_weights(tile)))
        facets = list(self.facets)
        facets[axis] = facets[axis].restricted(tuple((move.step, move.extent) for move in ascending))
        numbers = _weights(tuple(move.extent for move in ascending))
        steps = {move.above: number for move, number in zip(ascending, numbers, strict=True)}
        return self._remade(weights, tile, tuple(facets), axis, steps)

    def _remade(
        self,
        weights: Mapping[int, int],
        tile: tuple[int, ...],
        facets: tuple[Facet, ...],
        folded: int | None = None,
        groups: Mapping[int, int] | None = None,
    ) -> TV:
        """The layout over the axes that have a weight; along `folded`, only what `groups` numbers is left."""
        threads: list[tuple[int, int]] = []
        for move in axis_modes(self.threads, self.tile):
            if move.axis is None or move.axis not in weights:
                threads.append((move.extent, 0))
            elif folded is None or move.axis != folded:
                threads.append((move.extent, move.step * weights[move.axis]))
            else:
                threads += _grouped(move, groups or {}, weights[move.axis])
        values = [
            (move.extent, move.step * weights[move.axis])
            for move in axis_modes(self.values, self.tile)
            if move.axis is not None and move.axis in weights and move.axis != folded
        ]
        return TV(layout_of(threads, self.threads.size()), layout_of(values), tile, facets)

    def tiled(self, *, k: int) -> TV:
        """The fragment of a matrix operand, (rows, its own k), repeated along k: the next executions' registers follow.

        Raises ValueError unless `k` is a multiple of its own.
        """
        if len(self.tile) != 2 or k < 1 or k % self.tile[1] != 0:
            raise ValueError(f"a fragment of {self.tile} does not repeat along k up to {k}")
        rows, own = self.tile
        modes = list(self.values.flat_modes)
        last = max((at for at, (_, stride) in enumerate(modes) if stride >= rows), default=len(modes) - 1)
        more = (k // own, rows * own)
        # Executions along k come before those along the rows, as in a fragment made for all of k.
        modes[last : last + 1] = [more] if modes[last][0] == 1 else [modes[last], more]
        values = Layout(tuple(extent for extent, _ in modes), tuple(stride for _, stride in modes))
        return TV(self.threads, values, (rows, k))

    @property
    def T(self) -> TV:  # noqa: N802 reason: NumPy's name
        """The same registers under the axes in reverse order."""
        order = tuple(reversed(range(len(self.tile))))
        tile = tuple(self.tile[axis] for axis in order)
        weights = dict(zip(order, _weights(tile), strict=True))
        return self._remade(weights, tile, tuple(self.facets[axis] for axis in order))

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


def _weights(tile: tuple[int, ...]) -> tuple[int, ...]:
    """The distance of neighbours along each axis, first axis fastest."""
    return tuple(prod(tile[:axis]) for axis in range(len(tile)))


def _beyond(move: AxisMode, within: int) -> AxisMode | None:
    """What is left of a mode of threads between groups of so many. Raises ValueError if they cut it unevenly."""
    if move.above >= within:
        return move
    inside = -(-within // move.above)
    if move.extent <= inside:
        return None
    if within % move.above != 0 or move.extent % inside != 0:
        raise ValueError(f"groups of {within} threads cut {move.extent} threads unevenly")
    return AxisMode(move.axis, move.step * inside, move.extent // inside, move.above * inside)


def _grouped(move: AxisMode, groups: Mapping[int, int], weight: int) -> list[tuple[int, int]]:
    """The modes of a move along the folded axis: replication within a group, its number between groups."""
    start = next((above for above in groups if move.above <= above < move.above * move.extent), None)
    if start is None:
        return [(move.extent, 0)]
    inside = start // move.above
    return [(inside, 0), (move.extent // inside, groups[start] * weight)]
