"""Integers that vary over threads and values: a symbolic part, the same for all, plus a table of numbers.

`Sep(base, table)` is `base + table[t, v]`. Copies, layouts and slicing stay inside the form; equality of two
is equality of tables and of bases, and needs no solver where the bases are one node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never, cast

import numpy as np
from attrs import frozen

from argus.core import algebra
from argus.core.index import (
    And,
    Bin,
    Cmp,
    Cond,
    Const,
    Coord,
    Held,
    Index,
    Node,
    Not,
    Or,
    Pick,
    Read,
    Sum,
    Sym,
    Symbol,
)
from argus.core.proof.timeline import Shift
from argus.core.walk import IntArray, apply, children, number, substitute, topological


@frozen(eq=False)
class Sep:
    """`base + table`; the base mentions no coordinate and no thread and has no constant term."""

    base: Index
    table: IntArray

    @property
    def low(self) -> int:
        return int(self.table.min())

    @property
    def high(self) -> int:
        return int(self.table.max())

    @property
    def uniform(self) -> bool:
        return self.low == self.high

    @property
    def least(self) -> Index:
        return algebra.add(self.base, self.low)

    @property
    def most(self) -> Index:
        return algebra.add(self.base, self.high)

    def at(self, index: tuple[IntArray, ...] | IntArray) -> Sep:
        """The same quantity looked up at other (thread, value) places."""
        return Sep(self.base, self.table[index])

    def shifted(self, shift: Shift) -> Sep:
        return self if not shift else separate(substitute(self.base, shift), self.table)


def different(places: Sequence[Sep]) -> int:
    """How many different tuples the tables of these places hold, element by element."""
    cells = np.zeros(places[0].table.shape, np.int64)
    box = 1
    for place in places:
        extent = place.high - place.low + 1
        cells = cells * extent + (place.table - place.low)
        box *= extent
    if box >= 1 << 62:
        return int(np.unique(np.stack([place.table.ravel() for place in places]), axis=1).shape[1])
    if box > 4 * cells.size:
        return int(np.unique(cells).size)
    return int(np.count_nonzero(np.bincount(cells.ravel(), minlength=box)))


def separate(base: Index, table: IntArray) -> Sep:
    """Normal form: the constant term of the base goes into the table."""
    constant = base.value if isinstance(base, Const) else base.constant if isinstance(base, Sum) else 0
    if constant == 0:
        return Sep(base, table)
    return Sep(algebra.sub(base, constant), table + constant)


def numbers(table: IntArray) -> Sep:
    return Sep(algebra.const(0), table)


def evaluate(expression: Index, coords: Sequence[Sep], thread: Symbol, shape: tuple[int, int]) -> Sep | None:
    """The expression over a fragment of this shape; None where symbols and coordinates do not come apart.

    shape: (threads, values). `thread` is the symbol that counts threads.
    """
    values: dict[Node, Sep | None] = {}
    for node in topological([expression]):
        parts = [values.get(child) for child in children(node)]
        values[node] = _visit(node, parts, coords, thread, shape)
    return values[expression]


def _visit(
    node: Node, parts: Sequence[Sep | None], coords: Sequence[Sep], thread: Symbol, shape: tuple[int, int]
) -> Sep | None:
    zero = np.zeros(shape, np.int64)
    match node:
        case Const(value=value):
            return numbers(zero + value)
        case Sym(symbol=symbol):
            if symbol == thread:
                return numbers(zero + np.arange(shape[0], dtype=np.int64)[:, None])
            return Sep(node, zero)
        case Coord(axis=axis):
            return coords[axis]
        case Sum(terms=terms, constant=constant):
            return _sum(parts, [factor for _, factor in terms], constant, zero)
        case Bin():
            left, right = parts
            return None if left is None or right is None else _bin(node, left, right)
        case Read(array=array):
            return _element(array, parts, zero)
        case Pick() | Held():
            return None
        case Cmp() | And() | Or() | Not():
            return None
        case _:
            assert_never(node)


def _element(array: str, parts: Sequence[Sep | None], zero: IntArray) -> Sep | None:
    """An integer from memory that is one for all threads and values."""
    at = [part.least for part in parts if part is not None and part.uniform]
    return None if len(at) < len(parts) else Sep(algebra.read(array, at), zero)


def _sum(parts: Sequence[Sep | None], factors: Sequence[int], constant: int, zero: IntArray) -> Sep | None:
    table = zero + constant
    base: list[tuple[Index, int]] = []
    for part, factor in zip(parts, factors, strict=True):
        if part is None:
            return None
        base.append((part.base, factor))
        table = table + part.table * factor
    return separate(algebra.linear(base, 0), table)


def _bin(node: Bin, left: Sep, right: Sep) -> Sep | None:
    pure_left, pure_right = left.base is algebra.const(0), right.base is algebra.const(0)
    if node.op in ("//", "%") and pure_right and (right.table == 0).any():
        return None
    if pure_left and pure_right:
        return numbers(cast(IntArray, number(node.op, left.table, right.table)))
    if left.uniform and right.uniform:
        whole = apply(node.op, left.least, right.least)
        return separate(whole, np.zeros_like(left.table))
    if node.op == "*" and ((pure_left and left.uniform) or (pure_right and right.uniform)):
        scaled, factor = (right, left.low) if pure_left else (left, right.low)
        return separate(algebra.mul(scaled.base, factor), scaled.table * factor)
    if node.op in ("//", "%") and pure_right and right.uniform:
        return _divide(node, left, right.low)
    return None


def _divide(node: Bin, left: Sep, divisor: int) -> Sep | None:
    """Exact where the symbolic part is a visible multiple of the divisor."""
    if divisor <= 0 or algebra.mod(left.base, divisor) is not algebra.const(0):
        return None
    if node.op == "%":
        return numbers(left.table % divisor)
    return separate(algebra.floordiv(left.base, divisor), left.table // divisor)


def same(a: Sep, b: Sep) -> Cond:
    """The condition that the two agree everywhere; false where tables make that impossible."""
    if a.table.shape != b.table.shape:
        return algebra.FALSE
    difference = a.table - b.table
    offset = int(difference.flat[0]) if difference.size else 0
    if difference.size and not (difference == offset).all():
        return algebra.FALSE
    return algebra.eq(algebra.add(a.base, offset), b.base)
