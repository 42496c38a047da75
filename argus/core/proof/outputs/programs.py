"""What a launch owes to the others of its program (I34): tensors whole before they are read, parts added up once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.check import read_terms
from argus.core.index import Cond, Const, Index, Symbol
from argus.core.ir import Assert, Buffer, Copy, Covers, Kernel, Let, Map, Stmt, walk, whole
from argus.core.ir.element_walk import gets
from argus.core.proof.dataflow.access import Access
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.dataflow.separable_index import Separable, symbolic_parts
from argus.core.proof.dataflow.timeline import Step
from argus.core.proof.obligation import Obligation, minimisation_order
from argus.core.proof.outputs.segments import ragged
from argus.core.proof.outputs.store_coverage import apart_between, apart_within, reaches_all, together
from argus.core.proof.outputs.tile_index import raster
from argus.core.proof.outputs.writes import adds, not_padding, stored, stores_of
from argus.core.proof.sync.interlaunch import claimed_whole, crossed, left
from argus.core.proof.values.content import Crossed, Data, Left, Number, Top, some_element, why_not
from argus.core.proof.values.multiset_count import Tally
from argus.core.proof.values.recognisers.splits import is_sum
from argus.core.walk import substitute, symbols

_MOST_PARTS = 64


@frozen(eq=False)
class Others:
    """The rest of a program, as one of its launches meets it.

    brought: what the launches before left in its tensors. needed: those of its tensors that a launch after it reads.
    """

    brought: Mapping[Buffer, Left]
    needed: frozenset[Buffer]


ALONE = Others({}, frozenset())


def obligations(flow: Flow, others: Others) -> Iterator[Obligation]:
    """What a launch owes the others."""
    for buffer in stored(flow):
        stores = stores_of(flow, buffer)
        if any(map(adds, stores)):
            yield from _added(flow, stores, buffer, others)
            yield from (each for store in stores for each in _not_padding(flow, store))
        elif buffer in others.needed and not claimed_whole(flow, buffer):
            yield from _whole(flow, stores, buffer, frozenset())
    for step in flow.timeline.steps:
        if isinstance(step.stmt, Copy) and step.stmt.source.buffer in others.brought:
            yield _known(step, step.stmt.source.buffer, others.brought[step.stmt.source.buffer])
        if isinstance(step.stmt, Map) and is_sum(step.stmt.elem):
            yield from _apart(flow, step, step.stmt, others)


def of_programs(owed: Iterable[Obligation], others: Others, summed: Collection[Buffer]) -> Iterator[Obligation]:
    """Obligations as I34 has them: coverage by what launches before have summed is a matter of their slices.

    summed: tiles that the kernel's own products are summed in.
    """
    parts = any(isinstance(known, Crossed) and known.sets for known in others.brought.values())
    for each in owed:
        claim = each.stmt.claim if isinstance(each.stmt, Assert) else None
        split = isinstance(claim, Covers) and claim.of.view.buffer not in summed
        yield evolve(each, invariant="I34") if parts and split and each.invariant == "I3" else each


def leaves(flow: Flow, others: Others) -> dict[Buffer, Left]:
    """What the kernel leaves in each tensor that it writes, presuming that its obligations are proved."""
    found: dict[Buffer, Left] = {}
    for buffer in stored(flow):
        stores = stores_of(flow, buffer)
        if len(flow.ways) > 1:
            found[buffer] = Top(f"`{buffer.name}` is stored by blocks that differ in what they do")
        else:
            found[buffer] = _sum(flow, stores, buffer, others) if any(map(adds, stores)) else left(flow, buffer)
    return found


def integers_taken(kernel: Kernel, others: Others) -> Stmt | None:
    """A statement that takes an integer from a tensor which a launch before wrote: no promise is known of it."""
    names = {buffer.name for buffer in others.brought}
    for stmt in walk(kernel.body):
        peeked = isinstance(stmt, Let) and stmt.value.view.buffer in others.brought
        if peeked or any(term.array in names for term in read_terms(stmt)):
            return stmt
    return None


def _known(step: Step, buffer: Buffer, known: Left) -> Obligation:
    """A tensor that is read was written whole: that is proved where it is written, and known of what it holds."""
    what = f"`{buffer.name}` is written whole before it is read"
    reason = why_not(known) if isinstance(known, Top) else ""
    return Obligation("I34", what, step.stmt, algebra.TRUE, step.context, unknown=reason)


def _whole(flow: Flow, stores: tuple[Access, ...], buffer: Buffer, shared: frozenset[Symbol]) -> Iterator[Obligation]:
    """Every element is reached, by one block (of those that agree in the shared symbols)."""
    store = stores[0]
    places = _places(flow, stores)
    what = f"each element of `{buffer.name}` is written before another launch reads it"
    if places is None:
        reason = "a tensor for later launches that is stored in a branch, or to unlike places"
        yield Obligation("I34", what, store.step.stmt, algebra.FALSE, store.step.context, unknown=reason)
        return
    owed = (
        apart_within(store, places, what, once=False),
        apart_between(flow, store, places, buffer, shared),
        *reaches_all(flow, store, places, whole(buffer)),
    )
    for each in owed:
        yield evolve(each, invariant="I34")


def _places(flow: Flow, stores: Sequence[Access]) -> tuple[Separable, ...] | None:
    """Where all blocks store; None where blocks differ in what they do, or each has a sequence of rows of its own."""
    loop = stores[0].step.loop
    if len(flow.ways) > 1 or ragged(flow.timeline.kernel, loop) is not None:
        return None
    return together(flow.timeline.kernel, stores)


def _not_padding(flow: Flow, store: Access) -> Iterator[Obligation]:
    """What is stored, or added, inside a tensor is what the tags say and no padding."""
    for piece in flow.written(store.step):
        if isinstance(piece.value, Data) and store.places is not None:
            for bound in (*piece.value.inside, *piece.value.loose):
                owed = not_padding(
                    store, store.places, bound, (*store.step.context, piece.guard), store.view.buffer.shape
                )
                yield evolve(owed, invariant="I34")


# -- sums of parts -------------------------------------------------------------------------------------------


def _apart(flow: Flow, step: Step, stmt: Map, others: Others) -> Iterator[Obligation]:
    """Sums that are added have no contribution in common, where launches before have summed parts."""
    parts: list[Data] = []
    for access in flow.accesses.of(step)[: len(gets(stmt.elem))]:
        parts += [piece.value for piece in flow.read(access) if isinstance(piece.value, Data)]
    names = {name for part in parts for name in part.sets or {}}
    if not any(isinstance(known, Crossed) and known.sets for known in others.brought.values()):
        return
    for name in sorted(names):
        counts = [part.sets[name].count for part in parts if part.sets and name in part.sets]
        known = [count for count in counts if count is not None]
        if len(counts) < 2 or len(known) < len(counts):
            continue  # an assertion of coverage tells, or nothing is claimed
        inside = tuple(bound for part in parts for bound in part.inside)
        yield _at_most_once(
            f"no `{name}` is in two of the parts that `{stmt.target.buffer.name}` adds up",
            algebra.add(*known),
            step,
            (*step.context, *some_element(inside)),
        )


def _at_most_once(what: str, count: Index, step: Step, context: tuple[Cond, ...]) -> Obligation:
    goal = algebra.le(count, 1)
    return Obligation(
        "I34",
        what,
        step.stmt,
        goal,
        context,
        least=minimisation_order(goal),
        compared=1,
        help="let the parts follow one another: each begins where the one before ends, as `span` gives them",
    )


# -- stores that add -----------------------------------------------------------------------------------------


def _added(flow: Flow, stores: tuple[Access, ...], buffer: Buffer, others: Others) -> Iterator[Obligation]:
    """What is added to begins as zeros or as another part; each slice adds to each element once; parts are apart."""
    store = stores[0]
    places = _places(flow, stores) if all(map(adds, stores)) else None
    shared = frozenset[Symbol]() if places is None else _slices(flow, store, places)
    yield from _whole(flow, stores, buffer, shared)
    yield _begun(store, buffer, others.brought.get(buffer))
    total = _sum(flow, stores, buffer, others)
    what = f"no contribution is added to `{buffer.name}` twice"
    if isinstance(total, Top):
        yield Obligation("I34", what, store.step.stmt, algebra.FALSE, store.step.context, unknown=total.reason)
    if isinstance(total, Crossed):
        coords = [algebra.sym(Symbol(f"element_{axis}", "fresh", 0)) for axis in range(len(buffer.shape))]
        inside = tuple(algebra.lt(at, extent) for at, extent in zip(coords, buffer.shape, strict=True))
        for name, count in total.sets.items():
            spoken = substitute(count, {}, coords)
            once = _at_most_once(f"{what}, by `{name}`", spoken, store.step, inside)
            yield evolve(once, given="assumptions")


def _begun(store: Access, buffer: Buffer, known: Left | None) -> Obligation:
    what = f"`{buffer.name}` is set to zero before anything is added to it"
    reason = why_not(known) if isinstance(known, Top) else ""
    return Obligation(
        "I34",
        what,
        store.step.stmt,
        algebra.FALSE if known is None else algebra.TRUE,
        unknown=reason,
        help=f"launch a kernel that stores zeros in all of `{buffer.name}` before this one",
        given="assumptions",
    )


def _slices(flow: Flow, store: Access, places: tuple[Separable, ...]) -> frozenset[Symbol]:
    """The coordinates of the grid that do not choose where is stored: blocks that differ in them alone add up."""
    grid = raster(flow.timeline.kernel, places, store.step.loop)
    return frozenset(grid.counts) - {s for place in grid.places for s in symbols(place.base)}


def _sum(flow: Flow, stores: tuple[Access, ...], buffer: Buffer, others: Others) -> Left:
    """What is there when all blocks have added their part to what was there."""
    before = others.brought.get(buffer)
    places = _places(flow, stores) if all(map(adds, stores)) else None
    if before is None or isinstance(before, Top) or places is None or len(stores) != 1:
        return Top(f"what `{buffer.name}` holds when it is added to is not known")
    content = flow.written(stores[0].step)
    value = content[0].value
    if len(content) != 1 or content[0].guard is not algebra.TRUE or not content[0].mask.all():
        return Top(f"what is added to `{buffer.name}` differs from case to case")
    if not isinstance(value, Data) or not value.sets:
        return Top(why_not(value) or f"what is added to `{buffer.name}` is no known sum")
    if value.computed:
        return Top(f"what is added to `{buffer.name}` was computed from a sum, as {value.form}")
    found = _of_slices(flow, stores[0], places, value)
    return _joined(before, found, buffer) if isinstance(found, Crossed) else found


def _of_slices(flow: Flow, store: Access, places: tuple[Separable, ...], value: Data) -> Crossed | Top:
    """The parts of all blocks that differ in their slice alone, added up."""
    slices = _slices(flow, store, places)
    grid = raster(flow.timeline.kernel, places, store.step.loop)
    counts = {symbol: grid.counts[symbol] for symbol in slices}
    known = {symbol: count.value for symbol, count in counts.items() if isinstance(count, Const)}
    if len(known) < len(counts) or any(count > _MOST_PARTS for count in known.values()):
        return Top(f"a number of slices that is no number up to {_MOST_PARTS}")
    parts = {name: tally.count for name, tally in (value.sets or {}).items() if tally.alike_everywhere}
    if len(parts) < len(value.sets or {}):
        return Top("elements of one tile are sums over different sets")
    sets: dict[str, Index] = dict.fromkeys(parts, algebra.const(0))
    for chosen in product(*(range(count) for count in known.values())):
        at = {symbol: algebra.const(number) for symbol, number in zip(known, chosen, strict=True)}
        for name, count in parts.items():
            assert count is not None
            sets[name] = algebra.add(sets[name], substitute(count, at))
    if any(slices & symbols(*symbolic_parts(part)) for part in value.record.values()):
        return Top("what slices add to one element carries different tags")
    return crossed(
        flow, store, places, evolve(value, sets={name: Tally((), count) for name, count in sets.items()}, inside=())
    )


def _joined(before: Crossed | Number, found: Crossed, buffer: Buffer) -> Left:
    if isinstance(before, Number):
        return found
    alike = before.record.keys() == found.record.keys() and before.sets.keys() == found.sets.keys()
    if (
        not alike
        or before.inside
        or before.computed
        or before.form != found.form
        or any(before.record[name] is not found.record[name] for name in found.record)
    ):
        return Top(f"what is added to `{buffer.name}` has other tags than what is there")
    sets = {name: algebra.add(count, found.sets[name]) for name, count in before.sets.items()}
    return evolve(found, sets=sets)
