"""Grids as sets of tile coordinates: a block number split by quotient and remainder is two coordinates.

b in [0, X D) corresponds one to one to (b // D, b % D) in [0, X) x [0, D), for D >= 1: the mixed-radix lemma.
That D >= 1 is an obligation of its own (`divisors`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from attrs import frozen

from argus.core import algebra
from argus.core.index import Bin, Index, Node, Sum, Sym, Symbol
from argus.core.ir import Kernel
from argus.core.proof.separate import Sep
from argus.core.walk import children, fold, rebuild, topological


@frozen(eq=False)
class Raster:
    """The coordinates that tell blocks apart, each with its count, and the store's places in terms of them."""

    counts: Mapping[Symbol, Index]
    places: tuple[Sep, ...]


def raster(kernel: Kernel, places: Sequence[Sep]) -> Raster:
    """The grid's own coordinates, or quotient and remainder where the places use a coordinate only so."""
    counts: dict[Symbol, Index] = {}
    names: dict[Node, Index] = {}
    for block, count in zip(kernel.blocks, kernel.grid, strict=True):
        split = _split(block, count, [place.base for place in places])
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
    moved = tuple(Sep(_renamed(place.base, names), place.table) for place in places) if names else tuple(places)
    return Raster(counts, moved)


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


def only_coordinate(base: Index, counts: Mapping[Symbol, Index]) -> tuple[Symbol, int] | None:
    """(coordinate, factor) if `factor * coordinate` is all that the expression is."""
    terms = base.terms if isinstance(base, Sum) else ((base, 1),)
    if len(terms) != 1:
        return None
    atom, factor = terms[0]
    return (atom.symbol, factor) if isinstance(atom, Sym) and atom.symbol in counts and factor > 0 else None
