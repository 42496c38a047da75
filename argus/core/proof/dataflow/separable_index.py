"""Represents integers that vary over (thread, value) as a common symbolic base plus a table of numbers.

`Separable(base, table)` is `base + table[t, v]`. The form is closed under copies, layouts and slicing. Two are equal if
their tables and bases are; that needs no solver if the bases are one node. An expression that has no such form, such
as `(k // 8) ^ (m % 8)` across the bits that a tile spans, is `Piecewise`: a table of distinct expressions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
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
from argus.core.proof.dataflow.timeline import Shift
from argus.core.walk import IntArray, apply, apply_number, children, substitute, within


@frozen(eq=False)
class Separable:
    """`base + table`; the base mentions no coordinate and no thread and has no constant term."""

    base: Index
    table: IntArray

    @cached_property
    def low(self) -> int:
        """The least entry of the table."""
        return int(self.table.min())

    @cached_property
    def high(self) -> int:
        """The greatest entry of the table."""
        return int(self.table.max())

    @property
    def uniform(self) -> bool:
        """Whether all elements are equal."""
        return self.low == self.high

    @property
    def least(self) -> Index:
        """The least element, as an expression."""
        return algebra.add(self.base, self.low)

    @property
    def most(self) -> Index:
        """The greatest element, as an expression."""
        return algebra.add(self.base, self.high)

    def at(self, index: tuple[IntArray, ...] | IntArray) -> Separable:
        """The component at other (thread, value) positions. index: numpy index into the table."""
        return Separable(self.base, self.table[index])

    def shifted(self, shift: Shift) -> Separable:
        """The component after a substitution of symbols."""
        base = substitute(self.base, shift)
        return self if base is self.base else separable(base, self.table)


def distinct_count(places: Sequence[Separable]) -> int:
    """The number of distinct coordinate tuples over all elements."""
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
    """`cases[table]`: an integer whose symbolic part varies by element; cases are distinct and all used."""

    cases: tuple[Index, ...]
    table: IntArray

    def at(self, index: tuple[IntArray, ...] | IntArray) -> FragmentIndex:
        return from_cases(self.cases, self.table[index])

    def shifted(self, shift: Shift) -> FragmentIndex:
        return self if not shift else from_cases([substitute(case, shift) for case in self.cases], self.table)


FragmentIndex = Separable | Piecewise
"""An integer for each element of a fragment."""


def plus_number(component: FragmentIndex, number: int) -> FragmentIndex:
    """The component plus a number."""
    if isinstance(component, Separable):
        return Separable(component.base, component.table + number)
    return from_cases([algebra.add(case, number) for case in component.cases], component.table)


def from_cases(cases: Sequence[Index], table: IntArray) -> FragmentIndex:
    """`cases[table]` in normal form: `Separable` if all cases have the same symbolic part."""
    used, table = np.unique(table, return_inverse=True)
    known = {case: place for place, case in enumerate(dict.fromkeys(cases[int(number)] for number in used))}
    table = np.array([known[cases[int(number)]] for number in used], np.int64)[table.reshape(table.shape)]
    parts = [separable(case, np.zeros(1, np.int64)) for case in known]
    if all(each.base is parts[0].base for each in parts):
        return Separable(parts[0].base, np.array([int(each.table[0]) for each in parts], np.int64)[table])
    return Piecewise(tuple(known), table)


def cases_of(component: FragmentIndex) -> tuple[tuple[Index, ...], IntArray]:
    """The distinct expressions of a component, and the index of each element's expression."""
    if isinstance(component, Piecewise):
        return component.cases, component.table
    used, place = np.unique(component.table, return_inverse=True)
    cases = tuple(algebra.add(component.base, int(number)) for number in used)
    return cases, place.reshape(component.table.shape)


def extremes(component: FragmentIndex) -> tuple[Index, ...]:
    """Expressions that are within an interval exactly if all elements of the component are."""
    return component.cases if isinstance(component, Piecewise) else (component.least, component.most)


def distinct_columns(tables: Sequence[IntArray], sizes: Sequence[int]) -> tuple[IntArray, IntArray]:
    """The distinct tuples of equally shaped tables, shape (tables, tuples), and the index of each element's tuple.

    sizes: for each table, a number greater than all its entries.
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
    """`base + table` in normal form: the constant term of the base is added to the table."""
    constant = base.value if isinstance(base, Const) else base.constant if isinstance(base, Sum) else 0
    if constant == 0:
        return Separable(base, table)
    return Separable(algebra.sub(base, constant), table + constant)


def numeric(table: IntArray) -> Separable:
    """A component without a symbolic part."""
    return Separable(algebra.const(0), table)


def frozen_copy(table: IntArray) -> IntArray:
    """A read-only copy, safe to cache."""
    copy = table.copy()
    copy.setflags(write=False)
    return copy


def evaluate_separable(
    expression: Index, coords: Sequence[Separable], thread: Symbol, shape: tuple[int, int]
) -> Separable | None:
    """The expression at each element of a fragment; None if it is not separable.

    coords: coordinates of the elements, per axis. thread: symbol of the thread number. shape: (threads, values).
    """
    values: dict[Node, Separable | None] = {}
    for node in within(expression):
        parts = [values.get(child) for child in children(node)]
        values[node] = evaluate_node(node, parts, coords, thread, shape)
    return values[expression]


def evaluate_node(
    node: Node, parts: Sequence[Separable | None], coords: Sequence[Separable], thread: Symbol, shape: tuple[int, int]
) -> Separable | None:
    """One node of `evaluate_separable`. parts: values of its operands."""
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
            return _evaluate_sum(parts, [factor for _, factor in terms], constant, zero)
        case Bin():
            left, right = parts
            return None if left is None or right is None else _evaluate_binary(node, left, right)
        case Read(array=array):
            return _evaluate_read(array, parts, zero)
        case Pick() | Held():
            return None
        case Cmp() | And() | Or() | Not():
            return None
        case _:
            assert_never(node)


def _evaluate_read(array: str, parts: Sequence[Separable | None], zero: IntArray) -> Separable | None:
    """An integer read from memory at an index that is equal for all threads and values; None otherwise."""
    at = [part.least for part in parts if part is not None and part.uniform]
    return None if len(at) < len(parts) else Separable(algebra.read(array, at), zero)


def _evaluate_sum(
    parts: Sequence[Separable | None], factors: Sequence[int], constant: int, zero: IntArray
) -> Separable | None:
    table = zero + constant
    base: list[tuple[Index, int]] = []
    for part, factor in zip(parts, factors, strict=True):
        if part is None:
            return None
        base.append((part.base, factor))
        table = table + part.table * factor
    return separable(algebra.linear(base, 0), table)


def _evaluate_binary(node: Bin, left: Separable, right: Separable) -> Separable | None:
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
        return _combine_disjoint_bits(node, left, right) or _combine_disjoint_bits(node, right, left)
    return None


def _combine_disjoint_bits(node: Bin, left: Separable, right: Separable) -> Separable | None:
    """A bitwise operator whose numeric operand `right` has only bits below those of `left`'s symbolic part."""
    if right.base is not algebra.const(0) or right.low < 0:
        return None
    if algebra.mod(left.base, 1 << right.high.bit_length()) is not algebra.const(0):
        return None
    low = cast(IntArray, apply_number(node.op, left.table, right.table))
    return numeric(low) if node.op == "&" else separable(left.base, low)


def _divide(node: Bin, left: Separable, divisor: int) -> Separable | None:
    """Quotient or remainder; None unless the symbolic part is syntactically a multiple of the divisor."""
    if divisor <= 0 or algebra.mod(left.base, divisor) is not algebra.const(0):
        return None
    if node.op == "%":
        return numeric(left.table % divisor)
    return separable(algebra.floordiv(left.base, divisor), left.table // divisor)


def equal_indices(a: FragmentIndex, b: FragmentIndex) -> Cond:
    """The condition that two components are equal at all elements; false if their tables exclude it."""
    if a.table.shape != b.table.shape:
        return algebra.FALSE
    if isinstance(a, Piecewise) or isinstance(b, Piecewise):
        return _equal_cases(a, b)
    difference = a.table - b.table
    offset = int(difference.flat[0]) if difference.size else 0
    if difference.size and not (difference == offset).all():
        return algebra.FALSE
    return algebra.eq(algebra.add(a.base, offset), b.base)


def _equal_cases(a: FragmentIndex, b: FragmentIndex) -> Cond:
    (mine, first), (theirs, second) = cases_of(a), cases_of(b)
    pairs, _ = distinct_columns((first, second), (len(mine), len(theirs)))
    return algebra.all_of(algebra.eq(mine[int(i)], theirs[int(j)]) for i, j in pairs.T)
