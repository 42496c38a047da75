"""Obligations between the launches of a program (I34): complete tensors before they are read, split-K sums once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from attrs import evolve

from argus.core import algebra
from argus.core.check import read_terms
from argus.core.index import Cond, Index, Symbol
from argus.core.ir import Assert, Buffer, Copy, Covers, Kernel, Let, Stmt, walk, whole
from argus.core.proof.dataflow.access import Access
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.dataflow.separable_index import Separable
from argus.core.proof.dataflow.timeline import Step
from argus.core.proof.obligation import Obligation, minimisation_order
from argus.core.proof.outputs.claimed_values import claimed_left
from argus.core.proof.outputs.padded_stores import no_padding_obligation
from argus.core.proof.outputs.program_context import ProgramContext
from argus.core.proof.outputs.segments import row_segments
from argus.core.proof.outputs.store_coverage import (
    block_injectivity,
    coverage_obligations,
    disjoint_blocks,
    merged_store,
)
from argus.core.proof.outputs.stored import (
    is_claimed_whole,
    is_reduction_store,
    says_what_was_before,
    stored_tensors,
    stores_of,
)
from argus.core.proof.outputs.tile_index import tile_grid
from argus.core.proof.values.content import Data, TensorContent, TensorData, Top, content_error
from argus.core.proof.values.held.between import Left, value_left
from argus.core.proof.values.held.outputs import adds_in_every_block
from argus.core.proof.values.value_flow import ValueFlow
from argus.core.walk import substitute, symbols

_UNKNOWN = Top("what it held before the addition is not known")


def program_obligations(
    flow: ValueFlow, others: ProgramContext, after: Mapping[Buffer, TensorContent]
) -> Iterator[Obligation]:
    """The obligations of one launch towards the others. after: what it leaves in the tensors that it writes."""
    for buffer in stored_tensors(flow):
        stores = stores_of(flow, buffer)
        if any(map(is_reduction_store, stores)):
            yield from _reduction_obligations(flow, stores, buffer, others, after.get(buffer, _UNKNOWN))
            yield from (each for store in stores for each in _not_padding(flow, store))
        elif buffer in others.read_later and not is_claimed_whole(flow, buffer):
            yield from _completeness_obligations(flow, stores, buffer, frozenset(), alike=buffer in others.followed)
    for step in flow.timeline.steps:
        if isinstance(step.stmt, Copy) and step.stmt.source.buffer in others.before:
            yield _read_obligation(step, step.stmt.source.buffer, others)


def split_reduction_obligations(
    obligations: Iterable[Obligation], others: ProgramContext, summed: Collection[Buffer]
) -> Iterator[Obligation]:
    """The same obligations, where coverage (I3) of a sum that earlier launches computed in parts is reported as I34.

    summed: the accumulators of the kernel's own products.
    """
    parts = any(isinstance(known, TensorData) and known.sets for known in others.before.values())
    for each in obligations:
        claim = each.stmt.claim if isinstance(each.stmt, Assert) else None
        split = isinstance(claim, Covers) and claim.of.view.buffer not in summed
        yield evolve(each, invariant="I34") if parts and split and each.invariant == "I3" else each


def values_after(flow: Flow, others: ProgramContext) -> dict[Buffer, Left | str]:
    """The value of each tensor that is asked for later, likewise; of programs that claim formulas only."""
    if others.values is None:
        return {}
    before, found = others.values, dict[Buffer, Left | str]()
    for buffer in filter(others.keeps_value, stored_tensors(flow)):
        left = value_left(flow, buffer, before, others.renamed)
        whole = isinstance(left, str) and buffer not in others.decided  # a claim leaves out what is rounded
        claimed = claimed_left(flow, buffer, before, others.renamed) if whole else None
        found[buffer] = claimed or left
    return found


def reads_integer_of_program(kernel: Kernel, others: ProgramContext) -> Stmt | None:
    """A statement that reads an integer from a tensor that an earlier launch wrote: no promise holds for it."""
    names = {buffer.name for buffer in others.before}
    for stmt in walk(kernel.body):
        peeked = isinstance(stmt, Let) and stmt.value.view.buffer in others.before
        if peeked or any(term.array in names for term in read_terms(stmt)):
            return stmt
    return None


def _read_obligation(step: Step, buffer: Buffer, others: ProgramContext) -> Obligation:
    """A tensor that is read has known content; that it was written completely is proved at the launch that wrote it."""
    what, known = f"`{buffer.name}` is written completely before it is read", others.before[buffer]
    reason = content_error(known) if isinstance(known, Top) and not others.has_value(buffer) else ""
    return Obligation("I34", what, step.stmt, algebra.TRUE, step.context, unknown=reason)


def _completeness_obligations(
    flow: ValueFlow, stores: tuple[Access, ...], buffer: Buffer, shared: frozenset[Symbol], *, alike: bool = False
) -> Iterator[Obligation]:
    """Every element is written, by one block (among blocks that agree in the shared symbols).

    alike: what is stored is known by the element, so that threads that store one element store one value.
    """
    store = stores[0]
    places = _places(flow, stores)
    what = f"each element of `{buffer.name}` is written before another launch reads it"
    if places is None:
        reason = "a tensor that later launches read, stored in a branch or by stores with different bases"
        yield Obligation("I34", what, store.step.stmt, algebra.FALSE, store.step.context, unknown=reason)
        return
    obligations = (
        block_injectivity(store, places, what, once=alike),
        disjoint_blocks(flow, store, places, buffer, shared),
        *coverage_obligations(flow, store, places, whole(buffer)),
    )
    for each in obligations:
        yield evolve(each, invariant="I34")


def _places(flow: ValueFlow, stores: Sequence[Access]) -> tuple[Separable, ...] | None:
    """Where all blocks store; None if there are several control paths, or blocks store parts of a segment each."""
    loop = stores[0].step.loop
    if any(store.ends for store in stores):
        return None
    if len(flow.path_accesses) > 1 or row_segments(flow.timeline.kernel, loop) is not None:
        return None
    return merged_store(flow.timeline.kernel, stores)


def _not_padding(flow: ValueFlow, store: Access) -> Iterator[Obligation]:
    """No padding is stored, or added, inside a tensor."""
    for piece in flow.written(store.step):
        if isinstance(piece.value, Data) and store.places is not None:
            for bound in (*piece.value.inside, *piece.value.loose):
                padding = no_padding_obligation(
                    store, store.places, bound, (*store.step.context, piece.guard), store.view.buffer.shape
                )
                yield evolve(padding, invariant="I34")


def _at_most_once(what: str, count: Index, step: Step, context: tuple[Cond, ...]) -> Obligation:
    goal = algebra.le(count, 1)
    return Obligation(
        "I34",
        what,
        step.stmt,
        goal,
        context,
        minimise=minimisation_order(goal),
        compared=1,
        help="let the parts be consecutive: each begins where the one before ends, as `span` divides a range",
    )


# -- reduction stores -----------------------------------------------------------------------------------------


def _reduction_obligations(
    flow: ValueFlow, stores: tuple[Access, ...], buffer: Buffer, others: ProgramContext, total: TensorContent
) -> Iterator[Obligation]:
    """The target starts as zeros or a partial sum; each slice adds to each element once; the parts are disjoint."""
    store = stores[0]
    places = _places(flow, stores) if all(map(is_reduction_store, stores)) else None
    shared = frozenset[Symbol]() if places is None else _slices(flow, store, places)
    followed = buffer in others.followed or (others.alone and says_what_was_before(flow, buffer))
    if not followed or all(adds_in_every_block(flow, each) for each in stores):
        yield from _completeness_obligations(flow, stores, buffer, shared)
    if others.alone and says_what_was_before(flow, buffer):
        return
    yield _initialised(store, buffer, others)
    what = f"no contribution is added to `{buffer.name}` twice"
    if isinstance(total, Top) and buffer not in others.followed:
        yield Obligation("I34", what, store.step.stmt, algebra.FALSE, store.step.context, unknown=total.reason)
    if isinstance(total, TensorData):
        coords = [algebra.sym(Symbol(f"element_{axis}", "fresh", 0)) for axis in range(len(buffer.shape))]
        inside = tuple(algebra.lt(at, extent) for at, extent in zip(coords, buffer.shape, strict=True))
        for name, count in total.sets.items():
            at_element = substitute(count, {}, coords)
            once = _at_most_once(f"{what}, by `{name}`", at_element, store.step, inside)
            yield evolve(once, premises="assumptions")


def _initialised(store: Access, buffer: Buffer, others: ProgramContext) -> Obligation:
    what, known = f"`{buffer.name}` is set to zero before anything is added to it", others.before.get(buffer)
    reason = content_error(known) if isinstance(known, Top) and not others.has_value(buffer) else ""
    return Obligation(
        "I34",
        what,
        store.step.stmt,
        algebra.FALSE if known is None else algebra.TRUE,
        unknown=reason,
        help=f"launch a kernel that stores zeros in all of `{buffer.name}` before this one",
        premises="assumptions",
    )


def _slices(flow: ValueFlow, store: Access, places: tuple[Separable, ...]) -> frozenset[Symbol]:
    """The grid coordinates that the stored index does not depend on: blocks that differ only in them add up."""
    grid = tile_grid(flow.timeline.kernel, places, store.step.loop)
    return frozenset(grid.counts) - {s for place in grid.places for s in symbols(place.base)}
