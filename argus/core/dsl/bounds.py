"""Bounds conditions of computed views (gathers and reshapes), and exact quotients of extents."""

from __future__ import annotations

from collections.abc import Sequence

from argus.core import algebra
from argus.core.index import Bin, Cond, Const, Coord, Index, Symbol
from argus.core.walk import substitute, topological


def bounds_conditions(at: Index, extent: Index, shape: tuple[Index, ...]) -> tuple[Cond, ...]:
    """The conditions of 0 <= at < extent that may fail for some coordinates of a view of this shape."""
    if isinstance(at, Coord) and shape[at.axis] is extent:
        return ()
    ranged = substitute(at, {}, [algebra.sym(_axis_symbol(axis, size)) for axis, size in enumerate(shape)])
    low = () if algebra.le(0, ranged) is algebra.TRUE else (algebra.le(0, at),)
    return low if algebra.lt(ranged, extent) is algebra.TRUE else (*low, algebra.lt(at, extent))


def _axis_symbol(axis: int, extent: Index) -> Symbol:
    return Symbol(f"i{axis}", "fresh", 0, extent.value - 1 if isinstance(extent, Const) else None)


def coordinates_in(expressions: Sequence[Index]) -> frozenset[int]:
    """The axes whose coordinates occur in some expression."""
    return frozenset(node.axis for node in topological(expressions) if isinstance(node, Coord))


def quotient(product: Sequence[Index], divisor: Sequence[Index]) -> Index | None:
    """The product of the first extents divided by that of the second; None if factors do not cancel exactly."""
    left, number = _factors(product)
    taken, by = _factors(divisor)
    for factor in taken:
        if factor not in left:
            return None
        left.remove(factor)
    if by == 0 or number % by != 0:
        return None
    total: Index = algebra.const(number // by)
    for factor in left:
        total = algebra.mul(total, factor)
    return total


def _factors(extents: Sequence[Index]) -> tuple[list[Index], int]:
    """The symbolic factors of a product, and the product of its constant factors."""
    symbolic: list[Index] = []
    number = 1
    stack = list(extents)
    while stack:
        node = stack.pop()
        if isinstance(node, Const):
            number *= node.value
        elif isinstance(node, Bin) and node.op == "*":
            stack += [node.left, node.right]
        else:
            symbolic.append(node)
    return symbolic, number
