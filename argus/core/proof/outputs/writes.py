"""Outputs (I4): no element written twice, none left out, each by the value that the program claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from argus.core import algebra
from argus.core.index import Cond, Index
from argus.core.ir import Assert, Buffer, Copy, View, WrittenOnce
from argus.core.layout import TV
from argus.core.proof.dataflow.access import Access, Accesses
from argus.core.proof.dataflow.affine import affine, affine_over, at_any_element, coordinate_axes
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.dataflow.separable_index import FragmentIndex, Separable, distinct_count, equal_indices, extremes
from argus.core.proof.dataflow.timeline import Step, is_whole
from argus.core.proof.obligation import Obligation, minimisation_order
from argus.core.proof.outputs.covers_claims import Stated, of_own_places, stated
from argus.core.proof.outputs.store_coverage import apart_between, apart_within, offset, reaches_all, together
from argus.core.proof.values.content import Data, Inside, some_element, why_not
from argus.core.proof.values.multiset_count import Tally
from argus.core.proof.values.recognisers.products import holds_once
from argus.core.proof.values.recognisers.replicas import replicas
from argus.core.proof.values.recognisers.standing import families
from argus.core.proof.values.recognisers.statistics import closed
from argus.core.walk import show, substitute


def unclaimed(flow: Flow) -> Iterator[Obligation]:
    """Outputs that no claim mentions: still, no element may be written by two threads."""
    claimed = {
        step.stmt.claim.view.buffer
        for step in flow.timeline.steps
        if isinstance(step.stmt, Assert) and isinstance(step.stmt.claim, WrittenOnce)
    }
    for buffer in stored(flow):
        stores = stores_of(flow, buffer)
        if buffer not in claimed and not any(map(adds, stores)):
            yield from _apart(flow, stores, buffer)


def stored(flow: Flow) -> tuple[Buffer, ...]:
    """The tensors that the kernel writes."""
    accesses = (access for step in flow.timeline.steps for access in flow.accesses.of(step))
    written = (a.view.buffer for a in accesses if a.mode == "write" and a.view.buffer.space == "global")
    return tuple(dict.fromkeys(written))


def stores_of(flow: Flow, buffer: Buffer) -> tuple[Access, ...]:
    """The writes to a tensor, in program order."""
    return _stores_in(flow.accesses, buffer)


def _stores_in(way: Accesses, buffer: Buffer) -> tuple[Access, ...]:
    return tuple(
        access
        for step in way.timeline.steps
        for access in way.of(step)
        if access.mode == "write" and access.view.buffer is buffer
    )


def adds(store: Access) -> bool:
    """Whether a store adds to what is there."""
    return isinstance(store.step.stmt, Copy) and store.step.stmt.combine is not None


_UNLIKE = "outputs stored in a branch, in different loops or to unlike places are not built yet in the verifier"


def _apart(flow: Flow, stores: Sequence[Access], buffer: Buffer) -> Iterator[Obligation]:
    store = stores[0]
    what = f"no element of `{buffer.name}` is written twice"
    elsewhere = any(_stores_in(way, buffer) for way in flow.ways if way is not flow.accesses)
    places = None if elsewhere else together(flow.timeline.kernel, stores)
    if places is None:
        yield Obligation("I4", what, store.step.stmt, algebra.FALSE, store.step.context, unknown=_UNLIKE)
        return
    distinct = distinct_count(places) == places[0].table.size or replicas(flow, stores, places)
    goal = algebra.TRUE if distinct else algebra.FALSE
    yield Obligation("I4", what + " within a block", store.step.stmt, goal, store.step.context)
    yield apart_between(flow, store, places, buffer)


def written_once(
    flow: Flow, step: Step, stmt: Assert, claim: WrittenOnce, *, padded: bool = False
) -> Iterator[Obligation]:
    """For the blocks of one line; what is said of the whole grid counts in the other lines that blocks run. padded:
    that what is stored is no padding is asked elsewhere.
    """
    buffer = claim.view.buffer
    what = f"each element of `{buffer.name}` is written exactly once"
    if not _from_the_first(claim.view):
        reason = "a claim on part of a tensor that is not its first rows and columns is not built yet in the verifier"
        yield Obligation("I4", f"`{buffer.name}` is written once", stmt, algebra.FALSE, step.context, unknown=reason)
        return
    stores = stores_of(flow, buffer)
    storing = [way for way in flow.ways if _stores_in(way, buffer)] or ([flow.accesses] if stores else [])
    if not storing:
        yield Obligation("I4", what, stmt, algebra.FALSE, step.context, help=f"store the result into `{buffer.name}`")
        return
    reason = claimed_apart(flow, stmt)
    if not stores and not reason:
        return  # that the elements meant are stored by other blocks is asked where they are
    places = None if any(map(adds, stores)) else together(flow.timeline.kernel, stores) if stores else None
    if any(map(adds, stores)):
        reason = reason or "a claim that what is added to is written once"
    reason = reason or ("" if places is not None else _UNLIKE)
    for way in flow.ways:
        reason = reason or _otherwise(flow, way, stores, _stores_in(way, buffer))
    if places is None or reason:
        other = stores[0].step.stmt if stores else None
        yield Obligation("I4", what, stmt, algebra.FALSE, step.context, unknown=reason, other=other)
        return
    yield apart_within(stores[0], places, what, once=replicas(flow, stores, places))
    yield apart_between(flow, stores[0], places, buffer)
    given = [way.timeline.given for way in storing]
    yield from reaches_all(flow, stores[0], places, claim.view, claim.where, given)
    if not is_whole(claim.view):
        pairs = zip(claim.view.shape, buffer.shape, strict=True)
        goal = algebra.all_of(algebra.le(extent, whole) for extent, whole in pairs)
        yield Obligation("I4", f"what is claimed lies in `{buffer.name}`", stmt, goal, given="assumptions")
    for store in stores:
        assert store.places is not None
        yield from _meant(store, store.places, claim)
        yield from _holds_record(flow, store, store.places, claim, padded=padded)


def claimed_apart(flow: Flow, stmt: Assert) -> str:
    """Why a claim is not judged that some blocks do not make; empty if all do."""
    made = all(any(step.stmt is stmt for step in way.timeline.steps) for way in flow.ways)
    return "" if made else "a claim on a tensor under a condition is not built yet in the verifier"


def _otherwise(flow: Flow, way: Accesses, mine: Sequence[Access], stores: Sequence[Access]) -> str:
    """What keeps other blocks' way through the kernel from being judged with this one; empty if nothing."""
    if way is flow.accesses or not stores:
        return ""
    one, two = together(flow.timeline.kernel, mine), together(way.timeline.kernel, stores)
    same_places = one is not None and two is not None and len(mine) == len(stores)
    for a, b in zip(one or (), two or (), strict=True) if same_places else ():
        same_places = same_places and a.base is b.base and np.array_equal(a.table, b.table)
    return "" if same_places and mine[0].step.loop is None else _UNLIKE


def _meant(store: Access, places: tuple[Separable, ...], claim: WrittenOnce) -> Iterator[Obligation]:
    """Nothing is stored to elements that the claim says are left alone."""
    if claim.where is algebra.TRUE:
        return
    at = [algebra.add(place.base, offset(axis, place, "")) for axis, place in enumerate(places)]
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
        least=minimisation_order(goal),
        compared=places[0].table.size,
        help="store only where the claim's `where` holds",
    )


def _holds_record(
    flow: Flow, store: Access, places: tuple[Separable, ...], claim: WrittenOnce, *, padded: bool
) -> Iterator[Obligation]:
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
        for bound in () if padded else (*piece.value.inside, *piece.value.loose):
            yield not_padding(store, places, bound, context, claim.view.shape)


def _from_the_first(view: View) -> bool:
    """Whether a view is the elements of its tensor below some extents, under the tensor's own coordinates."""
    plain = view.where is algebra.TRUE and view.peer is None and len(view.shape) == len(view.buffer.shape)
    return plain and all(at is algebra.coord(axis) for axis, at in enumerate(view.at))


def _component_held(
    flow: Flow,
    store: Access,
    places: tuple[Separable, ...],
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
    goal = equal_indices(value.record[tag], wanted)
    help_text = f"the store's layout or tile number is not the one that `{tag}` was computed for"
    return Obligation(
        "I4",
        what,
        store.step.stmt,
        goal,
        context,
        least=minimisation_order(goal),
        compared=wanted.table.size,
        help=help_text,
    )


def _covered(flow: Flow, store: Access, value: Data, context: tuple[Cond, ...]) -> Iterator[Obligation]:
    """Each set that went into what is stored is the very set that an assertion speaks of."""
    name, value = store.view.buffer.name, closed(value)
    told = f"each element of `{name}` is {value.form}"
    yield Obligation("I4", f"what `{name}` holds is known", store.step.stmt, algebra.TRUE, context, tells=told)
    context = (*context, *some_element((*value.inside, *value.loose)))
    for counted, tally in (*(value.sets or {}).items(), *value.closed):
        yield _asserted_set(flow, store, counted, tally, value.record, context)
    if families(value.standing):
        reason = f"what is stored is {value.form}, in units of a maximum"
        yield Obligation(
            "I23", f"`{name}` has no reference left", store.step.stmt, algebra.FALSE, context, unknown=reason
        )
    for cond in value.needs:
        what = f"what is stored in `{name}` comes from rows that have an element"
        edge = _within(store.places or (), store.view.buffer.shape)
        held = held_by(store)
        goal, inside = cond if held is None else at_any_element(cond, held), _elements(store, held)
        yield Obligation("I23", what, store.step.stmt, goal, (*context, *edge, *inside))


def held_by(store: Access) -> TV | None:
    """The layout of the elements that are stored."""
    return store.step.stmt.by if isinstance(store.step.stmt, Copy) else None


def _asserted_set(
    flow: Flow,
    store: Access,
    counted: str,
    tally: Tally,
    record: Mapping[str, FragmentIndex],
    context: tuple[Cond, ...],
) -> Obligation:
    name, held = store.view.buffer.name, held_by(store)
    places = affine_over(held) if held is not None and is_whole(_source(store)) else None
    count = (tally if places is None else tally.prefixed(places)).count
    ending = of_own_places(flow, counted, store.step, _source(store), _at(store, held)) if places is not None else ()
    sets = (*stated(flow, counted, record, held), *(each for each, _ in ending))
    reason = "" if sets else f"no `assert_covers` speaks of the sum over `{counted}` stored in `{name}`"
    if count is None:
        reason = f"threads hold different parts of the sum over `{counted}`"
    goal = algebra.FALSE if count is None else algebra.any_of(_is_of(count, each) for each in sets)
    differs = held is not None and coordinate_axes(goal)
    return Obligation(
        "I3",
        f"the sum over `{counted}` that is stored in `{name}` is of an asserted set",
        store.step.stmt,
        at_any_element(goal, held) if held is not None else goal,
        (*context, *_elements(store, held)) if differs else context,
        unknown=reason,
        tells=f"the `{counted}` summed into an element of `{name}` are {ending[0][1]}" if ending else "",
    )


def _source(store: Access) -> View:
    """The tile that is stored."""
    stmt = store.step.stmt
    assert isinstance(stmt, Copy)
    return stmt.source


def _at(store: Access, held: TV | None) -> tuple[Index | None, ...]:
    """Where elements are stored, by their coordinates in the tile; None along axes where that has no form."""
    found: list[Index | None] = []
    for place in store.places or ():
        own = None if held is None else affine(place.table, held)
        found.append(None if own is None else algebra.add(place.base, own))
    return tuple(found)


def _is_of(count: Index, each: Stated) -> Cond:
    return algebra.all_of((each.where, holds_once(count, each.low, each.high)))


def _elements(store: Access, held: TV | None) -> tuple[Cond, ...]:
    """Of any one element that is stored: that it lies in the tensor."""
    if held is None or store.places is None:
        return ()
    pairs = zip(_at(store, held), store.view.buffer.shape, strict=True)
    return tuple(at_any_element(algebra.lt(at, extent), held) for at, extent in pairs if at is not None)


def not_padding(
    store: Access, places: tuple[Separable, ...], bound: Inside, context: tuple[Cond, ...], extents: Sequence[Index]
) -> Obligation:
    """An element that is stored below these extents is not padding: they imply the value's own bounds."""
    name = store.view.buffer.name
    what = f"no padding is stored in `{name}`"
    for place, extent in zip(places, extents, strict=True):
        if equal_indices(place, bound.coordinate) is algebra.TRUE and extent is bound.extent and not bound.open:
            return Obligation("I4", what, store.step.stmt, algebra.TRUE, context, compared=place.table.size)
    goal = algebra.all_of(bound.of(end) for end in extremes(bound.coordinate))
    edge = () if not isinstance(store.step.stmt, Copy) else _within(places, extents)
    return Obligation("I4", what, store.step.stmt, goal, (*context, *edge), compared=places[0].table.size)


def _within(places: tuple[Separable, ...], extents: Sequence[Index]) -> tuple[Cond, ...]:
    pairs = zip(places, extents, strict=True)
    return tuple(algebra.lt(place.least, extent) for place, extent in pairs)
