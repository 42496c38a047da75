"""Outputs (I4): every element is written exactly once, with the value that the program claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from argus.core import algebra
from argus.core.dtype import f32
from argus.core.index import Bin, Cond, Const, Index
from argus.core.index_text import show
from argus.core.ir import Assert, Buffer, Covers, Products, View, WrittenOnce
from argus.core.proof.dataflow.access import Access, Accesses
from argus.core.proof.dataflow.affine import affine_over, at_any_element, coordinate_axes
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.dataflow.separable_index import (
    FragmentIndex,
    Separable,
    distinct_count,
    equal_indices,
)
from argus.core.proof.dataflow.timeline import Step, is_whole
from argus.core.proof.obligation import Obligation, minimisation_order
from argus.core.proof.outputs.covers_claims import CoveredSet, covered_sets, covered_sets_by_place
from argus.core.proof.outputs.injective_tags import undetermined_inputs
from argus.core.proof.outputs.padded_stores import no_padding_obligation
from argus.core.proof.outputs.replicas import replicas
from argus.core.proof.outputs.store_coverage import (
    block_injectivity,
    coverage_obligations,
    disjoint_blocks,
    merged_store,
    table_offset,
)
from argus.core.proof.outputs.stored import is_reduction_store, stored_tensors, stores_in, stores_of
from argus.core.proof.outputs.stored_tiles import coordinates_of, inside_tensor, source_of, store_layout
from argus.core.proof.outputs.turned import from_the_start
from argus.core.proof.values.content import Data, content_error, holds_once, nonempty
from argus.core.proof.values.value_flow import ValueFlow
from argus.core.walk import substitute, topological


def unclaimed_output_obligations(flow: ValueFlow) -> Iterator[Obligation]:
    """I4 of outputs without a claim: no element is written by two threads."""
    claimed = {
        step.stmt.claim.view.buffer
        for step in flow.timeline.steps
        if isinstance(step.stmt, Assert) and isinstance(step.stmt.claim, WrittenOnce)
    }
    for buffer in stored_tensors(flow):
        stores = stores_of(flow, buffer)
        if buffer not in claimed and not any(map(is_reduction_store, stores)):
            yield from _no_double_writes(flow, stores, buffer)


_UNLIKE = "stores under different conditions, in different loops or with different bases are not supported yet"
_ALIKE = (
    "let one `copy`, or several to parts of one tile, store under one condition on blocks and the loop variable; a "
    "tensor that two loops or branches fill can be two tensors, or two launches of a `program`"
)


def _no_double_writes(flow: ValueFlow, stores: Sequence[Access], buffer: Buffer) -> Iterator[Obligation]:
    store = stores[0]
    what = f"no element of `{buffer.name}` is written twice"
    unlike = any(_path_mismatch(flow, way, stores, stores_in(way, buffer)) for way in flow.path_accesses)
    places = None if unlike else merged_store(flow.timeline.kernel, stores, guarded=True)
    if places is None:
        yield Obligation(
            "I4", what, store.step.stmt, algebra.FALSE, store.step.context, unknown=_UNLIKE, instead=_ALIKE
        )
        return
    goal = algebra.TRUE if _one_number(flow, stores, places) else algebra.FALSE
    yield Obligation("I4", what + " within a block", store.step.stmt, goal, store.step.context)
    yield disjoint_blocks(flow, store, places, buffer)


def _one_number(flow: ValueFlow, stores: Sequence[Access], places: Sequence[Separable]) -> bool:
    """Whether a block stores one number to each place."""
    return distinct_count(places) == places[0].table.size or replicas(flow, stores, places)


def written_once_obligations(
    flow: ValueFlow,
    step: Step,
    stmt: Assert,
    claim: WrittenOnce,
    *,
    records: bool = True,
    others: bool = False,
    said: bool = False,
) -> Iterator[Obligation]:
    """The obligations of a claim for the blocks of one control path; coverage counts the other paths that store.

    records: whether the record of what is stored is asked.
    others: elements that the claim excludes may be stored as well. said: the formula of another claim is proved of the
    output, so that its sums need no asserted set.
    """
    buffer = claim.view.buffer
    what = f"each element of `{buffer.name}` is written exactly once"
    if not _is_prefix(claim.view):
        reason = (
            "a claim on part of a tensor other than its first rows and columns is not supported by the verifier yet"
        )
        yield Obligation("I4", f"`{buffer.name}` is written once", stmt, algebra.FALSE, step.context, unknown=reason)
        return
    stores = stores_of(flow, buffer)
    storing = [way for way in flow.path_accesses if stores_in(way, buffer)] or ([flow.accesses] if stores else [])
    if not storing:
        yield Obligation("I4", what, stmt, algebra.FALSE, step.context, help=f"store the result into `{buffer.name}`")
        return
    reason = conditional_claim_error(flow, stmt)
    if not stores and not reason:
        return  # coverage is asked on the control path that stores
    places = (
        None
        if any(map(is_reduction_store, stores))
        else merged_store(flow.timeline.kernel, stores, guarded=True)
        if stores
        else None
    )
    if any(map(is_reduction_store, stores)):
        reason = reason or "a write-once claim on a tensor that is accumulated into"
    reason = reason or ("" if places is not None else _UNLIKE)
    for way in flow.path_accesses:
        reason = reason or _path_mismatch(flow, way, stores, stores_in(way, buffer))
    if places is None or reason:
        other = stores[0].step.stmt if stores else None
        yield Obligation(
            "I4", what, stmt, algebra.FALSE, step.context, unknown=reason, other=other, instead=_advice(reason)
        )
        return
    yield block_injectivity(stores[0], places, what, once=_one_number(flow, stores, places))
    given = [way.timeline.path_condition for way in storing]
    covering = tuple(coverage_obligations(flow, stores[0], places, claim.view, claim.where, given))
    if any(each.unknown for each in covering) and is_whole(claim.view) and claim.where is algebra.TRUE:
        turned = from_the_start(stores[0], places)
        from_end = tuple(coverage_obligations(flow, stores[0], turned, claim.view, claim.where, given))
        if not any(each.unknown for each in from_end):
            places, covering = turned, from_end
    if not any(each.unknown for each in covering) or not _divided_by_symbols(places):
        # Solvers lose minutes on such an order of tiles, which stays unknown either way.
        yield disjoint_blocks(flow, stores[0], places, buffer)
    yield from covering
    if not is_whole(claim.view):
        pairs = zip(claim.view.shape, buffer.shape, strict=True)
        goal = algebra.all_of(algebra.le(extent, whole) for extent, whole in pairs)
        yield Obligation("I4", f"the claimed elements lie in `{buffer.name}`", stmt, goal, premises="assumptions")
    for store in stores:
        assert store.places is not None
        if not others:
            yield from _only_claimed_elements(store, store.places, claim)
        if records:
            yield from _holds_record(flow, store, store.places, claim, said=said)


def _divided_by_symbols(places: Sequence[Separable]) -> bool:
    """Whether quotients, remainders or products by a number that is not constant say where a block stores."""
    return any(
        isinstance(node, Bin) and node.op in ("*", "//", "%") and not isinstance(node.right, Const)
        for node in topological([place.base for place in places])
    )


def _advice(reason: str) -> str:
    return _ALIKE if reason == _UNLIKE else ""


def conditional_claim_error(flow: Flow, stmt: Assert) -> str:
    """Why a claim that only some control paths make is not supported; empty if all make it, or the program does."""
    made = {any(step.stmt is stmt for step in way.timeline.steps) for way in flow.path_accesses}
    return "" if len(made) == 1 else "a conditional claim on a tensor is not supported by the verifier yet"


def _path_mismatch(flow: ValueFlow, way: Accesses, mine: Sequence[Access], stores: Sequence[Access]) -> str:
    """Why the stores of another control path cannot be merged with this one's; empty if they can."""
    if way is flow.accesses or not stores:
        return ""
    one, two = merged_store(flow.timeline.kernel, mine), merged_store(way.timeline.kernel, stores)
    same_places = one is not None and two is not None and len(mine) == len(stores)
    for a, b in zip(one or (), two or (), strict=True) if same_places else ():
        same_places = same_places and a.base is b.base and np.array_equal(a.table, b.table)
    return "" if same_places and mine[0].step.loop is None and _same_ends(mine[0], stores[0]) else _UNLIKE


def _same_ends(one: Access, other: Access) -> bool:
    """Whether the stores of two paths end alike: blocks that are apart on each path alone may overlap otherwise."""
    return one.ends == other.ends


def _only_claimed_elements(store: Access, places: tuple[Separable, ...], claim: WrittenOnce) -> Iterator[Obligation]:
    """Nothing is stored to elements that the claim's `where` excludes."""
    if claim.where is algebra.TRUE:
        return
    at = [algebra.add(place.base, table_offset(axis, place, "")) for axis, place in enumerate(places)]
    inside = [
        each
        for index, extent in zip(at, claim.view.buffer.shape, strict=True)
        for each in (algebra.le(0, index), algebra.lt(index, extent))
    ]
    goal = substitute(claim.where, {}, at)
    yield Obligation(
        "I4",
        f"no element of `{claim.view.buffer.name}` outside the claim is written",
        store.step.stmt,
        goal,
        (*store.step.context, *inside),
        minimise=minimisation_order(goal),
        compared=places[0].table.size,
        help="store only where the claim's `where` holds",
    )


def _holds_record(
    flow: ValueFlow, store: Access, places: tuple[Separable, ...], claim: WrittenOnce, *, said: bool
) -> Iterator[Obligation]:
    """The element stored at an index has the tags that the claim gives for that index."""
    name = store.view.buffer.name
    for piece in flow.written(store.step):
        context = (*store.step.context, piece.guard)
        what = f"each element of `{name}` has the claimed tags"
        if not isinstance(piece.value, Data):
            reason = content_error(piece.value)
            yield Obligation("I4", what, store.step.stmt, algebra.FALSE, context, unknown=reason)
            continue
        yield from _of_one_element(flow, store, piece.value, claim, context)
        for tag, expression in claim.record:
            yield _component_held(flow, store, places, piece.value, tag, expression, context)
        yield from _sum_obligations(flow, store, piece.value, claim, context, said=said)
        for bound in (*piece.value.inside, *piece.value.loose):
            yield no_padding_obligation(store, places, bound, context, claim.view.shape)


def _is_prefix(view: View) -> bool:
    """Whether a view consists of the elements of its tensor below some extents, in the tensor's own coordinates."""
    plain = view.where is algebra.TRUE and view.peer is None and len(view.shape) == len(view.buffer.shape)
    return plain and all(at is algebra.coord(axis) for axis, at in enumerate(view.at))


def _of_one_element(
    flow: ValueFlow, store: Access, value: Data, claim: WrittenOnce, context: tuple[Cond, ...]
) -> Iterator[Obligation]:
    """I2: what is combined in a stored value, by sums or element by element, has one of each claimed name."""
    names = [tag for tag, _ in claim.record if tag in value.record or tag in (value.sets or {})]
    if not names or any(value.form == each.name for each in flow.timeline.kernel.parameters):
        return
    summed = [tag for tag in names if tag not in value.record]
    what = f"all that is combined in an element of `{store.view.buffer.name}` has one {', '.join(names)}"
    reason = f"the stored value is a sum over `{summed[0]}`" if summed else ""
    goal = algebra.FALSE if summed else algebra.TRUE
    compared = sum(value.record[tag].table.size for tag in names if tag in value.record)
    yield Obligation("I2", what, store.step.stmt, goal, context, unknown=reason, compared=compared)


def _component_held(
    flow: ValueFlow,
    store: Access,
    places: tuple[Separable, ...],
    value: Data,
    tag: str,
    expression: Index,
    context: tuple[Cond, ...],
) -> Obligation:
    name = store.view.buffer.name
    what = f"`{tag}` of each element stored in `{name}` is {show(expression)} of its index"
    wanted = flow.fragment_index(expression, places, store.shape)
    if wanted is None:
        reason = "the claim combines symbols and coordinates"
        return Obligation("I4", what, store.step.stmt, algebra.FALSE, context, unknown=reason)
    if tag not in value.record:
        reason = f"the stored value carries no tag `{tag}`"
        return Obligation("I4", what, store.step.stmt, algebra.FALSE, context, unknown=reason)
    goal = equal_indices(value.record[tag], wanted)
    help_text = "the store's layout or tile index differs from the one for which the value's tags were computed"
    return Obligation(
        "I4",
        what,
        store.step.stmt,
        goal,
        context,
        minimise=minimisation_order(goal),
        compared=wanted.table.size,
        help=help_text,
    )


def _sum_obligations(
    flow: ValueFlow, store: Access, value: Data, claim: WrittenOnce, context: tuple[Cond, ...], *, said: bool
) -> Iterator[Obligation]:
    """Each sum in the stored value is over exactly a set that an assertion gives."""
    name = store.view.buffer.name
    note, ambiguous = _rounded(flow, store, value.form), _ambiguous_inputs(flow, store, value, claim)
    before = flow.rounded_before(store)
    note = f"each element of `{name}` is {note}" + (f", rounded on the way: {before}" if before else "")
    note = f"{note}, as far as its claim says: {ambiguous}" if ambiguous else note
    what = f"the content of `{name}` is known"
    open_claim = (name, ambiguous) if ambiguous else None
    yield Obligation("I4", what, store.step.stmt, algebra.TRUE, context, note=note, open_claim=open_claim)
    context = (*context, *nonempty((*value.inside, *value.loose)))
    for counted, count in () if said else value.counts:
        yield _asserted_set(flow, store, counted, count, value.record, context)


def _rounded(flow: Flow, store: Access, form: str) -> str:
    """What is stored, with the type that it is rounded to, if it is a narrower one than f32."""
    dtype = store.view.buffer.dtype
    loaded = any(each.name == form and each.dtype is dtype for each in flow.timeline.kernel.parameters)
    return form if loaded or dtype.family != "float" or dtype.bits >= f32.bits else f"{dtype}({form})"


def _ambiguous_inputs(flow: ValueFlow, store: Access, value: Data, claim: WrittenOnce) -> str:
    """Which inputs' elements the claim does not tell apart; empty if it determines all that the value is made of."""
    name = store.view.buffer.name
    claims = (step.stmt.claim for step in flow.timeline.steps if isinstance(step.stmt, Assert))
    if any(isinstance(other, Products) and other.view.buffer.name == name for other in claims):
        return ""  # that claim names the elements themselves
    summed = {*(counted for counted, _ in value.counts), *value.scales}
    summed |= {each.of.name for each in _covers(flow)}
    names = {tag for tag, _ in claim.record} | summed
    return undetermined_inputs(
        flow.timeline.kernel, flow.prover, flow.timeline.assumptions, store.view.buffer, names, flow.launch_records
    )


def _covers(flow: ValueFlow) -> Iterator[Covers]:
    for step in flow.timeline.steps:
        if isinstance(step.stmt, Assert) and isinstance(step.stmt.claim, Covers):
            yield step.stmt.claim


def _asserted_set(
    flow: ValueFlow,
    store: Access,
    counted: str,
    count: Index | None,
    record: Mapping[str, FragmentIndex],
    context: tuple[Cond, ...],
) -> Obligation:
    name, held = store.view.buffer.name, store_layout(store)
    places = affine_over(held) if held is not None and is_whole(source_of(store)) else None
    ending = (
        covered_sets_by_place(flow, counted, store.step, source_of(store), coordinates_of(store, held))
        if places is not None
        else ()
    )
    sets = (*covered_sets(flow, counted, record, held, store.step), *(each for each, _ in ending))
    reason = "" if sets else f"no `assert_covers` is about the sum over `{counted}` stored in `{name}`"
    if count is None:
        reason = f"threads hold different parts of the sum over `{counted}`"
    goal = algebra.FALSE if count is None else algebra.any_of(_is_of(count, each) for each in sets)
    differs = held is not None and coordinate_axes(goal)
    return Obligation(
        "I3",
        f"the sum over `{counted}` stored in `{name}` is over an asserted set",
        store.step.stmt,
        at_any_element(goal, held) if held is not None else goal,
        (*context, *inside_tensor(store, held)) if differs else context,
        unknown=reason,
        note=f"the `{counted}` summed into an element of `{name}` are {ending[0][1]}" if ending else "",
    )


def _is_of(count: Index, each: CoveredSet) -> Cond:
    return algebra.all_of((each.where, holds_once(count, each.low, each.high)))
