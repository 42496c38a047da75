"""Index maps as templates read them: literal factors of coordinates, and indices at the places of a tile."""

from __future__ import annotations

from collections.abc import Collection

from argus.core import algebra
from argus.core.algebra.integers import linear_terms
from argus.core.index import Cond, Const, Index, Node, Sym
from argus.core.walk import substitute, symbols
from argus.nests.nest import Axis


def tile_coordinate(axis: int) -> Index:
    """The coordinate of an element of a tile along an axis, as conditions on fragments name it."""
    return algebra.coord(axis)


def literal_factors(index: Index, names: Collection[str]) -> dict[str, int] | None:
    """The factor of each of these coordinates in the index, those that occur; None if one occurs otherwise.

    So the index is the sum of factor times coordinate, and of a rest without them.
    """
    found: dict[str, int] = {}
    for atom, factor in linear_terms(index)[0]:
        if isinstance(atom, Sym) and atom.symbol.name in names:
            found[atom.symbol.name] = factor
        elif not names_in(atom).isdisjoint(names):
            return None
    return found


def names_in(part: Node) -> frozenset[str]:
    """The names of the coordinates and sizes of which the index or condition is computed."""
    return frozenset(each.name for each in symbols(part))


def coordinates_in(part: Index | Cond) -> frozenset[str]:
    """The names of the coordinates of which the index or condition is computed."""
    return frozenset(each.name for each in symbols(part) if each.kind != "size")


def literal(extent: Index) -> int | None:
    """The number that an extent is; None if it is symbolic."""
    return extent.value if isinstance(extent, Const) else None


def begins_at_multiples(number: int, axis: Axis, at: Index, extent: Index) -> bool:
    """Whether the rows of a tensor, and the runs along an axis within one, begin at multiples of a number.

    at: the last coordinate of a read. extent: of the tensor's last axis. A row of the axis alone does if the extent is
    a multiple, which is for the caller to see to.
    """
    if at is axis.index and extent is axis.extent:
        return True
    zero = algebra.const(0)
    return all(algebra.mod(each, number) is zero for each in (substitute(at, {axis.symbol: zero}), extent))


def minus(one: algebra.IndexLike, two: algebra.IndexLike) -> Index:
    return algebra.sub(one, two)
