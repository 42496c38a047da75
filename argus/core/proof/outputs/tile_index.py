"""Grids as sets of tile coordinates: a block number split by quotient and remainder is two coordinates.

b in [0, X D) corresponds one to one to (b // D, b % D) in [0, X) x [0, D), for D >= 1: the mixed-radix lemma.
That D >= 1 is an obligation of its own (`divisors`). Numbers taken in bands
are rows and columns by the lemma of `bands`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from attrs import frozen

from argus.core import algebra
from argus.core.index import Bin, Cond, Index, Node, Sum, Sym, Symbol
from argus.core.ir import Kernel
from argus.core.proof.dataflow.separable_index import Separable, separable
from argus.core.proof.dataflow.timeline import Loop
from argus.core.proof.outputs.grid_stride import walk_of
from argus.core.proof.outputs.segments import Ragged, ragged
from argus.core.proof.outputs.supertiles import bands, factors_of, product_of, without_row
from argus.core.walk import children, fold, rebuild, symbols, topological


@frozen(eq=False)
class Raster:
    """The coordinates that tell blocks apart, each with its count, and the store's places in terms of them.

    ragged: the sequences whose rows blocks store; a row has no count of its own then. names: quotients and remainders
    as they are called now, in the order of their splitting.
    """

    counts: Mapping[Symbol, Index]
    places: tuple[Separable, ...]
    ragged: Ragged | None = None
    names: tuple[Mapping[Node, Index], ...] = ()

    def said(self, cond: Cond) -> Cond:
        """A condition on blocks in terms of their coordinates."""
        for names in self.names:
            cond = cast(Cond, _with_names(cond, names))
        return cond


def raster(kernel: Kernel, places: Sequence[Separable], loop: Loop | None = None) -> Raster:
    """The grid's own coordinates, or quotient and remainder where the places use a coordinate only so; and the number
    of a loop's iteration, where what is stored is stored in a loop that runs through no sequence's rows.
    """
    sequences = ragged(kernel, loop)
    counts: dict[Symbol, Index] = {}
    called: list[Mapping[Node, Index]] = []
    bases = [place.base for place in places]
    left = list(zip(kernel.blocks, kernel.grid, strict=True))
    if loop is not None and sequences is None:
        walk = walk_of(kernel, loop, bases)
        bases = list(walk.bases)
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
            if _descends(block, bases):
                own = Symbol(f"{block.name}_from_the_end", "block", 0)
                names = {algebra.sym(block): algebra.sub(count, algebra.add(algebra.sym(own), 1))}
                called.append(names)
                bases = [_renamed(base, names) for base in bases]
            counts[own] = count
            continue
        divisor, quotients = split
        own = algebra.sym(block)
        quotient, remainder = (Symbol(f"{block.name}_{mark}", "block", 0) for mark in ("quotient", "remainder"))
        names: dict[Node, Index] = {
            algebra.floordiv(own, divisor): algebra.sym(quotient),
            algebra.mod(own, divisor): algebra.sym(remainder),
        }
        called.append(names)
        bases = [_renamed(base, names) for base in bases]
        left += [(quotient, quotients), (remainder, divisor)]
    named = tuple(separable(base, place.table) for base, place in zip(bases, places, strict=True))
    return Raster(counts, named, sequences, tuple(called))


def _banded(
    block: Symbol, count: Index, bases: Sequence[Index]
) -> tuple[list[Index], tuple[tuple[Symbol, Index], ...]] | None:
    """The bases over row and column of a number taken in bands, and their counts; None if it is not taken so alone."""
    found = bands(block, count, bases)
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


def _descends(block: Symbol, bases: Sequence[Index]) -> bool:
    """Whether places move backwards with a coordinate, wherever they are spoken of by it."""
    own, factors = algebra.sym(block), list[int]()
    for base in bases:
        terms = base.terms if isinstance(base, Sum) else ((base, 1),)
        factors += [factor for atom, factor in terms if atom is own]
        if any(atom is not own and block in symbols(atom) for atom, _ in terms):
            return False
    return bool(factors) and all(factor < 0 for factor in factors)


def _split(block: Symbol, count: Index, bases: Sequence[Index]) -> tuple[Index, Index] | None:
    """(D, X) if the coordinate occurs only as b // D and b % D, and its count is X * D in form."""
    own = algebra.sym(block)
    divisors: set[Index] = set()
    for node in topological(bases):
        if own in children(node):
            if not isinstance(node, Bin) or node.op not in ("//", "%") or node.left is not own:
                return None
            divisors.add(node.right)
    if any(base is own for base in bases) or len(divisors) != 1:
        return None
    divisor = divisors.pop()
    found = (_without(count, divisor), algebra.floordiv(count, divisor))
    return next(((divisor, x) for x in found if x is not None and algebra.mul(x, divisor) is count), None)


def _without(count: Index, divisor: Index) -> Index | None:
    """The product of the factors of a count that are not those of a divisor."""
    rest = factors_of(count)
    for factor in factors_of(divisor):
        if factor not in rest:
            return None
        rest.remove(factor)
    return product_of(rest)


def _renamed(root: Index, names: Mapping[Node, Index]) -> Index:
    return cast(Index, _with_names(root, names))


def _with_names(root: Node, names: Mapping[Node, Index]) -> Node:
    return fold(root, lambda node, parts: names.get(node) or rebuild(node, parts))


def coordinates(base: Index, counts: Mapping[Symbol, Index]) -> tuple[tuple[Symbol, int], ...] | None:
    """The grid's coordinates that make up the expression, each with its factor, largest first; None if others do."""
    terms = base.terms if isinstance(base, Sum) else ((base, 1),)
    found: list[tuple[Symbol, int]] = []
    for atom, factor in terms:
        if not isinstance(atom, Sym) or atom.symbol not in counts or factor <= 0:
            return None
        found.append((atom.symbol, factor))
    return tuple(sorted(found, key=lambda pair: -pair[1]))
