"""Coverage of stores (I4): different blocks store to disjoint tiles, and together the tiles cover the tensor."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import prod

import numpy as np

from argus.core import algebra
from argus.core.algebra.integers import linear_terms
from argus.core.index import And, Cmp, Cond, Const, Coord, Held, Index, Read, Sym, Symbol
from argus.core.index_text import show
from argus.core.ir import Buffer, Kernel, View
from argus.core.proof.dataflow.access import Access
from argus.core.proof.dataflow.ended_copies import element_conditions
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.dataflow.separable_index import Separable, distinct_count
from argus.core.proof.dataflow.timeline import Loop
from argus.core.proof.obligation import Obligation, minimisation_order
from argus.core.proof.outputs.segments import Segments, row_segments, tile_segments
from argus.core.proof.outputs.tile_index import TileGrid, coordinate_terms, tile_grid
from argus.core.walk import IntArray, mentions, substitute, symbols


def merged_store(kernel: Kernel, stores: Sequence[Access], *, guarded: bool = False) -> tuple[Separable, ...] | None:
    """The indices of several stores as those of one store of all their elements; None if there is no such form.

    Elements that no thread stores are left out.

    guarded: the stores may be under one condition on block coordinates and the loop, their `step.guard`.
    """
    first = stores[0].places
    loop, guard = stores[0].step.loop, stores[0].step.guard
    if first is None or any(
        s.step.loop is not loop or s.step.guard is not guard or s.step.waves is not None for s in stores
    ):
        return None
    if guard is not algebra.TRUE and not (guarded and _decided_by_tiles(kernel, guard, loop)):
        return None
    if loop is not None and mentions(loop.stmt.start, (Read,)) and row_segments(kernel, loop) is None:
        return None
    tables: list[list[IntArray]] = [[] for _ in first]
    unmasked = stores[0].mask is None
    for store in stores:
        if store.places is None or store.shape[0] != stores[0].shape[0] or (store.mask is None) != unmasked:
            return None
        if store.ends != stores[0].ends:
            return None
        for axis, (place, known) in enumerate(zip(store.places, first, strict=True)):
            if place.base is not known.base:
                return None
            tables[axis].append(_stored_elements(store, place))
    return tuple(
        Separable(place.base, np.concatenate(parts, axis=1)) for place, parts in zip(first, tables, strict=True)
    )


def _stored_elements(store: Access, place: Separable) -> IntArray:
    """The coordinates of the elements that some thread stores."""
    return place.table if store.mask is None else place.table[store.mask][None, :]


def _decided_by_tiles(kernel: Kernel, guard: Cond, loop: Loop | None) -> bool:
    """Whether a condition is one on sizes, block coordinates and the variable of a loop that is not one over rows."""
    names = {*kernel.blocks, *(() if loop is None else (loop.symbol,))}
    known = all(symbol.kind == "size" or symbol in names for symbol in symbols(guard))
    return known and not mentions(guard, (Coord, Held, Read)) and row_segments(kernel, loop) is None


def block_injectivity(store: Access, places: tuple[Separable, ...], what: str, *, once: bool) -> Obligation:
    """The elements of one block go to different indices and fill a box. once: elements at one index are replicas."""
    elements = places[0].table.size
    box = prod(place.high - place.low + 1 for place in places)
    whole = distinct_count(places) == box and (elements == box or once)
    return Obligation(
        "I4",
        what + ", within a block",
        store.step.stmt,
        algebra.TRUE if whole else algebra.FALSE,
        store.step.context,
        compared=elements,
        help="give the store a layout that holds every element of the tile once",
    )


def disjoint_blocks(
    flow: Flow, store: Access, places: tuple[Separable, ...], buffer: Buffer, shared: Collection[Symbol] = ()
) -> Obligation:
    """No two blocks (that agree in the `shared` symbols) store to one element of the tensor."""
    grid = _grid_of(flow, store, places)
    named = {s for place in grid.places for s in symbols(place.base) if s.kind != "size"}
    named |= set() if grid.row is None else {grid.row}
    renamed = [s for s in (*grid.counts, *sorted(named, key=str)) if s not in shared]
    other: dict[Symbol, Index] = {s: algebra.sym(Symbol(f"{s.name}'", s.kind, s.low, s.high)) for s in renamed}
    overlap: list[Cond] = []
    stored: dict[Symbol, Index] = {}
    for axis, (place, extent) in enumerate(zip(grid.places, buffer.shape, strict=True)):
        mine = algebra.add(place.base, table_offset(axis, place, ""))
        theirs = algebra.add(substitute(place.base, other), table_offset(axis, place, "'"))
        overlap += [algebra.eq(mine, theirs), algebra.le(0, mine), algebra.lt(mine, extent)]
        stored[_element(axis)] = mine
    for symbol, count in grid.counts.items():
        overlap += [algebra.lt(algebra.sym(symbol), count)]
        overlap += [algebra.lt(other.get(symbol, algebra.sym(symbol)), substitute(count, other))]
    overlap += [substitute(each, stored) for each in (grid.guard, substitute(grid.guard, other))]
    if grid.row is not None and grid.ragged is not None:
        overlap += [each for names in ({}, other) for each in _in_segment(grid.ragged, grid.row, names)]
    identity = (*grid.counts, *(() if grid.row is None else (grid.row,)))
    return Obligation(
        "I4",
        f"no two blocks write one element of `{buffer.name}`",
        store.step.stmt,
        algebra.all_of(algebra.eq(algebra.sym(symbol), other[symbol]) for symbol in identity if symbol in other),
        tuple(overlap),
        minimise=minimisation_order(algebra.all_of(overlap)),
        compared=places[0].table.size,
        help="every value of every grid coordinate must select another tile",
        premises="assumptions",
    )


def _grid_of(flow: Flow, store: Access, places: tuple[Separable, ...]) -> TileGrid:
    """The grid of the tiles of a store, under the condition that it stores the element of these coordinates."""
    at = [algebra.sym(_element(axis)) for axis in range(len(places))]
    guard = algebra.all_of((store.step.guard, *element_conditions(store.ends, at)))
    return tile_grid(flow.timeline.kernel, places, store.step.loop, guard)


def _element(axis: int) -> Symbol:
    """A coordinate of an element of the tensor."""
    return Symbol(f"element_{axis}", "fresh", 0)


def _in_segment(found: Segments, row: Symbol, names: Mapping[Symbol, Index]) -> tuple[Cond, ...]:
    """A row lies in its block's segment."""
    at = names.get(row, algebra.sym(row))
    number = names.get(found.segment, algebra.sym(found.segment))
    return algebra.le(found.start(number), at), algebra.lt(at, found.start(algebra.add(number, 1)))


def table_offset(axis: int, place: Separable, mark: str) -> Index:
    return algebra.sym(Symbol(f"offset_{axis}{mark}", "fresh", place.low, place.high))


def coverage_obligations(
    flow: Flow,
    store: Access,
    places: tuple[Separable, ...],
    view: View,
    where: Cond = algebra.TRUE,
    ways: Sequence[tuple[Cond, ...]] = ((),),
) -> Iterator[Obligation]:
    """Each claimed element is stored by some block: the one found by dividing its coordinates, or by its segment.

    where: the claimed elements, as a condition on the view's coordinates.
    ways: the path condition of each control path that stores.
    """
    kernel, grid = flow.timeline.kernel, _grid_of(flow, store, places)
    what = f"each element of `{view.buffer.name}` is written by some block"
    hypotheses: list[Cond] = []
    chosen: dict[Symbol, Index] = {}
    for axis, (place, extent) in enumerate(zip(grid.places, view.shape, strict=True)):
        element = algebra.sym(_element(axis))
        hypotheses.append(algebra.lt(element, extent))
        if isinstance(place.base, Const):
            continue
        ragged, base = tile_segments(kernel, place.base, grid.counts)
        if ragged is not None and ragged.segment not in chosen:
            yield _segment_obligation(store, ragged, hypotheses, element)
            hypotheses += _choose_segment(ragged, element, chosen)
            element = algebra.sub(element, ragged.start(chosen[ragged.segment]))
            if isinstance(base, Const):
                continue  # a segment is one tile
        row = grid.row
        blocks = coordinate_terms(base, grid.counts if row is None else {**grid.counts, row: algebra.const(0)})
        if blocks is None or any(block in chosen for block, _ in blocks):
            reason = f"coordinate {axis} of the store is {show(place.base)}, not a sum of grid coordinates of its own"
            yield Obligation("I4", what, store.step.stmt, algebra.FALSE, unknown=reason, instead=_ORDERS)
            return
        rest, above = algebra.sub(element, place.low), 0
        for block, factor in blocks:
            if above % factor != 0:
                rest, above = algebra.mod(rest, above), 0
            number = algebra.floordiv(rest, factor)
            # (x % a) // b without a remainder, where b divides a: subtract the blocks of the coordinate before.
            before = algebra.mul(algebra.floordiv(rest, above), above // factor) if above else algebra.const(0)
            chosen[block] = algebra.sub(number, before)
            above = factor
    elements = [algebra.sym(_element(axis)) for axis in range(len(view.shape))]
    hypotheses.append(substitute(where, {}, elements))
    if grid.ragged is not None and grid.row is not None:
        row = chosen.get(grid.row)
        yield _segment_obligation(store, grid.ragged, hypotheses, row)
        hypotheses += _choose_segment(grid.ragged, algebra.const(0) if row is None else row, chosen)
    chosen.update(_fixed_by(grid, chosen))
    decided = algebra.all_of((grid.guard, grid.translate(algebra.any_of(algebra.all_of(given) for given in ways))))
    blocks_named = {s for s in symbols(decided) if s.kind != "size"} - {_element(axis) for axis in range(len(places))}
    if not blocks_named <= chosen.keys():
        reason = "which blocks store depends on more than the tile coordinates"
        yield Obligation("I4", what, store.step.stmt, algebra.FALSE, unknown=reason)
        return
    goal = algebra.all_of((_stored_by(grid, chosen), substitute(decided, chosen)))
    yield Obligation(
        "I4",
        what,
        store.step.stmt,
        goal,
        tuple(hypotheses),
        minimise=minimisation_order(algebra.all_of((*hypotheses, goal))),
        compared=places[0].table.size,
        help="the grid must have enough tiles, `ceil_div(size, tile)` on each axis, "
        "and each block must store the tile at its own coordinates",
        premises="assumptions",
    )


_ORDERS = (
    "give the grid an axis for each axis of tiles, `m, n = block_id((rows, columns))`, or let "
    "`persistent(..., order=...)` order them: `by_rows`, `by_columns`, `super_tiled(8)`, `curved(16)`; by hand, "
    "quotient and remainder of the block by a count of tiles are understood, and groups of rows, the last of "
    "`minimum(rows - 8 * group, 8)` or all of eight"
)


def _fixed_by(grid: TileGrid, chosen: Mapping[Symbol, Index]) -> Iterator[tuple[Symbol, Index]]:
    """The values that the stores' condition gives to coordinates on which their indices do not depend."""
    for part in grid.guard.parts if isinstance(grid.guard, And) else (grid.guard,):
        if not isinstance(part, Cmp) or part.op != "==":
            continue
        terms, constant = linear_terms(algebra.sub(part.left, part.right))
        free = [(atom, factor) for atom, factor in terms if isinstance(atom, Sym) and atom.symbol in grid.counts]
        if len(free) != 1 or free[0][1] not in (1, -1):
            continue
        ((atom, factor),) = free
        rest = algebra.linear([each for each in terms if each[0] is not atom], constant)
        if atom.symbol not in chosen and atom.symbol not in symbols(rest):
            yield atom.symbol, substitute(algebra.mul(rest, -factor), chosen)


def _segment_obligation(store: Access, found: Segments, hypotheses: Sequence[Cond], row: Index | None) -> Obligation:
    """Every element's row lies between the first and the last start, so that it lies in some segment."""
    ends = () if row is None else (algebra.le(found.begin, row), algebra.lt(row, found.end))
    inside = algebra.all_of(ends)
    return Obligation(
        "I4",
        f"each row lies in one of the segments that start at `{found.starts.name}`",
        store.step.stmt,
        inside,
        tuple(hypotheses),
        unknown="" if row is not None else "the row within a segment is not a coordinate of the stored element",
        minimise=minimisation_order(inside),
        help=f"`promise({found.starts.name}, ascending=True, first=0, last=...)`: the last start is the number of rows",
        premises="assumptions",
    )


def _choose_segment(found: Segments, row: Index, chosen: dict[Symbol, Index]) -> tuple[Cond, ...]:
    """Adds the segment of a row to `chosen` and returns that it contains the row (which has a segment)."""
    number = algebra.sym(Symbol("sequence", "fresh", 0))
    chosen[found.segment] = number
    inside = algebra.lt(algebra.add(number, 1), found.starts.shape[0])
    return inside, algebra.le(found.start(number), row), algebra.lt(row, found.start(algebra.add(number, 1)))


def _stored_by(grid: TileGrid, chosen: dict[Symbol, Index]) -> Cond:
    """The chosen block exists, and its tile contains the element."""
    goals: list[Cond] = []
    for axis, place in enumerate(grid.places):
        element = algebra.sym(_element(axis))
        start = substitute(place.base, chosen)
        goals += [algebra.le(algebra.add(start, place.low), element)]
        goals += [algebra.le(element, algebra.add(start, place.high))]
    for symbol, number in chosen.items():
        if symbol in grid.counts:
            goals += [algebra.le(0, number), algebra.lt(number, substitute(grid.counts[symbol], chosen))]
    goals += [algebra.le(1, count) for symbol, count in grid.counts.items() if symbol not in chosen]
    return algebra.all_of(goals)
