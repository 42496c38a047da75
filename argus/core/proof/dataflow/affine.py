"""Recovers affine expressions of element coordinates from tables over a register tile."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from argus.core import algebra
from argus.core.index import Cond, Coord, Index, Node, Symbol
from argus.core.layout import TV
from argus.core.walk import IntArray, mentions, substitute, topological


def affine(table: IntArray, layout: TV) -> Index | None:
    """The affine expression of element coordinates that equals a table over a register tile; None if there is none."""
    found: Index = algebra.const(0)
    rest = table
    for axis, coordinate in enumerate(layout.coordinates()):
        places = np.broadcast_to(coordinate, table.shape)
        one = np.flatnonzero((places == 1).ravel())
        if one.size:
            others = [np.broadcast_to(c, table.shape).ravel() for a, c in enumerate(layout.coordinates()) if a != axis]
            at = next((i for i in one.tolist() if all(int(other[i]) == 0 for other in others)), None)
            zero = np.flatnonzero(
                (places == 0).ravel() & np.all([o == 0 for o in others], axis=0) if others else (places == 0).ravel()
            )
            if at is None or not zero.size:
                return None
            step = int(table.ravel()[at] - table.ravel()[zero[0]])
            rest = rest - places * step
            found = algebra.add(found, algebra.mul(algebra.coord(axis), step))
    return algebra.add(found, int(rest.flat[0])) if bool((rest == rest.flat[0]).all()) else None


def affine_over(layout: TV) -> Callable[[IntArray], Index | None]:
    """The function `affine` for tables over one register tile; None for tables of another shape."""
    shape = layout.threads.size(), layout.values.size()
    return lambda table: affine(table, layout) if table.shape == shape else None


def at_any_element(cond: Cond, layout: TV) -> Cond:
    """A condition on element coordinates at an arbitrary element of the tile, one fresh symbol per axis."""
    if not mentions(cond, (Coord,)):
        return cond
    return substitute(cond, {}, any_place(layout))


def any_place(layout: TV) -> tuple[Index, ...]:
    """The coordinates of an arbitrary element of a tile, as fresh symbols."""
    places = (Symbol(f"at_{axis}", "fresh", 0, extent - 1) for axis, extent in enumerate(layout.tile))
    return tuple(map(algebra.sym, places))


def coordinate_axes(*roots: Node) -> frozenset[int]:
    """The axes of a tile whose coordinates occur in the expressions."""
    return frozenset(node.axis for node in topological(roots) if isinstance(node, Coord))
