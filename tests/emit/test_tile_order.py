"""The order of tiles that dies share is one to one for every grid: proved by both solvers, of the helper's formulas.

That the emitted helper computes these formulas is executed in test_pingpong.py.
"""

from __future__ import annotations

import pytest

from argus.core.algebra import add, all_of, eq, floordiv, le, lt, minimum, mod, mul, negate, pick, sub, sym
from argus.core.index import Cond, Index, Symbol
from argus.core.query import Budget, Query, Unsat
from argus.emit.hip.tile_order import REMAP
from argus.solvers.registry import get

DIES = 8
SHARE, LEFT, TURN, OTHER = (sym(Symbol(name, "fresh", 0)) for name in ("share", "left", "turn", "other"))
"""Tiles are DIES * SHARE + LEFT; the blocks of a die are numbered by turns."""
TOTAL = add(mul(SHARE, DIES), LEFT)


def proved(solver: str, claim: Cond, *known: Cond) -> bool:
    return isinstance(get(solver).check(Query((*known, negate(claim))), Budget()), Unsat)


def number(die: int, turn: Index) -> Index:
    return add(mul(turn, DIES), die)


def tile(die: int, turn: Index) -> Index:
    return pick(lt(number(die, turn), mul(SHARE, DIES)), add(mul(SHARE, die), turn), number(die, turn))


@pytest.mark.parametrize("solver", ["z3", "cvc5"])
@pytest.mark.parametrize("die", [0, 3, 7])
def test_blocks_and_tiles_correspond_one_to_one(die: int, solver: str) -> None:
    """Of any number of tiles: each block has a tile of the grid, and no block of any die has the same."""
    known = lt(LEFT, DIES), lt(number(die, TURN), TOTAL)
    own = tile(die, TURN)
    assert proved(solver, all_of((le(0, own), lt(own, TOTAL))), *known)
    for other in range(DIES):
        unlike = negate(eq(number(other, OTHER), number(die, TURN)))
        assert proved(solver, negate(eq(own, tile(other, OTHER))), *known, lt(number(other, OTHER), TOTAL), unlike)
    assert "const long share = (long)rows * columns / 8;" in REMAP
    assert "number < share * 8 ? number % 8 * share + number / 8 : number;" in REMAP


def test_without_its_exception_for_the_remainder_two_blocks_share_a_tile() -> None:
    known = lt(LEFT, DIES), lt(number(1, TURN), TOTAL), lt(number(2, OTHER), TOTAL)
    assert not proved("z3", negate(eq(add(SHARE, TURN), add(mul(SHARE, 2), OTHER))), *known)


@pytest.mark.parametrize("solver", ["z3", "cvc5"])
@pytest.mark.parametrize("height", [1, 2, 4])
def test_tiles_and_coordinates_correspond_one_to_one(height: int, solver: str) -> None:
    """Of any rows and columns: a tile's number in its band, and the band, are computed back from row and column, which
    are in the grid. The last band may have fewer rows.
    """
    rows, columns, band, within = (sym(Symbol(name, "fresh", 0)) for name in ("rows", "columns", "band", "within"))
    for high in range(1, height + 1):
        above = mul(band, height)
        known = eq(minimum(height, sub(rows, above)), high), lt(within, mul(columns, high)), le(1, columns)
        row, column = add(above, mod(within, high)), floordiv(within, high)
        assert proved(solver, all_of((lt(row, rows), lt(column, columns))), *known)
        assert proved(solver, eq(floordiv(row, height), band), *known)
        assert proved(solver, eq(add(mul(column, high), sub(row, above)), within), *known)
    assert "return {band * height + within % high, within / high};" in REMAP
