"""Tiles in Hilbert order: replaces the tile's number in the sequential kernel by its row and column.

That row and column correspond one to one to the number is the lemma of `core.hilbert_order`.
"""

from __future__ import annotations

from collections.abc import Iterator

from argus.core import algebra
from argus.core.check import expressions
from argus.core.hilbert_order import HilbertTile
from argus.core.index import Index, Node, Symbol
from argus.core.ir import For, Kernel, Stmt, walk
from argus.core.ir.rewrite import NodeMap, rewrite_stmt
from argus.core.proof.obligation import Obligation
from argus.core.proof.sync.roles.hilbert_squares import squares

ROW, COLUMN = (Symbol(f"tile_{name}", "block", 0, None) for name in ("row", "column"))
_MOST = 1 << 29


def find_hilbert_order(body: tuple[Stmt, ...], number: Symbol, total: Index) -> HilbertTile | None:
    """The Hilbert order in which the body uses the tile's number; None if it does not."""
    roots: list[Node] = [root for stmt in walk(body) for root in expressions(stmt)]
    return squares(number, total, roots)


def substitute_coordinates(body: tuple[Stmt, ...], found: HilbertTile) -> tuple[Stmt, ...]:
    """The statements with the tile's row and column as symbols."""
    names: dict[Node, Index] = {found.row: algebra.sym(ROW), found.column: algebra.sym(COLUMN)}
    return tuple(rewrite_stmt(stmt, NodeMap(names)) for stmt in body)


def hilbert_obligations(line: Kernel, total: Index, loop: For) -> Iterator[Obligation]:
    """I28 of the computation that was replaced in the sequential kernel: it fits 32 bits, and no divisor is zero."""
    counts = dict(zip(line.blocks, line.grid, strict=True))
    if ROW not in counts:
        return
    rows, columns = counts[ROW], counts[COLUMN]
    count = algebra.mul(rows, columns)
    what, help_ = "the Hilbert order of tiles", "`assume` that there are fewer tiles than 2^29"
    yield Obligation("I28", f"{what} is computed in 32 bits", loop, algebra.lt(count, _MOST), (), help=help_)
    some = (algebra.le(1, total), algebra.le(0, rows))
    yield Obligation("I28", f"{what} does not divide by zero", loop, algebra.le(1, columns), some)
