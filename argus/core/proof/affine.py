"""Tables over a register tile as expressions of its elements' coordinates."""

from __future__ import annotations

import numpy as np

from argus.core import algebra
from argus.core.index import Index
from argus.core.layout import TV
from argus.core.walk import IntArray


def affine(table: IntArray, held: TV) -> Index | None:
    """A table over a register tile as an affine expression of the elements' coordinates; None if it is none."""
    found: Index = algebra.const(0)
    rest = table
    for axis, coordinate in enumerate(held.coordinates()):
        places = np.broadcast_to(coordinate, table.shape)
        one = np.flatnonzero((places == 1).ravel())
        if one.size:
            others = [np.broadcast_to(c, table.shape).ravel() for a, c in enumerate(held.coordinates()) if a != axis]
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
