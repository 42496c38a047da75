"""Outputs (I4): no element written twice, none left out, each by the value that the program claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

import numpy as np

from argus.core import algebra
from argus.core.index import Cond, Const, Index, Symbol
from argus.core.ir import Assert, Buffer, Copy, Covers, Kernel, WrittenOnce
from argus.core.proof.access import Access, Accesses
from argus.core.proof.content import Data, Inside, some_element, why_not
from argus.core.proof.flow import Flow
from argus.core.proof.obligation import Obligation, sizes_first
from argus.core.proof.products import holds_once
from argus.core.proof.ragged import Ragged, ragged
from argus.core.proof.raster import Raster, coordinates, raster
from argus.core.proof.separate import Sep, different, same
from argus.core.proof.standing import families
from argus.core.proof.tally import Tally
from argus.core.proof.timeline import Step, is_whole
from argus.core.walk import IntArray, show, substitute, symbols


def unclaimed(flow: Flow) -> Iterator[Obligation]:
    """Outputs that no claim mentions: still, no element may be written by two threads."""
    claimed = {
        step.stmt.claim.view.buffer
        for step in flow.timeline.steps
        if isinstance(step.stmt, Assert) and isinstance(step.stmt.claim, WrittenOnce)
    }
    for step in flow.timeline.steps:
        for access in flow.accesses.of(step):
            buffer = access.view.buffer
            if access.mode == "write" and buffer.space == "global" and buffer not in claimed:
                yield from _apart(flow, access, buffer)


def _apart(flow: Flow, store: Access, buffer: Buffer) -> Iterator[Obligation]:
    stores = [
        access
        for step in flow.timeline.steps
        for access in flow.accesses.of(step)
        if access.mode == "write" and access.view.buffer is buffer
    ]
    what = f"no element of `{buffer.name}` is written twice"
    elsewhere = any(_stores_in(way, buffer) for way in flow.ways if way is not flow.accesses)
    alone = store.step.loop is None and store.step.waves is None and not elsewhere
    if len(stores) > 1 or store.places is None or not alone:
        reason = "outputs stored by several statements or in a loop are not built yet in the verifier"
        yield Obligation("I4", what, store.step.stmt, algebra.FALSE, store.step.context, unknown=reason)
        return
    distinct = different(store.places) == store.places[0].table.size
    goal = algebra.TRUE if distinct else algebra.FALSE
    yield Obligation("I4", what + " within a block", store.step.stmt, goal, store.step.context)
    yield _apart_between(flow, store, store.places, buffer)


def written_once(flow: Flow, step: Step, stmt: Assert, claim: WrittenOnce) -> Iterator[Obligation]:
    """For the blocks of one line; what is said of the whole grid counts in the other lines that blocks run."""
    buffer = claim.view.buffer
    what = f"each element of `{buffer.name}` is written exactly once"
    if not is_whole(claim.view):
        reason = "a claim on part of a tensor is not built yet in the verifier"
        yield Obligation("I4", f"`{buffer.name}` is written once", stmt, algebra.FALSE, step.context, unknown=reason)
        return
    stores = _stores_in(flow.accesses, buffer)
    storing = [way for way in flow.ways if _stores_in(way, buffer)] or ([flow.accesses] if stores else [])
    if not storing:
        yield Obligation("I4", what, stmt, algebra.FALSE, step.context, help=f"store the result into `{buffer.name}`")
        return
    if not stores:
        return  # that the elements meant are stored by other blocks is asked where they are
    places = _together(flow.timeline.kernel, stores)
    reason = "" if places is not None else _UNLIKE
    for way in flow.ways:
        reason = reason or _otherwise(flow, way, stmt, stores, _stores_in(way, buffer))
    if places is None or reason:
        yield Obligation("I4", what, stmt, algebra.FALSE, step.context, unknown=reason, other=stores[0].step.stmt)
        return
    yield _apart_within(stores[0], places, what)
    yield _apart_between(flow, stores[0], places, buffer)
    yield from _reaches_all(flow, stores[0], places, claim, [way.timeline.given for way in storing])
    for store in stores:
        assert store.places is not None
        yield from _meant(store, store.places, claim)
        yield from _holds_record(flow, store, store.places, claim)


_UNLIKE = "outputs stored in a branch, in different loops or to unlike places are not built yet in the verifier"


def _stores_in(way: Accesses, buffer: Buffer) -> list[Access]:
    return [
        access
        for step in way.timeline.steps
        for access in way.of(step)
        if access.mode == "write" and access.view.buffer is buffer
    ]


def _otherwise(flow: Flow, way: Accesses, stmt: Assert, mine: Sequence[Access], stores: Sequence[Access]) -> str:
    """What keeps other blocks' way through the kernel from being judged with this one; empty if nothing."""
    if way is flow.accesses:
        return ""
    if all(step.stmt is not stmt for step in way.timeline.steps):
        return "a claim on a tensor under a condition is not built yet in the verifier"
    if not stores:
        return ""
    one, two = _together(way.timeline.kernel, mine), _together(way.timeline.kernel, stores)
    same_places = one is not None and two is not None and len(mine) == len(stores)
    for a, b in zip(one or (), two or (), strict=True) if same_places else ():
        same_places = same_places and a.base is b.base and np.array_equal(a.table, b.table)
    return "" if same_places and mine[0].step.loop is None else _UNLIKE


def _meant(store: Access, places: tuple[Sep, ...], claim: WrittenOnce) -> Iterator[Obligation]:
    """Nothing is stored to elements that the claim says are left alone."""
    if claim.where is algebra.TRUE:
        return
    at = [algebra.add(place.base, _offset(axis, place, "")) for axis, place in enumerate(places)]
    inside = [
        each
        for index, extent in zip(at, claim.view.buffer.shape, strict=True)
        for each in (algebra.le(0, index), algebra.lt(index, extent))
    ]
    goal = substitute(claim.where, {}, at)
    yield Obligation(
        "I4",
        f"elements of `{claim.view.buffer.name}` that the claim leaves out are left alone",
        store.step.stmt,
        goal,
        (*store.step.context, *inside),
        least=sizes_first(goal),
        compared=places[0].table.size,
        help="store only where the claim's `where` holds",
    )


def _together(kernel: Kernel, stores: Sequence[Access]) -> tuple[Sep, ...] | None:
    """The places of all stores as those of one, whose elements are theirs side by side; None if that has no form."""
    first = stores[0].places
    loop = stores[0].step.loop
    if first is None or any(
        s.step.loop is not loop or s.step.guard is not algebra.TRUE or s.step.waves is not None for s in stores
    ):
        return None
    counts_up = loop is None or (loop.stmt.start is algebra.const(0) and loop.stmt.step == 1)
    if not counts_up and ragged(kernel, loop) is None:
        return None
    tables: list[list[IntArray]] = [[] for _ in first]
    for store in stores:
        if store.places is None or store.shape[0] != stores[0].shape[0]:
            return None
        for axis, (place, known) in enumerate(zip(store.places, first, strict=True)):
            if place.base is not known.base:
                return None
            tables[axis].append(place.table)
    return tuple(Sep(place.base, np.concatenate(parts, axis=1)) for place, parts in zip(first, tables, strict=True))


def _apart_within(store: Access, places: tuple[Sep, ...], what: str) -> Obligation:
    """Within one block, elements go to different places and fill a box."""
    elements = places[0].table.size
    box = prod(place.high - place.low + 1 for place in places)
    whole = different(places) == elements == box
    return Obligation(
        "I4",
        what + ", within a block",
        store.step.stmt,
        algebra.TRUE if whole else algebra.FALSE,
        store.step.context,
        compared=elements,
        help="give the store a layout that holds every element of the tile once",
    )


def _apart_between(flow: Flow, store: Access, places: tuple[Sep, ...], buffer: Buffer) -> Obligation:
    """Two different blocks never store to one element of the tensor."""
    grid = raster(flow.timeline.kernel, places, store.step.loop)
    spoken = {s for place in grid.places for s in symbols(place.base) if s.kind != "size"}
    spoken |= set() if grid.ragged is None else {grid.ragged.row}
    other: dict[Symbol, Index] = {
        s: algebra.sym(Symbol(f"{s.name}'", s.kind, s.low, s.high)) for s in (*grid.counts, *sorted(spoken, key=str))
    }
    met: list[Cond] = []
    for axis, (place, extent) in enumerate(zip(grid.places, buffer.shape, strict=True)):
        mine = algebra.add(place.base, _offset(axis, place, ""))
        theirs = algebra.add(substitute(place.base, other), _offset(axis, place, "'"))
        met += [algebra.eq(mine, theirs), algebra.le(0, mine), algebra.lt(mine, extent)]
    for symbol, count in grid.counts.items():
        met += [algebra.lt(algebra.sym(symbol), count), algebra.lt(other[symbol], count)]
    met += [] if grid.ragged is None else [each for names in ({}, other) for each in _in_sequence(grid.ragged, names)]
    told_apart = (*grid.counts, *(() if grid.ragged is None else (grid.ragged.row,)))
    return Obligation(
        "I4",
        f"no two blocks write one element of `{buffer.name}`",
        store.step.stmt,
        algebra.all_of(algebra.eq(algebra.sym(symbol), other[symbol]) for symbol in told_apart),
        tuple(met),
        least=sizes_first(algebra.all_of(met)),
        compared=places[0].table.size,
        help="every coordinate of the grid must choose another tile",
        given="assumptions",
    )


def _in_sequence(found: Ragged, names: Mapping[Symbol, Index]) -> tuple[Cond, ...]:
    """A row lies in its block's sequence."""
    row = names.get(found.row, algebra.sym(found.row))
    number = names.get(found.sequence, algebra.sym(found.sequence))
    return algebra.le(found.start(number), row), algebra.lt(row, found.start(algebra.add(number, 1)))


def _offset(axis: int, place: Sep, mark: str) -> Index:
    return algebra.sym(Symbol(f"offset_{axis}{mark}", "fresh", place.low, place.high))


def _reaches_all(
    flow: Flow, store: Access, places: tuple[Sep, ...], claim: WrittenOnce, ways: Sequence[tuple[Cond, ...]]
) -> Iterator[Obligation]:
    """Each element meant has a block that stores it: the one found by dividing its coordinates, or by its sequence.

    ways: what decides, for each line that stores, that a block runs it.
    """
    buffer = claim.view.buffer
    grid = raster(flow.timeline.kernel, places, store.step.loop)
    what = f"each element of `{buffer.name}` is written by some block"
    hypotheses: list[Cond] = []
    chosen: dict[Symbol, Index] = {}
    for axis, (place, extent) in enumerate(zip(grid.places, buffer.shape, strict=True)):
        element = algebra.sym(Symbol(f"element_{axis}", "fresh", 0))
        hypotheses.append(algebra.lt(element, extent))
        if isinstance(place.base, Const):
            continue
        row = None if grid.ragged is None else grid.ragged.row
        blocks = coordinates(place.base, grid.counts if row is None else {**grid.counts, row: algebra.const(0)})
        if blocks is None or any(block in chosen for block, _ in blocks):
            reason = f"coordinate {axis} of the store is {show(place.base)}, not made of grid coordinates of its own"
            yield Obligation("I4", what, store.step.stmt, algebra.FALSE, unknown=reason)
            return
        rest, above = algebra.sub(element, place.low), 0
        for block, factor in blocks:
            if above % factor != 0:
                rest, above = algebra.mod(rest, above), 0
            number = algebra.floordiv(rest, factor)
            # Less the whole blocks of the coordinate before: (x % a) // b without a remainder, where b divides a.
            before = algebra.mul(algebra.floordiv(rest, above), above // factor) if above else algebra.const(0)
            chosen[block] = algebra.sub(number, before)
            above = factor
    elements = [algebra.sym(Symbol(f"element_{axis}", "fresh", 0)) for axis in range(len(buffer.shape))]
    hypotheses.append(substitute(claim.where, {}, elements))
    if grid.ragged is not None:
        yield from _has_sequence(store, grid.ragged, hypotheses, chosen)
        hypotheses += _sequence_of(grid.ragged, chosen)
    decided = algebra.any_of(algebra.all_of(given) for given in ways)
    blocks_named = {symbol for symbol in symbols(decided) if symbol.kind != "size"}
    if not blocks_named <= chosen.keys():
        reason = "which blocks store depends on more than the coordinates of their tiles"
        yield Obligation("I4", what, store.step.stmt, algebra.FALSE, unknown=reason)
        return
    goal = algebra.all_of((_stored(grid, chosen), substitute(decided, chosen)))
    yield Obligation(
        "I4",
        what,
        store.step.stmt,
        goal,
        tuple(hypotheses),
        least=sizes_first(algebra.all_of((*hypotheses, goal))),
        compared=places[0].table.size,
        help="the grid must count enough tiles, `ceil_div(size, tile)` on each axis, "
        "and a block store the tile of its own coordinates",
        given="assumptions",
    )


def _has_sequence(
    store: Access, found: Ragged, hypotheses: Sequence[Cond], chosen: Mapping[Symbol, Index]
) -> Iterator[Obligation]:
    """Every element's row lies between the first start and the last, so that some sequence has it."""
    row = chosen.get(found.row)
    ends = () if row is None else (algebra.le(found.begin, row), algebra.lt(row, found.end))
    inside = algebra.all_of(ends)
    yield Obligation(
        "I4",
        f"each row lies in one of the sequences that `{found.starts.name}` starts",
        store.step.stmt,
        inside,
        tuple(hypotheses),
        unknown="" if row is not None else "the row of a sequence is no coordinate of what is stored",
        least=sizes_first(inside),
        help=f"`promise({found.starts.name}, ascending=True, first=0, last=...)`: the last start is the number of rows",
        given="assumptions",
    )


def _sequence_of(found: Ragged, chosen: dict[Symbol, Index]) -> tuple[Cond, ...]:
    """The sequence that has the chosen row, and that it does; the row is presumed to have one."""
    row = chosen.get(found.row, algebra.const(0))
    number = algebra.sym(Symbol("sequence", "fresh", 0))
    chosen[found.sequence] = number
    inside = algebra.lt(algebra.add(number, 1), found.starts.shape[0])
    return inside, *_in_sequence(found, {found.row: row, found.sequence: number})


def _stored(grid: Raster, chosen: dict[Symbol, Index]) -> Cond:
    """The chosen block exists, and its tile holds the element."""
    goals: list[Cond] = []
    for axis, place in enumerate(grid.places):
        element = algebra.sym(Symbol(f"element_{axis}", "fresh", 0))
        start = substitute(place.base, chosen)
        goals += [algebra.le(algebra.add(start, place.low), element)]
        goals += [algebra.le(element, algebra.add(start, place.high))]
    for symbol, number in chosen.items():
        if symbol in grid.counts:
            goals += [algebra.le(0, number), algebra.lt(number, grid.counts[symbol])]
    goals += [algebra.le(1, count) for symbol, count in grid.counts.items() if symbol not in chosen]
    return algebra.all_of(goals)


def _holds_record(flow: Flow, store: Access, places: tuple[Sep, ...], claim: WrittenOnce) -> Iterator[Obligation]:
    """What is stored at coordinates carries the record that the claim gives them."""
    name = store.view.buffer.name
    for piece in flow.written(store.step):
        context = (*store.step.context, piece.guard)
        what = f"each element of `{name}` holds what the claim says"
        if not isinstance(piece.value, Data):
            reason = why_not(piece.value)
            yield Obligation("I4", what, store.step.stmt, algebra.FALSE, context, unknown=reason)
            continue
        for tag, expression in claim.record:
            yield _component_held(flow, store, places, piece.value, tag, expression, context)
        yield from _covered(flow, store, piece.value, context)
        for bound in piece.value.inside:
            yield _not_padding(store, places, bound, context)


def _component_held(
    flow: Flow,
    store: Access,
    places: tuple[Sep, ...],
    value: Data,
    tag: str,
    expression: Index,
    context: tuple[Cond, ...],
) -> Obligation:
    name = store.view.buffer.name
    what = f"`{tag}` of each element stored in `{name}` is {show(expression)} of its place"
    wanted = flow.component(expression, places, store.shape)
    if wanted is None:
        reason = "the claim mixes symbols and coordinates"
        return Obligation("I4", what, store.step.stmt, algebra.FALSE, context, unknown=reason)
    if tag not in value.record:
        reason = f"the value stored carries no tag `{tag}`"
        return Obligation("I4", what, store.step.stmt, algebra.FALSE, context, unknown=reason)
    goal = same(value.record[tag], wanted)
    help_text = f"the store's layout or tile number is not the one that `{tag}` was computed for"
    return Obligation(
        "I4", what, store.step.stmt, goal, context, least=sizes_first(goal), compared=wanted.table.size, help=help_text
    )


def _covered(flow: Flow, store: Access, value: Data, context: tuple[Cond, ...]) -> Iterator[Obligation]:
    """Each set that went into what is stored is the very set that an assertion speaks of."""
    name = store.view.buffer.name
    told = f"each element of `{name}` is {value.form}"
    yield Obligation("I4", f"what `{name}` holds is known", store.step.stmt, algebra.TRUE, context, tells=told)
    context = (*context, *some_element(value.inside))
    for counted, tally in (*(value.sets or {}).items(), *value.closed):
        yield _asserted_set(flow, store, counted, tally, context)
    if families(value.standing):
        reason = f"what is stored is {value.form}, in units of a maximum"
        yield Obligation(
            "I23", f"`{name}` has no reference left", store.step.stmt, algebra.FALSE, context, unknown=reason
        )
    for cond in value.needs:
        what = f"what is stored in `{name}` comes from rows that have an element"
        yield Obligation("I23", what, store.step.stmt, cond, (*context, *_within(store.places or (), store)))


def _asserted_set(flow: Flow, store: Access, counted: str, tally: Tally, context: tuple[Cond, ...]) -> Obligation:
    count, name = tally.count, store.view.buffer.name
    sets = tuple(dict.fromkeys(_asserted(flow, counted)))
    reason = "" if sets else f"no `assert_covers` speaks of the sum over `{counted}` stored in `{name}`"
    if count is None:
        reason = f"threads hold different parts of the sum over `{counted}`"
    goals = () if count is None else (holds_once(count, low, high) for low, high in sets)
    return Obligation(
        "I3",
        f"the sum over `{counted}` that is stored in `{name}` is of an asserted set",
        store.step.stmt,
        algebra.any_of(goals),
        context,
        unknown=reason,
    )


def _asserted(flow: Flow, counted: str) -> Iterator[tuple[Index, Index]]:
    """The bounds of each set that an assertion of coverage states of this name, whatever the case."""
    for step in flow.timeline.steps:
        if not isinstance(step.stmt, Assert) or not isinstance(step.stmt.claim, Covers):
            continue
        claim = step.stmt.claim
        own = {step.loop.symbol} if step.loop is not None else set[Symbol]()
        if step.guard is algebra.TRUE and claim.of.name == counted and not own & symbols(claim.low, claim.high):
            yield claim.low, claim.high


def _not_padding(store: Access, places: tuple[Sep, ...], bound: Inside, context: tuple[Cond, ...]) -> Obligation:
    """An element that is stored is not padding: the store's own bounds imply the value's."""
    name = store.view.buffer.name
    what = f"no padding is stored in `{name}`"
    for place, extent in zip(places, store.view.buffer.shape, strict=True):
        if same(place, bound.coordinate) is algebra.TRUE and extent is bound.extent:
            return Obligation("I4", what, store.step.stmt, algebra.TRUE, context, compared=place.table.size)
    goal = algebra.all_of((algebra.le(0, bound.coordinate.least), algebra.lt(bound.coordinate.most, bound.extent)))
    edge = () if not isinstance(store.step.stmt, Copy) else _within(places, store)
    return Obligation("I4", what, store.step.stmt, goal, (*context, *edge), compared=places[0].table.size)


def _within(places: tuple[Sep, ...], store: Access) -> tuple[Cond, ...]:
    pairs = zip(places, store.view.buffer.shape, strict=True)
    return tuple(algebra.lt(place.least, extent) for place, extent in pairs)
