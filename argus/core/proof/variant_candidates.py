"""Candidates for variants of a kernel that is not proved: assumptions, edges and claims, whether they help or not.

What they are derived from: tile extents and divisors of sizes, the conditions under which an output holds elements of
its inputs and not padding, and the goals that are not proved.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from math import inf

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.index import And, Bin, Cond, Const, Coord, Held, Index, Node, Read, Symbol
from argus.core.ir import (
    Assert,
    Assume,
    Buffer,
    Copy,
    Equals,
    For,
    If,
    Kernel,
    Products,
    View,
    WrittenOnce,
    walk,
    whole,
)
from argus.core.proof.variants import Edging
from argus.core.values.expr import Choose, Compare, Element, Expr, Fn, Reduce
from argus.core.values.rewriting import nodes, parts
from argus.core.walk import NodeT, mentions, substitute, symbols, topological

_BOUND = 1 << 20
"""A size up to which products of two of them by small numbers fit 64 bits, and sums of some 32 bits."""


# -- assumptions -------------------------------------------------------------------------------------------------


def size_assumptions(kernel: Kernel) -> tuple[Cond, ...]:
    """That each size is at least 1, and a multiple of the tiles and divisors that it meets; strongest last."""
    sizes = [algebra.sym(size) for size in kernel.sizes]
    units = _units(kernel)
    multiples = [(size, unit) for size in sizes for unit in sorted(units.get(size.symbol, ()))]
    found = [
        *(algebra.le(1, size) for size in sizes),
        *(algebra.eq(algebra.mod(size, unit), 0) for size, unit in multiples),
    ]
    return _unstated(kernel, found)


def bounds_of_sizes(kernel: Kernel) -> tuple[Cond, ...]:
    """That each size is at most 2^20."""
    return _unstated(kernel, [algebra.le(algebra.sym(size), _BOUND) for size in kernel.sizes])


def _unstated(kernel: Kernel, conds: Iterable[Cond]) -> tuple[Cond, ...]:
    """Those conditions that are neither trivial nor assumed already."""
    stated = {stmt.cond for stmt in walk(kernel.body) if isinstance(stmt, Assume)}
    whole_tiles = _whole_tiles(kernel)
    plain = (whole_tiles.get(cond, cond) for cond in conds)
    return tuple(cond for cond in dict.fromkeys(plain) if cond not in stated and not _trivial(cond))


def _whole_tiles(kernel: Kernel) -> Mapping[Cond, Cond]:
    """For the condition that the tiles along a size do not reach beyond it, that it is a multiple of them."""
    pairs = [(algebra.sym(size), unit) for size, units in _units(kernel).items() for unit in units]
    return {
        algebra.le(algebra.mul(algebra.ceil_div(size, unit), unit), size): algebra.eq(algebra.mod(size, unit), 0)
        for size, unit in pairs
    }


def _trivial(cond: Cond) -> bool:
    return cond is algebra.TRUE or cond is algebra.FALSE


def _units(kernel: Kernel) -> Mapping[Symbol, set[int]]:
    """For each size the numbers above 1 by which it is divided, and the extents of tiles along its axes."""
    found: dict[Symbol, set[int]] = {}
    for node in topological(_expressions(kernel)):
        if isinstance(node, Bin) and node.op in ("//", "%") and isinstance(node.right, Const):
            for size in _sizes(node.left):
                found.setdefault(size, set()).add(node.right.value)
    for view in _global_views(kernel):
        for at, extent in zip(view.at, view.buffer.shape, strict=True):
            tiles = [view.shape[node.axis] for node in topological([at]) if isinstance(node, Coord)]
            for size in _sizes(extent):
                found.setdefault(size, set()).update(each.value for each in tiles if isinstance(each, Const))
    return {size: {unit for unit in units if unit > 1} for size, units in found.items()}


def _sizes(node: Node) -> list[Symbol]:
    return [symbol for symbol in symbols(node) if symbol.kind == "size"]


def _expressions(kernel: Kernel) -> Iterator[Node]:
    yield from kernel.grid
    for stmt in walk(kernel.body):
        match stmt:
            case For(start=start, stop=stop):
                yield from (start, stop)
            case If(cond=cond):
                yield cond
            case Copy(source=source, target=target):
                yield from (*source.at, *target.at)
            case _:
                pass


def _global_views(kernel: Kernel) -> Iterator[View]:
    for stmt in walk(kernel.body):
        if isinstance(stmt, Copy):
            yield from (view for view in (stmt.source, stmt.target) if view.buffer.space == "global")


@frozen
class _Corner:
    """One end of the ranges of symbols and coordinates."""

    names: Mapping[Symbol, Index]
    coords: tuple[Index, ...] = ()


def assumptions_of_goals(kernel: Kernel, goals: Iterable[Cond]) -> tuple[Cond, ...]:
    """Conditions on sizes that goals come down to in the last block of the grid, and in the first."""
    last = {block: algebra.sub(count, 1) for block, count in zip(kernel.blocks, kernel.grid, strict=True)}
    corners = (_Corner(last), _Corner(dict.fromkeys(last, algebra.const(0))))
    return _unstated(kernel, (cond for goal in goals for cond in _at_corners(goal, corners)))


def inside_assumptions(kernel: Kernel, output: Buffer, value: Expr) -> tuple[Cond, ...]:
    """Conditions on sizes under which no part of an output's value is decided by where its tensors end.

    value: over the output's coordinates. Each test in it that no claim of the kernel makes, too, at the last of the
    coordinates and at the first.
    """
    last = tuple(algebra.sub(extent, 1) for extent in output.shape)
    corners = (_Corner({}, last), _Corner({}, (algebra.const(0),) * len(last)))
    claims = [stmt.claim for stmt in walk(kernel.body) if isinstance(stmt, Assert)]
    formulas = [claim.formula for claim in claims if isinstance(claim, Equals) and claim.view.buffer is output]
    meant = {part for formula in formulas for test in _tests(formula) for part in _conjuncts(test)}
    return _unstated(kernel, _tests_inside(value, meant | {algebra.negate(part) for part in meant}, *corners))


def _tests(value: Expr) -> Iterator[Cond]:
    """The conditions on integers by which parts of a value are chosen."""
    for node in nodes(value):
        if isinstance(node, Choose) and not isinstance(node.test, Compare):
            yield node.test


def _tests_inside(value: Expr, meant: Collection[Cond], last: _Corner, first: _Corner) -> Iterator[Cond]:
    if isinstance(value, Choose) and not isinstance(value.test, Compare):
        for part in _conjuncts(value.test):
            yield from () if part in meant else _at_corners(part, (last, first))
    if isinstance(value, Reduce):
        high, low = _replaced(algebra.sub(value.high, 1), last), _replaced(value.low, first)
        last = evolve(last, names={**last.names, value.variable: high})
        first = evolve(first, names={**first.names, value.variable: low})
    for part in parts(value):
        yield from _tests_inside(part, meant, last, first)


def _at_corners(cond: Cond, corners: Iterable[_Corner]) -> Iterator[Cond]:
    """The conjuncts of a condition after each substitution, those that are about sizes alone."""
    for conjunct in _conjuncts(cond):
        for corner in corners:
            found = _replaced(conjunct, corner)
            if not mentions(found, (Coord, Read, Held)) and all(each.kind == "size" for each in symbols(found)):
                yield found


def _conjuncts(cond: Cond) -> tuple[Cond, ...]:
    return cond.parts if isinstance(cond, And) else (cond,)


def _replaced(node: NodeT, corner: _Corner) -> NodeT:
    """The node with coordinates and symbols replaced."""
    coords = [node.axis for node in topological([node]) if isinstance(node, Coord)]
    return substitute(node, corner.names, corner.coords if coords and max(coords) < len(corner.coords) else None)


# -- edges -------------------------------------------------------------------------------------------------------


def edges(kernel: Kernel) -> Iterator[Edging]:
    """Copies between registers and whole tensors that get an edge, or loads that read another number beyond theirs."""
    copies = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Copy) and _takes_any_edge(stmt)]
    bare = tuple(each for each in copies if each.edge is None)
    if bare:
        yield Edging(bare, 0.0)
    loads = [each for each in copies if each.source.buffer.space == "global" and each.edge is not None]
    for edge in dict.fromkeys(each.edge for each in loads):
        for other in (0.0, -inf, inf):
            if other != edge:
                yield Edging(tuple(each for each in loads if each.edge == edge), other)


def without_edges(kernel: Kernel) -> Iterator[Edging]:
    """All copies by threads without an edge, for sizes of whole tiles."""
    copies = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Copy) and stmt.atom.unit != 1]
    edged = tuple(each for each in copies if each.edge is not None)
    if edged:
        yield Edging(edged, None)


def _takes_any_edge(copy: Copy) -> bool:
    spaces = {view.buffer.space for view in (copy.source, copy.target)}
    plain = copy.source.where is algebra.TRUE and copy.target.where is algebra.TRUE
    return spaces == {"global", "register"} and plain and copy.atom.unit != 1 and copy.signal is None


# -- claims ------------------------------------------------------------------------------------------------------


def as_products(output: Buffer, value: Expr) -> Products | None:
    """The value as a claim of products: sums of products of two elements, which are 0 out of bounds; else None."""
    over: list[tuple[Symbol, Index]] = []
    while isinstance(value, Reduce) and value.op == "sum" and value.low is algebra.const(0):
        if value.where is not algebra.TRUE:
            return None
        over.append((value.variable, value.high))
        value = value.body
    pairs = [_pair(term) for term in _terms(value)]
    found = tuple(pair for pair in pairs if pair is not None)
    return Products(whole(output), found, tuple(over)) if over and len(found) == len(pairs) else None


def _terms(value: Expr) -> Iterator[Expr]:
    if isinstance(value, Fn) and value.name == "add":
        for part in value.args:
            yield from _terms(part)
    else:
        yield value


def _pair(value: Expr) -> tuple[tuple[Index, ...], tuple[Index, ...]] | None:
    if not isinstance(value, Fn) or value.name != "mul":
        return None
    one, two = map(_unpadded, value.args)
    return (one.at, two.at) if isinstance(one, Element) and isinstance(two, Element) else None


def _unpadded(value: Expr) -> Expr:
    """An element without the condition that it is within its tensor."""
    return value.then if isinstance(value, Choose) and isinstance(value.then, Element) else value


def weaker_claims(claim: WrittenOnce) -> Iterator[WrittenOnce]:
    """The claim with one name less in its record."""
    for number in range(len(claim.record) if len(claim.record) > 1 else 0):
        yield evolve(claim, record=(*claim.record[:number], *claim.record[number + 1 :]))
