"""Tiles taken along a curve, in the line of one tile: row and column stand in the place of the tile's number.

That they are one to one with the number is the lemma of `core.curves`.
"""

from __future__ import annotations

from collections.abc import Iterator

from argus.core import algebra
from argus.core.check import expressions
from argus.core.hilbert_order import HilbertTile
from argus.core.index import Index, Node, Symbol
from argus.core.ir import For, Stmt, walk
from argus.core.ir.rewrite import NodeMap, in_stmt
from argus.core.proof.obligation import Obligation
from argus.core.proof.values.recognisers.squares import squares

ROW, COLUMN = (Symbol(f"tile_{name}", "block", 0, None) for name in ("row", "column"))
_MOST = 1 << 29


def curve_of(body: tuple[Stmt, ...], number: Symbol, total: Index) -> HilbertTile | None:
    """The curve that the tile's number is taken along; None if it is not."""
    roots: list[Node] = [root for stmt in walk(body) for root in expressions(stmt)]
    return squares(number, total, roots)


def by_place(body: tuple[Stmt, ...], found: HilbertTile) -> tuple[Stmt, ...]:
    """The statements with row and column as symbols."""
    names: dict[Node, Index] = {found.row: algebra.sym(ROW), found.column: algebra.sym(COLUMN)}
    return tuple(in_stmt(stmt, NodeMap(names)) for stmt in body)


def obligations(rows: Index, columns: Index, total: Index, loop: For) -> Iterator[Obligation]:
    """I28 of what the line leaves out: where a tile lies is computed in 32 bits, and divides by no zero."""
    count = algebra.mul(rows, columns)
    what, help_ = "a tile's place along the curve", "`assume` that there are fewer tiles than 2^29"
    yield Obligation("I28", f"{what} computes in 32 bits", loop, algebra.lt(count, _MOST), (), help=help_)
    some = (algebra.le(1, total), algebra.le(0, rows))
    yield Obligation("I28", f"{what} divides by no zero", loop, algebra.le(1, columns), some)
