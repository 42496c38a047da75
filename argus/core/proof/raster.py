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
from argus.core.index import Bin, Index, Node, Sum, Sym, Symbol
from argus.core.ir import Kernel
from argus.core.proof.bands import bands, without_row
from argus.core.proof.ragged import Ragged, ragged
from argus.core.proof.separate import Sep
from argus.core.proof.timeline import Loop
from argus.core.walk import children, fold, rebuild, symbols, topological


@frozen(eq=False)
class Raster:
    """The coordinates that tell blocks apart, each with its count, and the store's places in terms of them.

    ragged: the sequences whose rows blocks store; a row has no count of its own then.
    """

    counts: Mapping[Symbol, Index]
    places: tuple[Sep, ...]
    ragged: Ragged | None = None


def raster(kernel: Kernel, places: Sequence[Sep], loop: Loop | None = None) -> Raster:
    """The grid's own coordinates, or quotient and remainder where the places use a coordinate only so; and the loop's
    variable, which counts up from 0, where what is stored is stored in a loop.
    """
    sequences = ragged(kernel, loop)
    counts: dict[Symbol, Index] = {} if loop is None or sequences is not None else {loop.symbol: loop.trips}
    names: dict[Node, Index] = {}
    bases = [place.base for place in places]
    for block, count in zip(kernel.blocks, kernel.grid, strict=True):
        banded = _banded(block, count, bases)
        if banded is not None:
            bases, found = banded
            counts |= found
            continue
        split = _split(block, count, bases)
        if split is None:
            counts[block] = count
            continue
        divisor, quotients = split
        own = algebra.sym(block)
        for op, extent, mark in (("//", quotients, "quotient"), ("%", divisor, "remainder")):
            symbol = Symbol(f"{block.name}_{mark}", "block", 0)
            counts[symbol] = extent
            made = algebra.floordiv(own, divisor) if op == "//" else algebra.mod(own, divisor)
            names[made] = algebra.sym(symbol)
    pairs = zip(bases, places, strict=True)
    named = tuple(Sep(_renamed(base, names) if names else base, place.table) for base, place in pairs)
    return Raster(counts, named, sequences)


def _banded(block: Symbol, count: Index, bases: Sequence[Index]) -> tuple[list[Index], dict[Symbol, Index]] | None:
    """The bases over row and column of a number taken in bands, and their counts; None if it is not taken so alone."""
    found = bands(block, count, bases)
    if found is None:
        return None
    row, column = (Symbol(f"{block.name}_{mark}", "block", 0) for mark in ("row", "column"))
    moved: list[Index] = []
    for base in bases:
        factor, rest = without_row(base, found)
        named = _renamed(rest, {found.column: algebra.sym(column)})
        moved.append(algebra.add(algebra.mul(algebra.sym(row), factor), named))
    if any(block in symbols(base) for base in moved):
        return None
    return moved, {row: found.rows, column: found.columns}


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
    factors = (count.left, count.right) if isinstance(count, Bin) and count.op == "*" else ()
    quotients = (*factors, algebra.floordiv(count, divisor))
    found = next((x for x in quotients if algebra.mul(x, divisor) is count), None)
    return None if found is None else (divisor, found)


def _renamed(root: Index, names: Mapping[Node, Index]) -> Index:
    return cast(Index, fold(root, lambda node, parts: names.get(node) or rebuild(node, parts)))


def coordinates(base: Index, counts: Mapping[Symbol, Index]) -> tuple[tuple[Symbol, int], ...] | None:
    """The grid's coordinates that make up the expression, each with its factor, largest first; None if others do."""
    terms = base.terms if isinstance(base, Sum) else ((base, 1),)
    found: list[tuple[Symbol, int]] = []
    for atom, factor in terms:
        if not isinstance(atom, Sym) or atom.symbol not in counts or factor <= 0:
            return None
        found.append((atom.symbol, factor))
    return tuple(sorted(found, key=lambda pair: -pair[1]))
