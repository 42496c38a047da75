"""Scales of quantised operands (I35): a scale belongs to the row, column and block of k of the sum that it multiplies.

Names that the sum and its scale both carry are equal, element by element. A name that the scale alone carries, such as
its block of k where the sum's tag knows k alone, must be tied to the sum by a relation that the program asserts.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.index import Cond, Index, Symbol
from argus.core.ir import Assert, Buffer, Copy, Elem, Get, Map, Op, Relation, Stmt
from argus.core.ir.element_walk import gets, nodes
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.dataflow.separable_index import equal_indices
from argus.core.proof.dataflow.timeline import Step
from argus.core.proof.obligation import Obligation, minimisation_order
from argus.core.proof.values.content import Content, Data, Number, Value, content_error
from argus.core.walk import substitute


@frozen(eq=False)
class _Scaling:
    """A sum and what multiplies or divides it, both by what is read."""

    sum: Get
    scale: Get


def obligations(flow: Flow) -> Iterator[Obligation]:
    """For each product of elements in a `Map`, of which one is a sum of products and the other is not."""
    for step in flow.timeline.steps:
        if isinstance(step.stmt, Map) and _products(step.stmt.elem):
            accesses = flow.accesses.of(step)[:-1]
            held = {get: flow.read(access) for get, access in zip(gets(step.stmt.elem), accesses, strict=True)}
            for one, other in _products(step.stmt.elem):
                yield from _of_pair(flow, step, step.stmt, (one, held[one]), (other, held[other]))


def multiplied(flow: Flow, step: Step, stmt: Map) -> Iterator[tuple[Value, Value]]:
    """What the reads that meet in a product or a quotient hold."""
    accesses = flow.accesses.of(step)[:-1]
    held = {get: flow.read(access) for get, access in zip(gets(stmt.elem), accesses, strict=True)}
    for one, other in _products(stmt.elem):
        yield from ((a.value, b.value) for a in held[one] for b in held[other])


def _products(elem: Elem) -> tuple[tuple[Get, Get], ...]:
    """The reads that meet in a product or a quotient."""
    made = [node for node in nodes(elem) if isinstance(node, Op) and node.name in ("mul", "div", "fma")]
    return tuple((one, two) for op in made for one in gets(op.args[0]) for two in gets(op.args[1]))


def _of_pair(
    flow: Flow, step: Step, stmt: Map, one: tuple[Get, Content], other: tuple[Get, Content]
) -> Iterator[Obligation]:
    for a in one[1]:
        for b in other[1]:
            if isinstance(a.value, Number) or isinstance(b.value, Number):
                continue
            if not isinstance(a.value, Data) or not isinstance(b.value, Data):
                reason = content_error(a.value) or content_error(b.value)
                yield Obligation("I35", _what(one[0], other[0]), stmt, algebra.FALSE, step.context, unknown=reason)
                continue
            guarded = (*step.context, a.guard, b.guard)
            if a.value.sets and not b.value.sets:
                yield from _scaled(flow, step, stmt, _Scaling(one[0], other[0]), (a.value, b.value), guarded)
            elif b.value.sets and not a.value.sets:
                yield from _scaled(flow, step, stmt, _Scaling(other[0], one[0]), (b.value, a.value), guarded)


def _what(one: Get, other: Get) -> str:
    return f"`{other.view.buffer.name}` scales the elements of `{one.view.buffer.name}` that it belongs to"


def _scaled(
    flow: Flow,
    step: Step,
    stmt: Map,
    scaling: _Scaling,
    values: tuple[Data, Data],
    context: tuple[Cond, ...],
) -> Iterator[Obligation]:
    summed, scale = values
    name_of_sum, name_of_scale = scaling.sum.view.buffer.name, scaling.scale.view.buffer.name
    # The softmax has rules of its own for what it scales by.
    loaded = all(value.within_bounds.plain for value in values)
    if loaded and not scale.record and _of_single_elements(flow, scaling.scale.view.buffer):
        return
    if loaded and not scale.record:
        reason = f"`{name_of_scale}` carries no tag that could tell what it belongs to"
        yield Obligation("I35", _what(scaling.sum, scaling.scale), stmt, algebra.FALSE, context, unknown=reason)
    for name, component in scale.record.items():
        what = f"`{name_of_scale}` has the `{name}` of the elements of `{name_of_sum}` that it scales"
        compared = prod(component.table.shape)
        if name in summed.record:
            goal = equal_indices(summed.record[name], component)
            yield Obligation(
                "I35",
                what,
                stmt,
                goal,
                context,
                minimise=minimisation_order(goal),
                compared=compared,
                help=f"load the scale of the `{name}` that the sum has: compare the tiles' numbers",
            )
            continue
        if not loaded:
            continue
        tied = _related(flow, step, scaling, name)
        goal = algebra.TRUE if tied else algebra.FALSE
        reason = "" if tied else f"no relation is asserted between `{name}` of the scale and the sum `{name_of_sum}`"
        yield Obligation("I35", what, stmt, goal, context, unknown=reason, compared=compared)


def _related(flow: Flow, step: Step, scaling: _Scaling, name: str) -> bool:
    """Whether a relation before the product, of what is still held then, decides the name by what the sum is of."""
    scales, sums = _made_of(flow, scaling.scale.view.buffer), _made_of(flow, scaling.sum.view.buffer)
    for other in flow.timeline.segments[step.segment].steps:
        if other.position >= step.position or other.guard is not step.guard or not isinstance(other.stmt, Assert):
            continue
        claim = other.stmt.claim
        if not isinstance(claim, Relation):
            continue
        scale = {symbol: of.view.buffer for symbol, of in claim.names if of.view.buffer in scales and of.name == name}
        total = [of.view.buffer for _, of in claim.names if of.view.buffer in sums and of.view.buffer in flow.sums]
        held = scale and total and not _written(flow, (*scale.values(), *total), other, step)
        if held and _decides(flow, step, claim, tuple(scale)):
            return True
    return False


def _decides(flow: Flow, step: Step, claim: Relation, symbols: tuple[Symbol, ...]) -> bool:
    """Whether a relation leaves each of the components one number, whatever the others are."""
    other: dict[Symbol, Index] = {symbol: algebra.sym(evolve(symbol, name=f"{symbol.name}'")) for symbol in symbols}
    one = algebra.all_of(algebra.eq(algebra.sym(symbol), number) for symbol, number in other.items())
    return flow.holds((*step.context, claim.cond, substitute(claim.cond, other)), one)


def _made_of(flow: Flow, buffer: Buffer) -> frozenset[Buffer]:
    """The tile, and those that it is computed from element by element, of tiles that are written once."""
    found: set[Buffer] = set()
    waiting = [buffer]
    while waiting:
        one = waiting.pop()
        if one in found:
            continue
        found.add(one)
        writes = _writers(flow, one)
        if len(writes) == 1 and isinstance(writes[0], Map):
            waiting += [get.view.buffer for get in gets(writes[0].elem)]
    return frozenset(found)


def _of_single_elements(flow: Flow, buffer: Buffer) -> bool:
    """Whether a tile is computed from tensors of one element alone, which belong to every sum alike."""
    made = _made_of(flow, buffer)
    written = [stmt for each in made for stmt in _writers(flow, each) if not isinstance(stmt, Map)]
    alone = all(isinstance(stmt, Copy) and _is_single(stmt.source.buffer) for stmt in written)
    return alone and all(len(_writers(flow, each)) == 1 for each in made)


def _is_single(tensor: Buffer) -> bool:
    return tensor.space == "global" and all(extent is algebra.const(1) for extent in tensor.shape)


def _writers(flow: Flow, buffer: Buffer) -> tuple[Stmt, ...]:
    return tuple(
        step.stmt
        for step in flow.timeline.steps
        for access in flow.accesses.of(step)
        if access.mode == "write" and access.view.buffer is buffer
    )


def _written(flow: Flow, buffers: tuple[Buffer, ...], after: Step, before: Step) -> bool:
    """Whether something is written between two steps of one segment."""
    between = [
        each
        for each in flow.timeline.segments[before.segment].steps
        if after.position < each.position < before.position
    ]
    return any(a.mode == "write" and a.view.buffer in buffers for each in between for a in flow.accesses.of(each))
