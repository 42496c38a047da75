"""Address computation of views: the memory cell of each (thread, value), for all threads of a block at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import cast

import numpy as np
from attrs import define, field, frozen

from argus.core import algebra
from argus.core.algebra import TRUE, linear
from argus.core.index import Const, Coord, Held, Index, Node, Read, Sum, Sym, Symbol
from argus.core.ir import Buffer, Staged, Stmt, Strided, View
from argus.core.ir.view_ends import BoxEnd
from argus.core.layout import TV
from argus.core.walk import evaluate, mentions, symbols, topological
from argus.interp.memory.cells import BoolArray, IntArray
from argus.interp.violation import not_built

Env = Mapping[Symbol, int]
MISALIGNED, SCATTERED, STRADDLING = 1, 2, 3
_CACHED = 96


def varies(node: Node) -> bool:
    """Whether the value may differ between threads or between values of one thread."""
    return any(
        isinstance(part, Coord | Held) or (isinstance(part, Sym) and part.symbol.kind in ("thread", "wave"))
        for part in topological([node])
    )


@define(eq=False)
class Place:
    """The cells of one side of a copy; arrays are (thread, value).

    address: cell number, 0 for elements outside the buffer. inside: None if all are inside. out_of_bounds: elements
    outside the buffer, if the copy has no edge. vector_faults: (thread, vector), why a vector is not a single access,
    0 if it is.
    """

    address: IntArray
    inside: BoolArray | None = None
    out_of_bounds: BoolArray | None = None
    vector_faults: IntArray | None = None
    cells: dict[tuple[int, int], int] = field(factory=dict[tuple[int, int], int])

    def cell_set(self, first: int, last: int) -> int:
        """The cells of the threads [first, last) as a bit set."""
        found = self.cells.get((first, last))
        if found is None:
            address = self.address[first:last]
            if self.inside is not None:
                address = address[self.inside[first:last]]
            flags = np.zeros(int(address.max(initial=0)) + 1, np.bool_)
            flags[address] = True
            found = int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")
            self.cells[first, last] = found
        return found


@frozen(eq=False)
class _Axis:
    """One axis of a view: `base + shift` (per-thread table plus uniform part) if separable, else the term `mixed`."""

    shift: Index
    base: IntArray | None
    low: int
    high: int
    mixed: Index | None


@frozen
class Access:
    """The instruction's requirements on one side: elements per access, alignment in bytes, and whether it has an edge.

    together: the number of threads that access collectively, in any order. begins: required alignment in bytes of a
    box within a row. end: where a box ends before its last row.
    """

    vector: int = 1
    align: int = 1
    edge: bool = True
    together: int = 1
    begins: int = 1
    end: BoxEnd | None = None


class Locator:
    """Computes the places of one view under one thread-value layout, for given symbol values.

    indirect_axes: the axes whose coordinate is read from memory.
    """

    def __init__(
        self,
        view: View,
        by: TV,
        access: Access,
        stmt: Stmt,
        lanes: Mapping[Symbol, IntArray],
        integers: Mapping[str, IntArray],
    ) -> None:
        self.view, self.by, self.access, self.stmt, self._integers = view, by, access, stmt, integers
        if any(mentions(node, (Held,)) for node in (*view.at, view.where)):
            raise not_built("gather view", stmt)
        self._coordinates = by.coordinates()
        self._lanes = {symbol: lane[: by.threads.size()] for symbol, lane in lanes.items()}
        self._axes = tuple(self._axis(at) for at in view.at)
        whole: list[Node] = [axis.mixed for axis in self._axes if axis.mixed is not None]
        whole += [] if view.where is TRUE else [view.where]
        self._symbols = sorted((s for s in symbols(*whole) if s not in self._lanes), key=lambda s: s.name)
        strides = view.buffer.layout.strides if isinstance(view.buffer.layout, Strided) else ()
        self._scalars: tuple[Index, ...] = (*(axis.shift for axis in self._axes), *view.buffer.shape, *strides)
        self._needed = [(node, sorted(symbols(node), key=lambda s: s.name)) for node in self._scalars]
        self._known: dict[tuple[int, ...], int] = {}
        self._scalar_memo: dict[tuple[int, tuple[int, ...]], int] = {}
        self._places: dict[tuple[int, ...], Place] = {}
        self._table = _shared_table(view.buffer, stmt)
        self.indirect_axes = tuple(
            axis for axis, at in enumerate(view.at) if mentions(at, (Read,)) and not mentions(at, (Coord,))
        )

    def locate(self, env: Env) -> Place:
        """The cells of all threads of the block; `env` holds sizes, block and loop symbols."""
        scalars = tuple(self._number(position, env) for position in range(len(self._scalars)))
        key = (*scalars, *(env[symbol] for symbol in self._symbols))
        place = self._places.get(key)
        if place is None:
            if len(self._places) >= _CACHED:
                del self._places[next(iter(self._places))]
            place = self._places[key] = self._compute(scalars, env)
        return place

    def coordinates(self, env: Env, thread: int, value: int) -> tuple[int, ...]:
        """The buffer coordinates of one element."""
        at = [int(axis[thread, value]) for axis in self._coordinates]
        lanes = {symbol: int(lane[thread, 0]) for symbol, lane in self._lanes.items()}
        return tuple(int(cast(int, evaluate(node, {**env, **lanes}, at, self._integers))) for node in self.view.at)

    def _number(self, position: int, env: Env) -> int:
        node, needed = self._needed[position]
        if isinstance(node, Const):
            return node.value
        key = (position, tuple(env[symbol] for symbol in needed))
        found = self._scalar_memo.get(key)
        if found is None:
            found = self._scalar_memo[key] = int(cast(int, evaluate(node, env, (), self._integers)))
        return found

    def _axis(self, at: Index) -> _Axis:
        terms, constant = (at.terms, at.constant) if isinstance(at, Sum) else (((at, 1),), 0)
        varying = linear([term for term in terms if varies(term[0])], 0)
        shift = linear([term for term in terms if not varies(term[0])], constant)
        if any(symbol not in self._lanes for symbol in symbols(varying)):
            return _Axis(shift, None, 0, 0, varying)
        base = self._evaluate(varying, {})
        return _Axis(shift, base, int(base.min()), int(base.max()), None)

    def _evaluate(self, node: Node, env: Env) -> IntArray:
        value = evaluate(node, {**env, **self._lanes}, self._coordinates, self._integers)
        shape = (self.by.threads.size(), self.by.values.size())
        return cast(IntArray, np.broadcast_to(np.asarray(value), shape))

    def _compute(self, scalars: tuple[int, ...], env: Env) -> Place:
        rank = len(self._axes)
        axes: list[IntArray] = []
        inside: BoolArray | None = None
        for axis, shift, extent in zip(self._axes, scalars[:rank], scalars[rank : 2 * rank], strict=True):
            base = self._evaluate(axis.mixed, env) if axis.mixed is not None else cast(IntArray, axis.base)
            at = base + shift
            axes.append(at)
            if axis.mixed is not None or axis.low + shift < 0 or axis.high + shift >= extent:
                inside = _both(inside, (at >= 0) & (at < extent))
        if self.view.where is not TRUE:
            inside = _both(inside, self._evaluate(self.view.where, env).astype(np.bool_))
        beyond = None if self.access.end is None else self._beyond(self.access.end, env, axes, extents=scalars[rank:])
        if inside is not None and bool(inside.all()):
            inside = None
        address = self._address(axes, scalars, inside)
        out_of_bounds = beyond if inside is None or self.access.edge else ~inside
        if axes and int(axes[-1][0, 0]) * self.view.buffer.dtype.bits // 8 % self.access.begins:
            return Place(address, inside, out_of_bounds, np.full((len(address), 1), MISALIGNED))
        return Place(address, inside, out_of_bounds, self._vector_faults(address, inside))

    def _beyond(self, end: BoxEnd, env: Env, axes: list[IntArray], extents: tuple[int, ...]) -> BoolArray | None:
        """The rows before the end of a box that lie outside its view or tensor, where the copy engine reads all the
        same; None if there are none.
        """
        at = axes[end.axis]
        inside = (at >= 0) & (at < extents[end.axis]) & self._evaluate(self.view.where, env).astype(np.bool_)
        found = self._evaluate(algebra.lt(self.view.at[end.axis], end.stop), env).astype(np.bool_) & ~inside
        return found if found.any() else None

    def _address(self, axes: list[IntArray], scalars: tuple[int, ...], inside: BoolArray | None) -> IntArray:
        rank = len(axes)
        extents = scalars[rank : 2 * rank]
        steps = scalars[2 * rank :] or tuple(prod(extents[:axis]) for axis in range(rank))
        address = np.zeros((self.by.threads.size(), self.by.values.size()), np.int64)
        for at, step in zip(axes, steps, strict=True):
            address += at * step
        if inside is not None:
            address[~inside] = 0
        return address if self._table is None else self._table[address]

    def _vector_faults(self, address: IntArray, inside: BoolArray | None) -> IntArray | None:
        threads, values = address.shape
        if self.access.together > 1:
            return self._collective_faults(address)
        length = self.access.vector if values % self.access.vector == 0 else 1
        runs = address.reshape(threads, values // length, length)
        width = max(1, self.view.buffer.dtype.bits // 8)
        start = runs[:, :, 0] * width + self.view.buffer.align
        faults = np.where(start % self.access.align != 0, MISALIGNED, 0)
        if length != self.access.vector:
            faults = np.full_like(faults, SCATTERED)
        elif length > 1:
            faults[(runs[:, :, 1:] != runs[:, :, :-1] + 1).any(axis=2)] = SCATTERED
        if inside is not None:
            held = inside.reshape(runs.shape)
            faults[~held.all(axis=2)] = 0
            faults[held.any(axis=2) & ~held.all(axis=2)] = STRADDLING
        return faults if faults.any() else None

    def _collective_faults(self, address: IntArray) -> IntArray | None:
        """Faults of collective accesses, (thread, 1): the elements of the threads must fill whole vectors."""
        threads, values = address.shape
        group, length = self.access.together, self.access.vector
        if threads % group != 0 or group * values % length != 0:
            return np.full((threads, 1), SCATTERED)
        runs = np.sort(address.reshape(threads // group, group * values), axis=1).reshape(threads // group, -1, length)
        start = runs[:, :, 0] * max(1, self.view.buffer.dtype.bits // 8) + self.view.buffer.align
        faults = np.where((start % self.access.align != 0).any(axis=1), MISALIGNED, 0)
        faults[(runs[:, :, 1:] != runs[:, :, :-1] + 1).any(axis=(1, 2))] = SCATTERED
        return np.repeat(faults, group)[:, None] if faults.any() else None


def _both(left: BoolArray | None, right: BoolArray) -> BoolArray:
    return right if left is None else left & right


def _shared_table(buffer: Buffer, stmt: Stmt) -> IntArray | None:
    """The cell of each element of a shared buffer; None for a strided tensor."""
    if isinstance(buffer.layout, Strided):
        return None
    if not isinstance(buffer.layout, Staged):
        raise not_built("view of part of a register fragment", stmt)
    return shared_cells(buffer)


def shared_cells(buffer: Buffer) -> IntArray:
    """The cell of each element of a shared buffer, first axis fastest."""
    assert isinstance(buffer.layout, Staged), buffer.name
    table = buffer.layout.layout.table()
    return table if buffer.layout.swizzle is None else buffer.layout.swizzle.images(table)


def is_whole(view: View) -> bool:
    """Whether a view is its whole buffer, with identical coordinates."""
    return (
        len(view.shape) == len(view.at)
        and all(isinstance(at, Coord) and at.axis == axis for axis, at in enumerate(view.at))
        and view.where is TRUE
    )


def registers_holding(layout: TV, wanted: IntArray, stmt: Stmt) -> IntArray:
    """For each thread and wanted element number, the register of that thread that holds the element.

    Raises ArgusError (E501) if another thread holds it.
    """
    own = layout.elements()[: wanted.shape[0]]
    if own.shape == wanted.shape and np.array_equal(own, wanted):
        return np.broadcast_to(np.arange(own.shape[1], dtype=np.int64), own.shape)
    match = own[:, None, :] == wanted[:, :, None] if own.shape[0] == wanted.shape[0] else np.zeros((1, 1, 1), np.bool_)
    if not match.any(axis=2).all():
        raise not_built("element held by another thread", stmt)
    return match.argmax(axis=2).astype(np.int64)


def register_place(view: View, by: TV, stmt: Stmt) -> Place:
    """The registers that hold the elements of `by`; a register's cell is thread times registers plus register."""
    return fragment_place(view, by.coordinates(), stmt)


def lane_place(view: View, by: TV, stmt: Stmt, unit: int) -> Place:
    """The registers, of any lane of the same warp, that hold the elements of `by`; none where `view.where` fails."""
    layout = view.buffer.layout
    if not isinstance(layout, TV) or any(symbols(node) for node in (*view.at, view.where)):
        raise not_built("view of a register fragment that is not fixed", stmt)
    coordinates, shape = by.coordinates(), (by.threads.size(), by.values.size())
    inside = np.broadcast_to(np.asarray(evaluate(view.where, {}, coordinates), np.bool_), shape)
    number, below = np.zeros(shape, np.int64), 1
    for node, extent in zip(view.at, layout.tile, strict=True):
        at = np.where(inside, np.asarray(evaluate(node, {}, coordinates)), 0)
        if bool(((at < 0) | (at >= extent)).any()):
            raise not_built("view beyond a register fragment", stmt)
        number, below = number + at * below, below * extent
    address = np.zeros(shape, np.int64)
    held, registers = layout.elements(), layout.values.size()
    for first in range(0, shape[0], unit):
        lanes = slice(first, first + unit)
        numbers, where = np.unique(held[lanes].reshape(-1), return_index=True)
        found = np.searchsorted(numbers, number[lanes]).clip(0, numbers.size - 1)
        if bool((inside[lanes] & (numbers[found] != number[lanes])).any()):
            raise not_built("element held by another warp", stmt)
        address[lanes] = np.where(inside[lanes], first * registers + where[found], 0)
    return Place(address, None if bool(inside.all()) else inside.copy())


def fragment_place(view: View, coordinates: Sequence[IntArray], stmt: Stmt) -> Place:
    """The registers of a fragment's view that hold its elements at these coordinates, each (thread, value)."""
    layout = view.buffer.layout
    if not isinstance(layout, TV) or view.where is not TRUE or any(symbols(node) for node in view.at):
        raise not_built("view of a register fragment that is not fixed", stmt)
    number = np.zeros(coordinates[0].shape if coordinates else (layout.threads.size(), 1), np.int64)
    below = 1
    for node, extent in zip(view.at, layout.tile, strict=True):
        at = np.broadcast_to(np.asarray(evaluate(node, {}, coordinates)), number.shape)
        if bool(((at < 0) | (at >= extent)).any()):
            raise not_built("view beyond a register fragment", stmt)
        number = number + at * below
        below *= extent
    register = registers_holding(layout, number, stmt)
    thread = np.arange(number.shape[0], dtype=np.int64)[:, None]
    return Place(thread * layout.values.size() + register)
