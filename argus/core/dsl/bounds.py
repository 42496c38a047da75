"""Where a computed view ends: conditions on coordinates, left out where they always hold."""

from __future__ import annotations

from collections.abc import Sequence

from argus.core import algebra
from argus.core.index import Bin, Cond, Const, Coord, Index, Symbol
from argus.core.walk import substitute, topological


def inside(at: Index, extent: Index, shape: tuple[Index, ...]) -> tuple[Cond, ...]:
    """What of 0 <= at < extent does not hold for all coordinates of a view of this shape."""
    if isinstance(at, Coord) and shape[at.axis] is extent:
        return ()
    ranged = substitute(at, {}, [algebra.sym(_of_axis(axis, size)) for axis, size in enumerate(shape)])
    low = () if algebra.le(0, ranged) is algebra.TRUE else (algebra.le(0, at),)
    return low if algebra.lt(ranged, extent) is algebra.TRUE else (*low, algebra.lt(at, extent))


def _of_axis(axis: int, extent: Index) -> Symbol:
    return Symbol(f"i{axis}", "fresh", 0, extent.value - 1 if isinstance(extent, Const) else None)


def coordinates_in(expressions: Sequence[Index]) -> frozenset[int]:
    """The axes whose coordinates occur."""
    return frozenset(node.axis for node in topological(expressions) if isinstance(node, Coord))


def quotient(product: Sequence[Index], divisor: Sequence[Index]) -> Index | None:
    """The product of extents over that of some of them; None unless it is one of the factors that are left."""
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
    """Symbolic factors, and the product of the numbers."""
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
