"""Integers that vary over threads and values: a symbolic part, the same for all, plus a table of numbers.

`Sep(base, table)` is `base + table[t, v]`. Copies, layouts and slicing stay inside the form; equality of two
is equality of tables and of bases, and needs no solver where the bases are one node. What does not come apart in
this way, such as `(k // 8) ^ (m % 8)` across the bits that a tile spans, is a table of different expressions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import assert_never, cast

import numpy as np
import numpy.typing as npt
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
from argus.core.proof.dataflow.timeline import Shift
from argus.core.walk import IntArray, apply, apply_number, children, substitute, within


@frozen(eq=False)
class Separable:
    """`base + table`; the base mentions no coordinate and no thread and has no constant term."""

    base: Index
    table: IntArray

    @cached_property
    def low(self) -> int:
        return int(self.table.min())

    @cached_property
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

    def at(self, index: tuple[IntArray, ...] | IntArray) -> Separable:
        """The same quantity looked up at other (thread, value) places."""
        return Separable(self.base, self.table[index])

    def shifted(self, shift: Shift) -> Separable:
        base = substitute(self.base, shift)
        return self if base is self.base else separable(base, self.table)


def distinct_count(places: Sequence[Separable]) -> int:
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


@frozen(eq=False)
class Piecewise:
    """`cases[table]`: an integer whose symbolic part differs from element to element; no case twice, none unused."""

    cases: tuple[Index, ...]
    table: IntArray

    def at(self, index: tuple[IntArray, ...] | IntArray) -> FragmentIndex:
        return from_cases(self.cases, self.table[index])

    def shifted(self, shift: Shift) -> FragmentIndex:
        return self if not shift else from_cases([substitute(case, shift) for case in self.cases], self.table)


FragmentIndex = Separable | Piecewise
"""One component of the tags of a fragment's elements."""


def from_cases(cases: Sequence[Index], table: IntArray) -> FragmentIndex:
    """`cases[table]` in normal form: a symbolic part and a table of numbers, where all cases have one such part."""
    used, table = np.unique(table, return_inverse=True)
    known = {case: place for place, case in enumerate(dict.fromkeys(cases[int(number)] for number in used))}
    table = np.array([known[cases[int(number)]] for number in used], np.int64)[table.reshape(table.shape)]
    alone = [separable(case, np.zeros(1, np.int64)) for case in known]
    if all(each.base is alone[0].base for each in alone):
        return Separable(alone[0].base, np.array([int(each.table[0]) for each in alone], np.int64)[table])
    return Piecewise(tuple(known), table)


def cases_of(component: FragmentIndex) -> tuple[tuple[Index, ...], IntArray]:
    """The integers that a component is, each once, and which of them each element has."""
    if isinstance(component, Piecewise):
        return component.cases, component.table
    used, place = np.unique(component.table, return_inverse=True)
    cases = tuple(algebra.add(component.base, int(number)) for number in used)
    return cases, place.reshape(component.table.shape)


def symbolic_parts(component: FragmentIndex) -> tuple[Index, ...]:
    """The symbolic parts that a component has."""
    return component.cases if isinstance(component, Piecewise) else (component.base,)


def extremes(component: FragmentIndex) -> tuple[Index, ...]:
    """Integers that are within bounds only if all of a component are."""
    return component.cases if isinstance(component, Piecewise) else (component.least, component.most)


def distinct_columns(tables: Sequence[IntArray], sizes: Sequence[int]) -> tuple[IntArray, IntArray]:
    """The different columns of tables of one shape, one row a table, and which of them each element has.

    sizes: of each table, above its greatest number.
    """
    code, most = np.zeros(tables[0].shape, np.int64), 1
    for table, size in zip(tables, sizes, strict=True):
        code = code * size + table
        used, code = np.unique(code, return_inverse=True)
        code = code.reshape(table.shape)
        most = used.size
    _, first = np.unique(code, return_index=True)
    assert most == first.size
    return np.stack([table.ravel()[first] for table in tables]), code


def separable(base: Index, table: IntArray) -> Separable:
    """Normal form: the constant term of the base goes into the table."""
    constant = base.value if isinstance(base, Const) else base.constant if isinstance(base, Sum) else 0
    if constant == 0:
        return Separable(base, table)
    return Separable(algebra.sub(base, constant), table + constant)


def numeric(table: IntArray) -> Separable:
    return Separable(algebra.const(0), table)


def frozen_copy(table: IntArray) -> IntArray:
    """A table of its own that nobody can change: what is kept must stay what it was."""
    kept = table.copy()
    kept.setflags(write=False)
    return kept


def evaluate_separable(
    expression: Index, coords: Sequence[Separable], thread: Symbol, shape: tuple[int, int]
) -> Separable | None:
    """The expression over a fragment of this shape; None where symbols and coordinates do not come apart.

    shape: (threads, values). `thread` is the symbol that counts threads.
    """
    values: dict[Node, Separable | None] = {}
    for node in within(expression):
        parts = [values.get(child) for child in children(node)]
        values[node] = evaluate_node(node, parts, coords, thread, shape)
    return values[expression]


def evaluate_node(
    node: Node, parts: Sequence[Separable | None], coords: Sequence[Separable], thread: Symbol, shape: tuple[int, int]
) -> Separable | None:
    zero = np.zeros(shape, np.int64)
    match node:
        case Const(value=value):
            return numeric(zero + value)
        case Sym(symbol=symbol):
            if symbol == thread:
                return numeric(zero + np.arange(shape[0], dtype=np.int64)[:, None])
            return Separable(node, zero)
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


def _element(array: str, parts: Sequence[Separable | None], zero: IntArray) -> Separable | None:
    """An integer from memory that is one for all threads and values."""
    at = [part.least for part in parts if part is not None and part.uniform]
    return None if len(at) < len(parts) else Separable(algebra.read(array, at), zero)


def _sum(parts: Sequence[Separable | None], factors: Sequence[int], constant: int, zero: IntArray) -> Separable | None:
    table = zero + constant
    base: list[tuple[Index, int]] = []
    for part, factor in zip(parts, factors, strict=True):
        if part is None:
            return None
        base.append((part.base, factor))
        table = table + part.table * factor
    return separable(algebra.linear(base, 0), table)


def _bin(node: Bin, left: Separable, right: Separable) -> Separable | None:
    pure_left, pure_right = left.base is algebra.const(0), right.base is algebra.const(0)
    if node.op in ("//", "%") and pure_right and (right.table == 0).any():
        return None
    if pure_left and pure_right:
        return numeric(cast(IntArray, apply_number(node.op, left.table, right.table)))
    if left.uniform and right.uniform:
        whole = apply(node.op, left.least, right.least)
        return separable(whole, np.zeros_like(left.table))
    if node.op == "*" and ((pure_left and left.uniform) or (pure_right and right.uniform)):
        scaled, factor = (right, left.low) if pure_left else (left, right.low)
        return separable(algebra.mul(scaled.base, factor), scaled.table * factor)
    if node.op in ("//", "%") and pure_right and right.uniform:
        return _divide(node, left, right.low)
    if node.op in ("^", "|", "&"):
        return _low_bits(node, left, right) or _low_bits(node, right, left)
    return None


def _low_bits(node: Bin, left: Separable, right: Separable) -> Separable | None:
    """Bits of `right`, a table alone, all below those of the symbolic part of `left`: they never meet."""
    if right.base is not algebra.const(0) or right.low < 0:
        return None
    if algebra.mod(left.base, 1 << right.high.bit_length()) is not algebra.const(0):
        return None
    low = cast(IntArray, apply_number(node.op, left.table, right.table))
    return numeric(low) if node.op == "&" else separable(left.base, low)


def _divide(node: Bin, left: Separable, divisor: int) -> Separable | None:
    """Exact where the symbolic part is a visible multiple of the divisor."""
    if divisor <= 0 or algebra.mod(left.base, divisor) is not algebra.const(0):
        return None
    if node.op == "%":
        return numeric(left.table % divisor)
    return separable(algebra.floordiv(left.base, divisor), left.table // divisor)


def equal_indices(a: FragmentIndex, b: FragmentIndex) -> Cond:
    """The condition that the two agree everywhere; false where tables make that impossible."""
    if a.table.shape != b.table.shape:
        return algebra.FALSE
    if isinstance(a, Piecewise) or isinstance(b, Piecewise):
        return _same_cases(a, b)
    difference = a.table - b.table
    offset = int(difference.flat[0]) if difference.size else 0
    if difference.size and not (difference == offset).all():
        return algebra.FALSE
    return algebra.eq(algebra.add(a.base, offset), b.base)


def _same_cases(a: FragmentIndex, b: FragmentIndex) -> Cond:
    (mine, first), (theirs, second) = cases_of(a), cases_of(b)
    pairs, _ = distinct_columns((first, second), (len(mine), len(theirs)))
    return algebra.all_of(algebra.eq(mine[int(i)], theirs[int(j)]) for i, j in pairs.T)


def select_by_mask(a: FragmentIndex, b: FragmentIndex, mask: npt.NDArray[np.bool_]) -> FragmentIndex | None:
    """`a` where the mask holds, else `b`, if that has one form."""
    if isinstance(a, Separable) and isinstance(b, Separable):
        return Separable(a.base, np.where(mask, a.table, b.table)) if a.base is b.base else None
    (mine, first), (theirs, second) = cases_of(a), cases_of(b)
    return from_cases((*mine, *theirs), np.where(mask, first, second + len(mine)))
