"""Tiles in squares along a curve, recognised in the expressions of a number by the lemma of `core.curves`.

The lemma presumes that the curve is one to one onto its square: that is looked at here, number by number.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from argus.core import algebra
from argus.core.hilbert_order import SIDES, HilbertTile, hilbert_tile, square_coordinates
from argus.core.index import Index, Node, Pick, Symbol
from argus.core.proof.outputs.supertiles import factor_pairs
from argus.core.walk import evaluate, topological


def squares(block: Symbol, count: Index, roots: Sequence[Node]) -> HilbertTile | None:
    """The squares that expressions of a block's number speak of; None if they speak of none."""
    found = frozenset(topological(roots))
    for rows, columns in factor_pairs(count):
        for side in SIDES:
            made = hilbert_tile(algebra.sym(block), rows, columns, side)
            # Of few tiles a place may be a plain number, which stands for other things too.
            own = isinstance(made.row, Pick) and isinstance(made.column, Pick)
            if own and (made.row in found or made.column in found) and fills(side):
                return made
    return None


@lru_cache(maxsize=4)
def fills(side: int) -> bool:
    """Whether the curve goes through every tile of its square once."""
    number = Symbol("number", "fresh", 0, side * side - 1)
    numbers = {number: np.arange(side * side)}
    row, column = (np.asarray(evaluate(each, numbers, ())) for each in square_coordinates(algebra.sym(number), side))
    inside = ((row >= 0) & (row < side) & (column >= 0) & (column < side)).all()
    return bool(inside) and len(np.unique(row * side + column)) == side * side
