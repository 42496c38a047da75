"""Decomposes grid coordinates into tile coordinates, by quotient and remainder or by supertiles.

b in [0, X D) corresponds one to one to (b // D, b % D) in [0, X) x [0, D), for D >= 1: the mixed-radix lemma. For any
count C, b in [0, C) corresponds to the pairs (q, r) in [0, ceil(C / D)) x [0, D) with q D + r < C. Where C = X Y and
D = h Y, ceil(C / D) = ceil(X / h), and if h divides X these are all pairs. That D >= 1 is a separate obligation
(`divisors`). Supertiled numbers become rows and columns by the lemma of `supertiles`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from attrs import frozen

from argus.core import algebra
from argus.core.index import Bin, Cond, Const, Index, Node, Sum, Sym, Symbol
from argus.core.ir import Kernel
from argus.core.proof.dataflow.separable_index import Separable, separable
from argus.core.proof.dataflow.timeline import Loop
from argus.core.proof.outputs.grid_stride import tile_sequence
from argus.core.proof.outputs.segments import Segments, row_segments
from argus.core.proof.outputs.supertiles import (
    factor_pairs,
    multiple_of,
    supertiles,
    without_factors,
    without_row,
)
from argus.core.walk import children, fold, rebuild, symbols, topological


@frozen(eq=False)
class TileGrid:
    """The coordinates that identify a block, each with its count, and the store's indices in terms of them.

    ragged: the segments whose rows blocks store one by one, if any, and row: the variable of that loop, which has no
    count. names: the symbols that replaced quotients and remainders, in the order of the splits. guard: the condition
    of the stores.
    """

    counts: Mapping[Symbol, Index]
    places: tuple[Separable, ...]
    ragged: Segments | None = None
    row: Symbol | None = None
    names: tuple[Mapping[Node, Index], ...] = ()
    guard: Cond = algebra.TRUE

    def translate(self, cond: Cond) -> Cond:
        """A condition on blocks in terms of the tile coordinates."""
        return _translated(cond, self.names)


def _translated(cond: Cond, called: Sequence[Mapping[Node, Index]]) -> Cond:
    for names in called:
        cond = cast(Cond, _with_names(cond, names))
    return cond


def tile_grid(
    kernel: Kernel, places: Sequence[Separable], loop: Loop | None = None, guard: Cond = algebra.TRUE
) -> TileGrid:
    """The grid's coordinates, split into quotient and remainder where the places use them only so.

    A loop that stores contributes its iteration number as a coordinate, unless it runs through the rows of a segment.
    """
    sequences = row_segments(kernel, loop)
    counts: dict[Symbol, Index] = {}
    called: list[Mapping[Node, Index]] = []
    bases = [place.base for place in places]
    left = list(zip(kernel.blocks, kernel.grid, strict=True))
    if loop is not None and sequences is None:
        walk = tile_sequence(kernel, loop, bases, guard)
        bases, guard = list(walk.bases), walk.guard
        left = [(walk.number, walk.count), *(pair for pair in left if pair[0] != walk.block)]
    while left:
        block, count = left.pop(0)
        banded = _banded(block, count, bases)
        if banded is not None:
            bases, found = banded
            left += found
            continue
        split = _split(block, count, bases)
        if split is None:
            own = block
            if _is_descending(block, bases):
                own = Symbol(f"{block.name}_from_the_end", "block", 0)
                names = {algebra.sym(block): algebra.sub(count, algebra.add(algebra.sym(own), 1))}
                called.append(names)
                bases = [_renamed(base, names) for base in bases]
            counts[own] = count
            continue
        own = algebra.sym(block)
        quotient, remainder = (Symbol(f"{block.name}_{mark}", "block", 0) for mark in ("quotient", "remainder"))
        number = algebra.add(algebra.mul(algebra.sym(quotient), split.divisor), algebra.sym(remainder))
        names: dict[Node, Index] = {
            algebra.floordiv(own, split.divisor): algebra.sym(quotient),
            algebra.mod(own, split.divisor): algebra.sym(remainder),
            own: number,
        }
        for larger, multiple in split.larger:
            names[algebra.floordiv(own, larger)] = algebra.floordiv(algebra.sym(quotient), multiple)
            inner = algebra.mul(algebra.mod(algebra.sym(quotient), multiple), split.divisor)
            names[algebra.mod(own, larger)] = algebra.add(inner, algebra.sym(remainder))
        called.append(names)
        bases = [_renamed(base, names) for base in bases]
        guard = algebra.all_of((guard, algebra.any_of((split.whole, algebra.lt(number, count)))))
        left += [(quotient, split.quotients), (remainder, split.divisor)]
    named = tuple(separable(base, place.table) for base, place in zip(bases, places, strict=True))
    row = None if loop is None or sequences is None else loop.symbol
    return TileGrid(counts, named, sequences, row, tuple(called), _translated(guard, called))


def _banded(
    block: Symbol, count: Index, bases: Sequence[Index]
) -> tuple[list[Index], tuple[tuple[Symbol, Index], ...]] | None:
    """The bases over row and column of a supertiled number, with their counts; None if it is used in another way."""
    found = supertiles(block, count, bases)
    if found is None:
        return None
    row, column = (Symbol(f"{block.name}_{mark}", "block", 0) for mark in ("row", "column"))
    names: dict[Node, Index] = {found.row: algebra.sym(row), found.column: algebra.sym(column)}
    moved: list[Index] = []
    for base in bases:
        factor, rest = without_row(base, found)
        moved.append(algebra.add(algebra.mul(algebra.sym(row), factor), _renamed(rest, names)))
    if any(block in symbols(base) for base in moved):
        return None
    return moved, ((row, found.rows), (column, found.columns))


def _is_descending(block: Symbol, bases: Sequence[Index]) -> bool:
    """Whether every base that depends on a coordinate decreases linearly in it."""
    own, factors = algebra.sym(block), list[int]()
    for base in bases:
        terms = base.terms if isinstance(base, Sum) else ((base, 1),)
        factors += [factor for atom, factor in terms if atom is own]
        if any(atom is not own and block in symbols(atom) for atom, _ in terms):
            return False
    return bool(factors) and all(factor < 0 for factor in factors)


@frozen(eq=False)
class _Split:
    """A coordinate b as b // D and b % D.

    quotients: the count of quotients. whole: a condition on sizes under which all pairs occur. larger: other
    divisors of b, each with the multiple of D that it is.
    """

    divisor: Index
    quotients: Index
    whole: Cond
    larger: tuple[tuple[int, int], ...] = ()


def _split(block: Symbol, count: Index, bases: Sequence[Index]) -> _Split | None:
    """The split by D if b occurs only as b // D and b % D, and its count is X * D, or X * Y where D = h * Y.

    Of several divisors, all literal, D is the one that divides the others: b // (D k) is (b // D) // k.
    """
    own = algebra.sym(block)
    divisors: set[Index] = set()
    for node in topological(bases):
        if own in children(node):
            if not isinstance(node, Bin) or node.op not in ("//", "%") or node.left is not own:
                return None
            divisors.add(node.right)
    least = _common(divisors)
    if any(base is own for base in bases) or least is None:
        return None
    divisor, larger = least
    found = (without_factors(count, divisor), algebra.floordiv(count, divisor))
    exact = next((x for x in found if x is not None and algebra.mul(x, divisor) is count), None)
    if exact is not None:
        return _Split(divisor, exact, algebra.TRUE, larger)
    for number, other in factor_pairs(count):
        height = multiple_of(divisor, other)
        if height is not None:
            whole = algebra.eq(algebra.mod(number, height), 0)
            return _Split(divisor, algebra.floordiv(algebra.add(number, height - 1), height), whole, larger)
    return None


def _common(divisors: set[Index]) -> tuple[Index, tuple[tuple[int, int], ...]] | None:
    """The divisor that divides all others, and those, each with the multiple that it is; None if there is none."""
    if len(divisors) == 1:
        return next(iter(divisors)), ()
    numbers = sorted(each.value for each in divisors if isinstance(each, Const))
    if not numbers or len(numbers) < len(divisors) or not _divides(numbers[0], numbers):
        return None
    return algebra.const(numbers[0]), tuple((each, each // numbers[0]) for each in numbers[1:])


def _divides(number: int, others: Sequence[int]) -> bool:
    return not any(each % number for each in others)


def _renamed(root: Index, names: Mapping[Node, Index]) -> Index:
    return cast(Index, _with_names(root, names))


def _with_names(root: Node, names: Mapping[Node, Index]) -> Node:
    return fold(root, lambda node, parts: names.get(node) or rebuild(node, parts))


def coordinate_terms(base: Index, counts: Mapping[Symbol, Index]) -> tuple[tuple[Symbol, int], ...] | None:
    """The grid coordinates of a linear expression with their factors, largest first; None if it has other terms."""
    terms = base.terms if isinstance(base, Sum) else ((base, 1),)
    found: list[tuple[Symbol, int]] = []
    for atom, factor in terms:
        if not isinstance(atom, Sym) or atom.symbol not in counts or factor <= 0:
            return None
        found.append((atom.symbol, factor))
    return tuple(sorted(found, key=lambda pair: -pair[1]))
