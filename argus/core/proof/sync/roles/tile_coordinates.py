"""Names the coordinates of a tile in the sequential kernel: what an order computes of the tile's number is a symbol.

A number b in [0, X D) that is used as b // D and b % D alone is replaced by symbols of these, of counts X and D: they
correspond one to one to the number (the mixed-radix lemma of `tile_index`). Likewise for the rows and columns of
supertiles (the lemma of `supertiles`). Rows and columns may be split again. What was computed is still asked to fit 32
bits and not to divide by zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import cast

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.check.parts import expressions
from argus.core.index import Bin, Cond, Index, Node, Sum, Symbol
from argus.core.ir import Assume, For, Kernel, rewrite, walk
from argus.core.ir.rewrite import NodeMap
from argus.core.proof.limits.divisors import expression_divisor_obligations
from argus.core.proof.limits.integers import width_obligations
from argus.core.proof.obligation import Obligation
from argus.core.proof.outputs.supertiles import Supertiles, supertiles, without_factors, without_row
from argus.core.proof.sync.roles.context import fresh_block_symbol
from argus.core.proof.sync.roles.nested_tiles import Pairs
from argus.core.walk import children, symbols, topological


@frozen(eq=False)
class Coordinates:
    """Symbols in place of a number below `count`.

    computed: the expressions that they replace. counts: the symbols' own. divisor: by which the number is divided.
    known: what holds of the number, by the lemma.
    """

    number: Symbol
    count: Index
    names: rewrite.Names
    computed: tuple[Node, ...]
    counts: tuple[tuple[Symbol, Index], ...]
    divisor: Index
    known: tuple[Cond, ...] = ()


def with_coordinates(
    kernel: Kernel, number: Symbol, pairs: Pairs | None = None
) -> tuple[Kernel, tuple[Coordinates, ...]]:
    """The kernel with symbols in place of a block number where it is used by its coordinates alone, and which ones.

    A number that is turned round, count - 1 - b, is one of them. pairs: those that the number counts, if it counts any.
    """
    found: list[Coordinates] = []
    left = [number]
    while left:
        block = left.pop(0)
        counts = dict(zip(kernel.blocks, kernel.grid, strict=True))
        if block not in counts:
            continue
        roots = _roots(kernel, block)
        finders = (partial(_paired, pairs), _split, _supertiled, _from_the_end)
        ways = (find(kernel, block, counts[block], roots) for find in finders)
        here = next((way for way in ways if way is not None and _is_complete(way, roots)), None)
        if here is None:
            continue
        kernel = _rewritten(kernel, here)
        found.append(here)
        left += [symbol for symbol, _ in here.counts]
    return kernel, tuple(found)


def coordinate_obligations(kernel: Kernel, found: Sequence[Coordinates], loop: For) -> Iterator[Obligation]:
    """I28 of the computation that was replaced: it fits 32 bits, and no divisor is zero."""
    assumptions = tuple(stmt.cond for stmt in kernel.prologue if isinstance(stmt, Assume))
    for each in found:
        own = algebra.sym(each.number)
        known = (algebra.le(0, own), algebra.lt(own, each.count))
        yield from expression_divisor_obligations(loop, (algebra.floordiv(own, each.divisor),), (*assumptions, *known))
        yield from width_obligations(each.computed, loop, (*known, *each.known), "the order of tiles")


def by_coordinates(root: Node, found: Sequence[Coordinates]) -> Node:
    """An expression over a tile's number as one over its coordinates, if it depends on these alone."""
    for each in found:
        root = _renamed(root, each.names)
    return root


def _roots(kernel: Kernel, block: Symbol) -> list[Node]:
    found = (root for stmt in walk(kernel.body) for root in expressions(stmt))
    return [root for root in dict.fromkeys(found) if block in symbols(root)]


def _paired(pairs: Pairs | None, kernel: Kernel, block: Symbol, count: Index, _: Sequence[Node]) -> Coordinates | None:
    """The segment of a pair and its number within that."""
    if pairs is None or count is not pairs.count:
        return None
    segment, number = (fresh_block_symbol(kernel, name) for name in (pairs.segment.name, "number"))
    own = (algebra.sym(block),)
    parts = (pairs.segments, segment), (pairs.numbers, number)
    names: dict[Node, Index] = {algebra.read(of.name, own): algebra.sym(each) for of, each in parts}
    total = rewrite.substitute(pairs.total, {pairs.segment: algebra.sym(segment)})
    return Coordinates(block, count, NodeMap(names), (), ((segment, pairs.of), (number, total)), algebra.const(1))


def _from_the_end(kernel: Kernel, block: Symbol, count: Index, roots: Sequence[Node]) -> Coordinates | None:
    """A number by its distance from the last one, where expressions are shorter in terms of that."""
    if count is algebra.const(1):
        return None
    distance = fresh_block_symbol(kernel, f"{block.name}_from_the_end")
    names = {block: algebra.sub(count, algebra.add(algebra.sym(distance), 1))}
    if len(topological(_renamed(root, names) for root in roots)) >= len(topological(roots)):
        return None
    sums = [node for node in topological(roots) if isinstance(node, Sum) and _factor(node, block)]
    computed = tuple(algebra.mul(of, each) for each in _factors(sums, block) for of in (algebra.sym(block), count))
    return Coordinates(block, count, names, computed, ((distance, count),), algebra.const(1))


def _is_complete(found: Coordinates, roots: Sequence[Node]) -> bool:
    """Whether the number itself is not used any more."""
    return not any(found.number in symbols(_renamed(root, found.names)) for root in roots)


def _supertiled(kernel: Kernel, block: Symbol, count: Index, roots: Sequence[Node]) -> Coordinates | None:
    """The row and column of a supertiled number."""
    found = supertiles(block, count, roots)
    if found is None:
        return None
    row, column = (fresh_block_symbol(kernel, f"{block.name}_{mark}") for mark in ("row", "column"))
    names: dict[Node, Index] = {found.row: algebra.sym(row), found.column: algebra.sym(column)}
    sums = [node for node in topological(roots) if isinstance(node, Sum) and _factor(node, block)]
    names |= {node: _by_row(node, found, names, algebra.sym(row)) for node in sums if node not in names}
    computed = (found.column, *(algebra.mul(found.row, each) for each in _factors(sums, block)))
    known, counts = tuple(fact for fact, _ in found.facts), ((row, found.rows), (column, found.columns))
    return Coordinates(block, count, NodeMap(names), computed, counts, found.divisor, known)


def _factor(of: Sum, block: Symbol) -> int:
    """The factor of the block's number in a sum."""
    return dict(of.terms).get(algebra.sym(block), 0)


def _factors(sums: Sequence[Sum], block: Symbol) -> Sequence[int]:
    return tuple(dict.fromkeys(_factor(each, block) for each in sums))


def _by_row(node: Index, found: Supertiles, names: Mapping[Node, Index], row: Index) -> Index:
    factor, rest = without_row(node, found)
    return algebra.add(algebra.mul(row, factor), rewrite.substitute(rest, NodeMap(names)))


def _split(kernel: Kernel, block: Symbol, count: Index, roots: Sequence[Node]) -> Coordinates | None:
    """The quotient and remainder of a number that is used by these alone, if its count is a multiple of the divisor."""
    own = algebra.sym(block)
    uses = [node for node in topological(roots) if own in children(node)]
    divisors = {node.right for node in uses if isinstance(node, Bin) and node.op in ("//", "%") and node.left is own}
    if len(divisors) != 1 or any(root is own for root in roots):
        return None
    divisor = divisors.pop()
    quotients = without_factors(count, divisor)
    if quotients is None or algebra.mul(quotients, divisor) is not count:
        return None
    quotient, remainder = (fresh_block_symbol(kernel, f"{block.name}_{mark}") for mark in ("quotient", "remainder"))
    names: dict[Node, Index] = {
        algebra.floordiv(own, divisor): algebra.sym(quotient),
        algebra.mod(own, divisor): algebra.sym(remainder),
    }
    counts = (quotient, quotients), (remainder, divisor)
    return Coordinates(block, count, NodeMap(names), tuple(names), counts, divisor)


def _renamed(root: Node, names: rewrite.Names) -> Node:
    return cast(Node, rewrite.substitute(cast(Index, root), names))  # or a condition


def _rewritten(kernel: Kernel, found: Coordinates) -> Kernel:
    pairs = [
        pair
        for extent, block in zip(kernel.grid, kernel.blocks, strict=True)
        for pair in (found.counts if block == found.number else ((block, extent),))
    ]
    return evolve(
        kernel,
        grid=tuple(extent for _, extent in pairs),
        blocks=tuple(block for block, _ in pairs),
        prologue=tuple(rewrite.rewrite_stmt(stmt, found.names) for stmt in kernel.prologue),
    )
