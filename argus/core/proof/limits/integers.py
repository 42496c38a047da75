"""Obligations that integers do not overflow (I28): 32 bits for computed values, 64 bits for byte offsets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from argus.core import algebra
from argus.core.index import Bin, Cond, Const, Coord, Held, Index, Node, Pick, Read, Sum, Symbol
from argus.core.index_text import show
from argus.core.ir import Buffer, Copy, For, Map, Mma, Stmt, Strided, View, static
from argus.core.ir.element_walk import indices
from argus.core.proof.dataflow.access import Access
from argus.core.proof.dataflow.separable_index import Separable
from argus.core.proof.dataflow.timeline import Segment, Step, Timeline
from argus.core.proof.obligation import Obligation
from argus.core.target import DESCRIPTOR_BYTES
from argus.core.walk import fold, mentions, rebuild, substitute, symbols, topological

_INT32 = (1 << 31) - 1
_INT64 = (1 << 63) - 1


def control_width_obligations(timeline: Timeline) -> Iterator[Obligation]:
    """I28 for conditions, loop bounds and integers in elementwise maps; each condition once per loop."""
    for segment in timeline.segments:
        if segment.loop is not None:
            yield from loop_width_obligations(segment.loop.stmt)
        yield from _segment_obligations(segment)


def loop_width_obligations(loop: For, facts: tuple[Cond, ...] = ()) -> Iterator[Obligation]:
    """I28 for the bounds of a loop and the last value of its variable. facts: conditions that hold at the loop."""
    bounds = (loop.start, loop.stop, algebra.add(loop.stop, loop.step))
    yield from width_obligations(bounds, loop, facts, "a bound of the loop")


def _at_arbitrary_element(node: Node, stmt: Map) -> Node:
    """The expression at an arbitrary element of the target."""
    places: list[Index] = []
    for axis, extent in enumerate(stmt.target.shape):
        places.append(algebra.sym(Symbol(f"i{axis}", "fresh", 0, static(extent) - 1)))
    return substitute(cast(Index, node), {}, places)


def _segment_obligations(segment: Segment) -> Iterator[Obligation]:
    facts = () if segment.loop is None else segment.loop.facts
    seen: set[Cond] = set()
    for step in segment.steps:
        if step.guard not in seen:
            seen.add(step.guard)
            yield from width_obligations((step.guard,), step.stmt, facts, "a condition")
        if isinstance(step.stmt, Mma):
            yield from width_obligations((step.stmt.init,), step.stmt, facts, "`init`")
        if isinstance(step.stmt, Map):
            numbers = [_at_arbitrary_element(node, step.stmt) for node in indices(step.stmt.elem)]
            yield from width_obligations(numbers, step.stmt, facts, "a number among elements")


def width_obligations(roots: Sequence[Node], stmt: Stmt, facts: tuple[Cond, ...], what: str) -> Iterator[Obligation]:
    """I28 for every intermediate result of `roots`, which the kernel computes where `facts` hold."""
    goals = [(node, _fits_int32(node)) for node in _intermediate_results(roots)]
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


def _intermediate_results(roots: Sequence[Node]) -> Iterator[Index]:
    """Every intermediate result of the expressions, including each term of a sum."""
    for node in topological(roots):
        match node:
            case Sum(terms=terms):
                yield node
                yield from (algebra.mul(atom, factor) for atom, factor in terms)
            case Bin(op="min" | "max", left=left, right=right):
                yield from (part for part in (left, right) if isinstance(part, Const))  # the result is an operand
            case Bin() | Pick():
                yield node
            case _:
                continue


def access_width_obligations(
    step: Step, stmt: Copy, access: Access, places: tuple[Separable, ...]
) -> Iterator[Obligation]:
    """I28 for a copy: coordinates fit 32 bits, byte offsets 64 bits, or unsigned 32 bits with a buffer descriptor."""
    buffer = access.view.buffer
    for axis, (place, expression) in enumerate(zip(places, access.view.at, strict=True)):
        goals = [_fits_int32(algebra.add(place.base, number)) for number in (place.low, place.high)]
        goals += [_fits_int32(node) for node in _coordinate_results(expression, access)]
        yield Obligation(
            "I28",
            f"coordinate {axis} of `{buffer.name}` fits 32 bits",
            stmt,
            algebra.all_of(goals),
            step.context,
            unknown=_may_wrap(expression),
        )
    if isinstance(buffer.layout, Strided):
        yield from _byte_offset_obligation(step, stmt, buffer, buffer.layout)


def gather_width_obligations(step: Step, stmt: Copy, access: Access) -> Iterator[Obligation]:
    """I28 for a gathered copy: all intermediate results of its coordinates and of the view's condition."""
    buffer, inner = access.view.buffer, arbitrary_element(access.view)
    roots = [substitute(expression, {}, inner) for expression in access.view.at]
    for axis, root in enumerate(roots):
        goals = [_fits_int32(node) for node in (root, *_intermediate_results([root]))]
        yield Obligation(
            "I28", f"coordinate {axis} of `{buffer.name}` fits 32 bits", stmt, algebra.all_of(goals), step.context
        )
    yield from width_obligations((substitute(access.view.where, {}, inner),), stmt, step.context, "a view's condition")
    if isinstance(buffer.layout, Strided):
        yield from _byte_offset_obligation(step, stmt, buffer, buffer.layout)


def _division_obligations(stmt: Stmt, term: Read, buffer: Buffer, context: tuple[Cond, ...]) -> Iterator[Obligation]:
    """Quotients and remainders in an index are computed in 32 bits, once for all that use them in an iteration."""
    divisions = [
        each
        for each in topological(term.at)
        if isinstance(each, Bin) and each.op in ("//", "%") and not isinstance(each.right, Const)
    ]
    once = [each for each in divisions if not mentions(each, (Coord, Held, Read))]
    yield from width_obligations(once, stmt, context, f"the index of `{buffer.name}`")


def read_width_obligations(stmt: Stmt, term: Read, buffer: Buffer, context: tuple[Cond, ...]) -> Iterator[Obligation]:
    """I28 for an element that an index expression loads: its address is computed in 64 bits, but for divisions."""
    roots = [each for each in (*term.at, *_intermediate_results(term.at)) if not mentions(each, (Coord, Held))]
    yield from _division_obligations(stmt, term, buffer, context)
    yield Obligation(
        "I28",
        f"the index of `{buffer.name}` fits 64 bits",
        stmt,
        algebra.all_of([_fits(each, _INT64) for each in roots]),
        context,
        fault=f"`{show(term)}` computes an index that exceeds 64 bits",
        help=f"`assume` smaller sizes for what indexes `{buffer.name}`",
    )
    if isinstance(buffer.layout, Strided):
        yield _bytes_obligation(stmt, buffer, buffer.layout, context, _INT64)


def _fits_int32(expression: Index) -> Cond:
    return _fits(expression, _INT32)


def _fits(expression: Index, most: int) -> Cond:
    low, high = expression.range
    if low is not None and high is not None and low >= -most and high <= most:
        return algebra.TRUE
    return algebra.all_of((algebra.le(-most, expression), algebra.le(expression, most)))


def _coordinate_results(expression: Index, access: Access) -> Iterator[Index]:
    """Every intermediate result of a coordinate, at an arbitrary element of the tile."""
    yield from _intermediate_results([_without_counters(substitute(expression, {}, arbitrary_element(access.view)))])


def arbitrary_element(view: View) -> list[Index]:
    """The coordinates of an arbitrary element of a view, one fresh symbol per axis."""
    extents = [extent.value if isinstance(extent, Const) else None for extent in view.shape]
    return [
        algebra.sym(Symbol(f"i{axis}", "fresh", 0, None if extent is None else extent - 1))
        for axis, extent in enumerate(extents)
    ]


def _has_unbounded_counter(node: Node) -> bool:
    """Whether an expression contains a counter without an upper bound."""
    return any(symbol.kind == "fresh" and symbol.high is None for symbol in symbols(node))


def _without_counters(expression: Index) -> Index:
    """Replace each `counter % slots` by a fresh symbol in [0, slots).

    This is sound for a counter that wraps at 32 bits: modulo a power of two the remainder stays right, and for other
    moduli `roles.bounds` proves that the counter does not wrap.
    """
    if not _has_unbounded_counter(expression):
        return expression

    def visit(node: Node, parts: Sequence[Node]) -> Node:
        made = rebuild(node, parts)
        if (
            isinstance(made, Bin)
            and made.op == "%"
            and isinstance(made.right, Const)
            and _has_unbounded_counter(made.left)
        ):
            return algebra.sym(Symbol("slot", "fresh", 0, made.right.range[1]))
        return made

    return cast(Index, fold(expression, visit))


def _may_wrap(expression: Index) -> str:
    left = _has_unbounded_counter(_without_counters(expression))
    return "a use counter outside a slot index may exceed 32 bits" if left else ""


def _byte_offset_obligation(step: Step, stmt: Copy, buffer: Buffer, layout: Strided) -> Iterator[Obligation]:
    most = DESCRIPTOR_BYTES if stmt.atom.edge == "range_zero" else _INT64
    yield _bytes_obligation(stmt, buffer, layout, step.context, most)


def _bytes_obligation(stmt: Stmt, buffer: Buffer, layout: Strided, context: tuple[Cond, ...], most: int) -> Obligation:
    """I28: the last byte of the tensor is addressable at its largest declared shape. most: addressable bytes."""
    size = algebra.mul(algebra.mul(buffer.shape[0], layout.strides[0]), buffer.dtype.bits // 8)
    high = size.range[1]
    what, repair = "64 bits", f"declare smaller sizes for `{buffer.name}`"
    if most == DESCRIPTOR_BYTES:
        what = "a buffer descriptor"
        repair = f"`assume` that `{buffer.name}` has at most {most} bytes, or copy with `global_load`"
    return Obligation(
        "I28",
        f"byte offsets into `{buffer.name}` fit {what}",
        stmt,
        algebra.TRUE if high is not None and high <= most else algebra.le(size, most),
        context,
        fault=f"byte offsets into `{buffer.name}` exceed {what}",
        quantities=((f"bytes of `{buffer.name}`", size), ("addressable", algebra.const(most))),
        help=repair,
    )
