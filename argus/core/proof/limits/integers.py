"""Integers stay within their types (I28): 32 bits for whatever a kernel computes, 64 for byte offsets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from argus.core import algebra
from argus.core.index import Bin, Cond, Const, Index, Node, Pick, Sum, Symbol
from argus.core.ir import Buffer, Copy, For, Map, Mma, Stmt, Strided, View, static
from argus.core.ir.element_walk import indices
from argus.core.proof.dataflow.access import Access
from argus.core.proof.dataflow.separable_index import Separable
from argus.core.proof.dataflow.timeline import Segment, Step, Timeline
from argus.core.proof.obligation import Obligation
from argus.core.walk import fold, rebuild, show, substitute, symbols, topological

_INT32 = (1 << 31) - 1
_UINT32 = (1 << 32) - 1
_INT64 = (1 << 63) - 1


def control_width_obligations(timeline: Timeline) -> Iterator[Obligation]:
    """Conditions, loop bounds and numbers among elements; each condition once in each loop."""
    for segment in timeline.segments:
        if segment.loop is not None:
            yield from loop_width_obligations(segment.loop.stmt)
        yield from _of_segment(segment)


def loop_width_obligations(loop: For, facts: tuple[Cond, ...] = ()) -> Iterator[Obligation]:
    """The bounds of a loop, and what its variable is at the end. facts: what holds where it stands."""
    bounds = (loop.start, loop.stop, algebra.add(loop.stop, loop.step))
    yield from width_obligations(bounds, loop, facts, "a bound of the loop")


def _of_any_element(node: Node, stmt: Map) -> Node:
    """The expression at an arbitrary element of the target."""
    places: list[Index] = []
    for axis, extent in enumerate(stmt.target.shape):
        places.append(algebra.sym(Symbol(f"i{axis}", "fresh", 0, static(extent) - 1)))
    return substitute(cast(Index, node), {}, places)


def _of_segment(segment: Segment) -> Iterator[Obligation]:
    facts = () if segment.loop is None else segment.loop.facts
    seen: set[Cond] = set()
    for step in segment.steps:
        if step.guard not in seen:
            seen.add(step.guard)
            yield from width_obligations((step.guard,), step.stmt, facts, "a condition")
        if isinstance(step.stmt, Mma):
            yield from width_obligations((step.stmt.init,), step.stmt, facts, "`init`")
        if isinstance(step.stmt, Map):
            numbers = [_of_any_element(node, step.stmt) for node in indices(step.stmt.elem)]
            yield from width_obligations(numbers, step.stmt, facts, "a number among elements")


def width_obligations(roots: Sequence[Node], stmt: Stmt, facts: tuple[Cond, ...], what: str) -> Iterator[Obligation]:
    """I28 for every partial result of expressions that the kernel computes where `facts` hold."""
    goals = [(node, _fits(node)) for node in _results(roots)]
    for node, goal in goals:
        if goal is not algebra.TRUE:
            yield Obligation(
                "I28",
                f"{what} computes in 32 bits",
                stmt,
                goal,
                facts,
                fault=f"{what} computes {show(node)}, which may not fit 32 bits",
                quantities=((show(node), node),),
                help=f"`assume` that {show(node)} is smaller than 2^31",
            )


def _results(roots: Sequence[Node]) -> Iterator[Index]:
    """Every partial result below the roots, the terms of sums included."""
    for node in topological(roots):
        match node:
            case Sum(terms=terms):
                yield node
                yield from (algebra.mul(atom, factor) for atom, factor in terms)
            case Bin() | Pick():
                yield node
            case _:
                continue


def access_width_obligations(
    step: Step, stmt: Copy, access: Access, places: tuple[Separable, ...]
) -> Iterator[Obligation]:
    """Coordinates are 32-bit, byte offsets 64-bit, or unsigned 32-bit through a buffer descriptor."""
    buffer = access.view.buffer
    for axis, (place, expression) in enumerate(zip(places, access.view.at, strict=True)):
        goals = [_fits(algebra.add(place.base, number)) for number in (place.low, place.high)]
        goals += [_fits(node) for node in _intermediate(expression, access)]
        yield Obligation(
            "I28",
            f"coordinate {axis} of `{buffer.name}` fits 32 bits",
            stmt,
            algebra.all_of(goals),
            step.context,
            unknown=_may_wrap(expression),
        )
    if isinstance(buffer.layout, Strided):
        yield from _offsets(step, stmt, buffer, buffer.layout)


def gather_width_obligations(step: Step, stmt: Copy, access: Access) -> Iterator[Obligation]:
    """The same where places do not come apart: whatever is computed of them, and of the view's condition."""
    buffer, inner = access.view.buffer, arbitrary_element(access.view)
    roots = [substitute(expression, {}, inner) for expression in access.view.at]
    for axis, root in enumerate(roots):
        goals = [_fits(node) for node in (root, *_results([root]))]
        yield Obligation(
            "I28", f"coordinate {axis} of `{buffer.name}` fits 32 bits", stmt, algebra.all_of(goals), step.context
        )
    yield from width_obligations((substitute(access.view.where, {}, inner),), stmt, step.context, "a view's condition")
    if isinstance(buffer.layout, Strided):
        yield from _offsets(step, stmt, buffer, buffer.layout)


def _fits(expression: Index) -> Cond:
    low, high = expression.range
    if low is not None and high is not None and low >= -_INT32 and high <= _INT32:
        return algebra.TRUE
    return algebra.all_of((algebra.le(-_INT32, expression), algebra.le(expression, _INT32)))


def _intermediate(expression: Index, access: Access) -> Iterator[Index]:
    """Every partial result of a coordinate's computation, for coordinates anywhere in the tile."""
    yield from _results([_without_counters(substitute(expression, {}, arbitrary_element(access.view)))])


def arbitrary_element(view: View) -> list[Index]:
    """An arbitrary element of a view."""
    extents = [extent.value if isinstance(extent, Const) else None for extent in view.shape]
    return [
        algebra.sym(Symbol(f"i{axis}", "fresh", 0, None if extent is None else extent - 1))
        for axis, extent in enumerate(extents)
    ]


def _counts(node: Node) -> bool:
    """Whether an expression speaks of a counter that runs on over all tiles, without bound."""
    return any(symbol.kind == "fresh" and symbol.high is None for symbol in symbols(node))


def _without_counters(expression: Index) -> Index:
    """Slots as numbers of their own: modulo a power of two, a counter that wraps at 32 bits is right all the same, and
    modulo another number it is shown not to wrap where roles are read (`roles.bounds`).
    """
    if not _counts(expression):
        return expression

    def visit(node: Node, parts: Sequence[Node]) -> Node:
        made = rebuild(node, parts)
        if isinstance(made, Bin) and made.op == "%" and isinstance(made.right, Const) and _counts(made.left):
            return algebra.sym(Symbol("slot", "fresh", 0, made.right.range[1]))
        return made

    return cast(Index, fold(expression, visit))


def _may_wrap(expression: Index) -> str:
    left = _counts(_without_counters(expression))
    return "a counter of uses that is no number of a slot may pass 32 bits" if left else ""


def _offsets(step: Step, stmt: Stmt, buffer: Buffer, layout: Strided) -> Iterator[Obligation]:
    """The last byte of the tensor, at its largest declared shape, is addressable."""
    assert isinstance(stmt, Copy)
    described = stmt.atom.edge == "range_zero"
    most = _UINT32 if described else _INT64
    size = algebra.mul(algebra.mul(buffer.shape[0], layout.strides[0]), buffer.dtype.bits // 8)
    high = size.range[1]
    goal = algebra.TRUE if high is not None and high <= most else algebra.le(size, most)
    yield Obligation(
        "I28",
        f"byte offsets into `{buffer.name}` fit {'32 bits unsigned' if described else '64 bits'}",
        stmt,
        goal,
        step.context,
        fault=f"byte offsets into `{buffer.name}` reach past {'32' if described else '64'} bits",
        quantities=((f"bytes of `{buffer.name}`", size), ("addressable", algebra.const(most))),
        help=f"`assume` that `{buffer.name}` is smaller than 4 GiB, or copy with `global_load`"
        if described
        else f"declare smaller sizes for `{buffer.name}`",
    )
