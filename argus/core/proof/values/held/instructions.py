"""What one matrix instruction adds to each element of its accumulator: a sum of products over k."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from argus.core import algebra
from argus.core.index import Index, Symbol
from argus.core.ir import Mma
from argus.core.proof.values.held.folds import Range, lattice, reduction
from argus.core.proof.values.held.tables import BoolArray, Tables
from argus.core.proof.values.held.terms import replaced, unknown
from argus.core.proof.values.products import fragment_shape, holders
from argus.core.tiling import operands
from argus.core.values.expr import Expr, fn
from argus.core.walk import IntArray

Array = TypeVar("Array", IntArray, BoolArray)


def _by_row(table: Array) -> Array:
    """(wave, repeat, row, elements along k) of a table by (wave, repeat, k repeat, row, k)."""
    return np.moveaxis(table, 2, 3).reshape(*table.shape[:2], table.shape[3], -1)


def multiplied(tables: Tables, stmt: Mma, a: Expr, b: Expr) -> Expr:
    """a b^T over the elements of the accumulator.

    A number that varies over an operand has to be a part that depends on the row plus a part that depends on k; the
    parts along k of both operands have to be those of nested ranges.
    """
    rows: list[list[tuple[Symbol, IntArray]]] = []
    depth: list[IntArray] = []
    count = 0
    for side, whole in (("a", a), ("b", b)):
        held = holders(stmt, side)
        mine: list[tuple[Symbol, IntArray]] = []
        count = held.thread.shape[2] * held.thread.shape[4]
        needed = tables.needed(whole)
        for name in tables.of(whole):
            by_row = _by_row(tables.known[name][held.thread, held.value])
            rows_needed = _by_row(needed[name][held.thread, held.value]).any(-1)
            delta = by_row - by_row[..., :1]
            one = delta[rows_needed][0] if rows_needed.any() else delta[0, 0, 0]
            if not bool((delta[rows_needed] == one).all()):
                return unknown("an operand whose rows hold unlike elements along k")
            mine.append((name, by_row[..., 0]))
            depth.append(one)
        rows.append(mine)
    columns = np.stack(depth) if depth else np.zeros((1, count), np.int64)
    order = np.lexsort(columns[::-1])
    start = columns[:, order[0]]
    found = lattice(columns[:, order] - start[:, None])
    if found is None:
        return unknown("operands whose elements along k lie at no regular places")
    ranges = [
        Range(Symbol(f"~fold{number}", "fresh", 0), algebra.const(extent)) for number, (extent, _) in enumerate(found)
    ]
    c = operands(stmt.atom, stmt.tiling, "c")
    shape = fragment_shape(stmt)
    sides: list[Expr] = []
    row = 0
    for whole, mine, axis in ((a, rows[0], 2), (b, rows[1], 1)):
        at: dict[Symbol, Index] = {}
        for name, first in mine:
            spread = np.zeros(shape, np.int64)
            wide = first[:, :, None, :, None] if axis == 2 else first[:, None, :, None, :]
            spread[c.thread, c.value] = np.broadcast_to(wide, c.thread.shape)
            steps = (
                algebra.mul(algebra.sym(each.variable), int(step[row]))
                for each, (_, step) in zip(ranges, found, strict=True)
            )
            at[name] = algebra.add(tables.index(spread + start[row]), *steps)
            row += 1
        sides.append(replaced(whole, at))
    return reduction("sum", ranges, fn("mul", *sides))
