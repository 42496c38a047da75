"""What the program itself asserts of tags: products that meet (I1, I2), coverage (I3), outputs (I4), relations (I39)."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import assert_never

import numpy as np
from attrs import evolve

from argus.core import algebra
from argus.core.index import Cond, Const, Index, Sum, Sym, Symbol
from argus.core.ir import (
    Assert,
    Buffer,
    Claim,
    Copy,
    Covers,
    Distinct,
    Equal,
    Mma,
    Order,
    Products,
    Relation,
    TagOf,
    View,
    WrittenOnce,
)
from argus.core.layout import TV
from argus.core.proof.access import Access
from argus.core.proof.content import Bottom, Content, Data, Inside, Top
from argus.core.proof.flow import Flow
from argus.core.proof.obligation import Obligation
from argus.core.proof.products import COUNTED, Multiplication
from argus.core.proof.separate import Sep, same
from argus.core.proof.sums import Accumulator
from argus.core.proof.timeline import Step, is_whole
from argus.core.walk import show, substitute, symbols


def products(flow: Flow, accumulators: tuple[Accumulator, ...]) -> Iterator[Obligation]:
    """I1 and I2 at each matrix instruction: operands that meet agree in every name both carry."""
    for accumulator in accumulators:
        for step in flow.timeline.steps:
            if isinstance(step.stmt, Mma) and step.stmt.target.buffer is accumulator.buffer:
                yield from _meeting(accumulator, step, step.stmt)


def _meeting(accumulator: Accumulator, step: Step, stmt: Mma) -> Iterator[Obligation]:
    a, b = accumulator.operands(step)
    names = f"`{stmt.a.buffer.name}` and `{stmt.b.buffer.name}`"
    assert stmt.atom.mnk is not None
    compared = prod(stmt.tiling.repeat) * stmt.tiling.threads * prod(stmt.atom.mnk)
    for one in a:
        for two in b:
            context = (*step.context, one.guard, two.guard)
            if not isinstance(one.value, Data) or not isinstance(two.value, Data):
                reason = _why(one.value) or _why(two.value)
                yield Obligation("I1", f"{names} meet on equal tags", stmt, algebra.FALSE, context, unknown=reason)
                continue
            for clash in Multiplication(stmt, one.value, two.value).clashes():
                yield Obligation(
                    "I1" if clash.contracted else "I2",
                    f"{names} meet on equal `{clash.name}`",
                    stmt,
                    clash.goal,
                    context,
                    least=_sizes_first(clash.goal),
                    compared=compared,
                    help=_meeting_help(clash.name),
                )
    product = accumulator.product(step)
    if isinstance(product, str):
        yield Obligation("I1", f"the sum of products of {names} has a record", stmt, algebra.FALSE, step.context, unknown=product)


def _meeting_help(name: str) -> str:
    return (
        f"the two operands must bring the same `{name}` to every product: compare the tiles' numbers, the swizzles "
        "on both sides of shared memory, and the fragments' layouts"
    )


def _why(value: Bottom | Top | Data) -> str:
    match value:
        case Top(reason=reason):
            return reason
        case Bottom():
            return "an operand is not written, or still in flight"
        case Data():
            return ""


def _sizes_first(cond: Cond) -> tuple[Index, ...]:
    rank = {"size": 0, "block": 1, "loop": 2}
    ordered = sorted(symbols(cond), key=lambda s: (rank.get(s.kind, 3), s.name))
    return tuple(algebra.sym(symbol) for symbol in ordered)


# -- assertions ----------------------------------------------------------------------------------------------


def asserted(flow: Flow) -> Iterator[Obligation]:
    """The obligations of every assertion in the program."""
    for step in flow.timeline.steps:
        if isinstance(step.stmt, Assert):
            yield from (evolve(each, stated=True) for each in _claim(flow, step, step.stmt, step.stmt.claim))


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
    if len(stores) > 1 or store.places is None or store.step.loop is not None:
        reason = "outputs stored by several statements or in a loop are not built yet in the verifier"
        yield Obligation("I4", what, store.step.stmt, algebra.FALSE, store.step.context, unknown=reason)
        return
    tables = np.stack([place.table.ravel() for place in store.places])
    distinct = np.unique(tables, axis=1).shape[1] == tables.shape[1]
    goal = algebra.TRUE if distinct else algebra.FALSE
    yield Obligation("I4", what + " within a block", store.step.stmt, goal, store.step.context)
    yield _apart_between(flow, store, store.places, buffer)


def _claim(flow: Flow, step: Step, stmt: Assert, claim: Claim) -> Iterator[Obligation]:
    match claim:
        case Covers():
            yield from _covers(flow, step, stmt, claim)
        case WrittenOnce():
            yield from _written_once(flow, step, stmt, claim)
        case Equal(left=left, right=right):
            yield from _equal(flow, step, stmt, left, right)
        case Distinct(components=components):
            yield from _distinct(flow, step, stmt, components)
        case Relation(names=names, cond=cond):
            yield from _relation(flow, step, stmt, names, cond)
        case Order() | Products():
            what = f"`{type(claim).__name__}` holds"
            reason = "this claim is not built yet in the verifier"
            yield Obligation("I39", what, stmt, algebra.FALSE, step.context, unknown=reason)
        case _:
            assert_never(claim)


def _covers(flow: Flow, step: Step, stmt: Assert, claim: Covers) -> Iterator[Obligation]:
    name = claim.of.name
    what = f"`{claim.of.view.buffer.name}` sums each {name} of [{show(claim.low)}, {show(claim.high)}) once"
    for piece in _content_of(flow, step, claim.of.view):
        context = (*step.context, piece.guard)
        if not isinstance(piece.value, Data) or piece.value.sets is None or name not in piece.value.sets:
            reason = _why(piece.value) or f"no set of contributions is known for `{name}`"
            yield Obligation("I3", what, stmt, algebra.FALSE, context, unknown=reason)
            continue
        if claim.where is not algebra.TRUE:
            yield Obligation("I3", what, stmt, algebra.FALSE, context, unknown="`where=` is not built yet in the verifier")
            continue
        x = algebra.sym(COUNTED)
        member = algebra.all_of((algebra.le(claim.low, x), algebra.lt(x, claim.high)))
        goal = algebra.eq(piece.value.sets[name], algebra.pick(member, 1, 0))
        yield Obligation(
            "I3",
            what,
            stmt,
            goal,
            (*context, *_some_element(piece.value.inside)),
            least=_sizes_first(goal),
            compared=int(piece.mask.sum()),
            help=f"follow `{name}` through the loop: its trip count, each tile's number, and how often the sum is fed",
        )


def _some_element(inside: tuple[Inside, ...]) -> tuple[Cond, ...]:
    """The assertion speaks of elements within bounds; at least one is, where its least coordinate is."""
    return tuple(algebra.lt(bound.coordinate.least, bound.extent) for bound in inside)


def _content_of(flow: Flow, step: Step, view: View) -> Content:
    """What a register tile holds when an assertion looks at it."""
    buffer = view.buffer
    if buffer in flow.sums:
        return flow.sums[buffer](step)
    assert isinstance(buffer.layout, TV)
    shape = (buffer.layout.threads.size, buffer.layout.values.size)
    own = np.arange(shape[0] * shape[1], dtype=np.int64).reshape(shape)
    return flow.read(Access(step, view, "read", (Sep(algebra.const(0), own),), shape))


def _component(flow: Flow, step: Step, of: TagOf) -> Sep | str:
    """One component over a whole tile, or why it is not known."""
    if of.view.buffer.space != "register":
        return "assertions on tags of memory are not built yet in the verifier"
    content = _content_of(flow, step, of.view)
    if len(content) != 1 or content[0].guard is not algebra.TRUE or not content[0].mask.all():
        return f"`{of.view.buffer.name}` holds different things in different cases"
    value = content[0].value
    if not isinstance(value, Data):
        return _why(value)
    if of.name not in value.record:
        return f"`{of.view.buffer.name}` carries no tag `{of.name}`"
    if value.inside:
        return f"`{of.view.buffer.name}` holds padding where it lies outside its tensor"
    return value.record[of.name]


def _equal(flow: Flow, step: Step, stmt: Assert, left: TagOf, right: TagOf) -> Iterator[Obligation]:
    what = f"`{left.view.buffer.name}.{left.name}` equals `{right.view.buffer.name}.{right.name}`"
    a, b = _component(flow, step, left), _component(flow, step, right)
    if isinstance(a, str) or isinstance(b, str):
        reason = a if isinstance(a, str) else str(b)
        yield Obligation("I39", what, stmt, algebra.FALSE, step.context, unknown=reason)
        return
    goal = same(a, b)
    yield Obligation("I39", what, stmt, goal, step.context, least=_sizes_first(goal), compared=a.table.size)


def _distinct(flow: Flow, step: Step, stmt: Assert, components: tuple[TagOf, ...]) -> Iterator[Obligation]:
    what = f"no two elements agree in {', '.join(f'`{of.name}`' for of in components)}"
    found = [_component(flow, step, of) for of in components]
    reasons = [each for each in found if isinstance(each, str)]
    if reasons:
        yield Obligation("I39", what, stmt, algebra.FALSE, step.context, unknown=reasons[0])
        return
    tables = np.stack([each.table.ravel() for each in found if isinstance(each, Sep)])
    distinct = np.unique(tables, axis=1).shape[1] == tables.shape[1]
    goal = algebra.TRUE if distinct else algebra.FALSE
    yield Obligation("I39", what, stmt, goal, step.context, compared=tables.shape[1])


def _relation(
    flow: Flow, step: Step, stmt: Assert, names: tuple[tuple[Symbol, TagOf], ...], cond: Cond
) -> Iterator[Obligation]:
    what = f"{show(cond)} for every element"
    bound: dict[Symbol, Sep] = {}
    for symbol, of in names:
        component = _component(flow, step, of)
        if isinstance(component, str):
            yield Obligation("I39", what, stmt, algebra.FALSE, step.context, unknown=component)
            return
        bound[symbol] = component
    tables = np.stack([sep.table.ravel() for sep in bound.values()])
    distinct = np.unique(tables, axis=1)
    cases = [
        substitute(cond, {s: algebra.add(sep.base, int(n)) for (s, sep), n in zip(bound.items(), column, strict=True)})
        for column in distinct.T[:_CASES]
    ]
    reason = "" if distinct.shape[1] <= _CASES else f"more than {_CASES} different elements to compare"
    goal = algebra.all_of(cases)
    yield Obligation(
        "I39", what, stmt, goal, step.context, unknown=reason, least=_sizes_first(goal), compared=tables.shape[1]
    )


_CASES = 4096

# -- outputs -------------------------------------------------------------------------------------------------


def _written_once(flow: Flow, step: Step, stmt: Assert, claim: WrittenOnce) -> Iterator[Obligation]:
    buffer = claim.view.buffer
    if not is_whole(claim.view):
        reason = "a claim on part of a tensor is not built yet in the verifier"
        yield Obligation("I4", f"`{buffer.name}` is written once", stmt, algebra.FALSE, step.context, unknown=reason)
        return
    stores = [
        access
        for earlier in flow.timeline.steps
        for access in flow.accesses.of(earlier)
        if access.mode == "write" and access.view.buffer is buffer
    ]
    what = f"each element of `{buffer.name}` is written exactly once"
    if not stores:
        yield Obligation("I4", what, stmt, algebra.FALSE, step.context, help=f"store the result into `{buffer.name}`")
        return
    store = stores[0]
    places = store.places
    loose = store.step.loop is not None or store.step.guard is not algebra.TRUE
    if len(stores) > 1 or places is None or loose:
        reason = "outputs stored by several statements, in a loop or in a branch are not built yet in the verifier"
        yield Obligation("I4", what, stmt, algebra.FALSE, step.context, unknown=reason, other=store.step.stmt)
        return
    yield _apart_within(store, places, what)
    yield _apart_between(flow, store, places, buffer)
    yield _reaches_all(flow, store, places, buffer)
    yield from _holds_record(flow, store, places, claim)


def _apart_within(store: Access, places: tuple[Sep, ...], what: str) -> Obligation:
    """Within one block, elements go to different places and fill a box."""
    tables = np.stack([place.table.ravel() for place in places])
    distinct = np.unique(tables, axis=1).shape[1]
    box = int(np.prod([place.high - place.low + 1 for place in places]))
    whole = distinct == tables.shape[1] == box
    return Obligation(
        "I4",
        what + ", within a block",
        store.step.stmt,
        algebra.TRUE if whole else algebra.FALSE,
        store.step.context,
        compared=tables.shape[1],
        help="give the store a layout that holds every element of the tile once",
    )


def _apart_between(flow: Flow, store: Access, places: tuple[Sep, ...], buffer: Buffer) -> Obligation:
    """Two different blocks never store to one element of the tensor."""
    kernel = flow.timeline.kernel
    other = {s: algebra.sym(Symbol(f"{s.name}'", s.kind, s.low, s.high)) for s in kernel.blocks}
    met: list[Cond] = []
    for axis, (place, extent) in enumerate(zip(places, buffer.shape, strict=True)):
        mine = algebra.add(place.base, _offset(axis, place, ""))
        theirs = algebra.add(substitute(place.base, other), _offset(axis, place, "'"))
        met += [algebra.eq(mine, theirs), algebra.le(0, mine), algebra.lt(mine, extent)]
    grid = [algebra.lt(other[s], count) for s, count in zip(kernel.blocks, kernel.grid, strict=True)]
    equal = algebra.all_of(algebra.eq(algebra.sym(s), other[s]) for s in kernel.blocks)
    return Obligation(
        "I4",
        f"no two blocks write one element of `{buffer.name}`",
        store.step.stmt,
        equal,
        (*met, *grid),
        least=_sizes_first(algebra.all_of((*met, *grid))),
        compared=places[0].table.size,
        help="every coordinate of the grid must choose another tile",
    )


def _offset(axis: int, place: Sep, mark: str) -> Index:
    return algebra.sym(Symbol(f"offset_{axis}{mark}", "fresh", place.low, place.high))


def _reaches_all(flow: Flow, store: Access, places: tuple[Sep, ...], buffer: Buffer) -> Obligation:
    """Each element has a block that stores it: the one found by dividing its coordinates."""
    kernel = flow.timeline.kernel
    grid = dict(zip(kernel.blocks, kernel.grid, strict=True))
    hypotheses: list[Cond] = []
    chosen: dict[Symbol, Index] = {}
    what = f"each element of `{buffer.name}` is written by some block"
    for axis, (place, extent) in enumerate(zip(places, buffer.shape, strict=True)):
        element = algebra.sym(Symbol(f"element_{axis}", "fresh", 0))
        hypotheses.append(algebra.lt(element, extent))
        block = _only_block(place.base, kernel.blocks)
        if block is None and not isinstance(place.base, Const):
            reason = f"coordinate {axis} of the store is {show(place.base)}, not a multiple of one block coordinate"
            return Obligation("I4", what, store.step.stmt, algebra.FALSE, unknown=reason)
        if block is not None:
            symbol, factor = block
            if symbol in chosen:
                return Obligation("I4", what, store.step.stmt, algebra.FALSE, help="two axes follow one grid coordinate")
            chosen[symbol] = algebra.floordiv(algebra.sub(element, place.low), factor)
    goals: list[Cond] = []
    for axis, place in enumerate(places):
        element = algebra.sym(Symbol(f"element_{axis}", "fresh", 0))
        start = substitute(place.base, chosen)
        goals += [algebra.le(algebra.add(start, place.low), element), algebra.le(element, algebra.add(start, place.high))]
    for symbol, number in chosen.items():
        goals += [algebra.le(0, number), algebra.lt(number, grid[symbol])]
    goal = algebra.all_of(goals)
    return Obligation(
        "I4",
        what,
        store.step.stmt,
        goal,
        tuple(hypotheses),
        least=_sizes_first(algebra.all_of((*hypotheses, goal))),
        compared=places[0].table.size,
        help="the grid must count enough tiles: `ceil_div(size, tile)` on each axis",
        given="assumptions",
    )


def _only_block(base: Index, blocks: tuple[Symbol, ...]) -> tuple[Symbol, int] | None:
    """(block coordinate, factor) if that is all the expression consists of."""
    terms = base.terms if isinstance(base, Sum) else ((base, 1),)
    if len(terms) != 1:
        return None
    atom, factor = terms[0]
    return (atom.symbol, factor) if isinstance(atom, Sym) and atom.symbol in blocks and factor > 0 else None


def _holds_record(flow: Flow, store: Access, places: tuple[Sep, ...], claim: WrittenOnce) -> Iterator[Obligation]:
    """What is stored at coordinates carries the record that the claim gives them."""
    name = store.view.buffer.name
    for piece in flow.written(store.step):
        context = (*store.step.context, piece.guard)
        what = f"each element of `{name}` holds what the claim says"
        if not isinstance(piece.value, Data):
            reason = _why(piece.value)
            yield Obligation("I4", what, store.step.stmt, algebra.FALSE, context, unknown=reason)
            continue
        for tag, expression in claim.record:
            yield _component_held(flow, store, places, piece.value, tag, expression, context)
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
        "I4", what, store.step.stmt, goal, context, least=_sizes_first(goal), compared=wanted.table.size, help=help_text
    )


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
