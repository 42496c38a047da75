"""Numbers that vary over the elements of a fragment, as symbols: one symbol for each distinct table.

An expression over these symbols is the value of every element (thread, value) of a fragment. A table is reduced to a
least entry of 0 and a greatest common divisor of 1, so that tables that differ by a scale and an offset share a symbol.
The scale may be negative: of a table and its reverse, the one with the smaller first entry has the symbol.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from fractions import Fraction
from typing import cast

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from argus.core import algebra
from argus.core.algebra.integers import linear_terms
from argus.core.index import And, Bin, Cmp, Cond, Const, Coord, Held, Index, Read, Sym, Symbol
from argus.core.ir import Buffer
from argus.core.layout import TV
from argus.core.proof.dataflow.separable_index import Separable
from argus.core.proof.values.held.joined import joined_cond, zipped
from argus.core.proof.values.held.terms import all_symbols, own_symbols, replaced
from argus.core.values.expr import Choose, Expr, Test
from argus.core.values.rewriting import mapped, parts
from argus.core.walk import IntArray, apply, evaluate, mentions, symbols

BoolArray = npt.NDArray[np.bool_]
Positions = tuple[IntArray, IntArray]
"""(thread, value) of the source of each element."""
_LARGEST_KEY = 1 << 62
_SOME = 64


@frozen(eq=False)
class Tables:
    """The tables of one interpretation, by symbol."""

    known: dict[Symbol, IntArray] = field(factory=dict[Symbol, IntArray])
    _made: dict[tuple[str, tuple[int, ...], bytes], Index] = field(
        factory=dict["tuple[str, tuple[int, ...], bytes]", "Index"], init=False
    )

    def index(self, table: IntArray) -> Index:
        """A table as an expression over its symbol."""
        key = table.dtype.str, table.shape, table.tobytes()
        if key not in self._made:
            self._made[key] = self._index(table)
        return self._made[key]

    def _index(self, table: IntArray) -> Index:
        low = int(table.min())
        rest = table - low
        step = _common_divisor(rest)
        if step == 0:
            return algebra.const(low)
        core = np.ascontiguousarray(rest if step == 1 else rest // step)
        if _is_greater(core, reverse := int(core.max()) - core):
            core, low, step = reverse, int(table.max()), -step
        name = hashlib.blake2b(repr(core.shape).encode() + core.tobytes(), digest_size=9).hexdigest()
        symbol = Symbol(f"table {name}", "fresh", 0, int(core.max()))
        self.known.setdefault(symbol, core)
        return algebra.add(algebra.mul(algebra.sym(symbol), step), low)

    def place(self, at: Separable) -> Index:
        """A coordinate that varies over a fragment."""
        return algebra.add(at.base, self.index(at.table))

    def of(self, root: Expr) -> list[Symbol]:
        """The symbols of tables in an expression, in a fixed order."""
        return sorted((each for each in all_symbols(root) if each in self.known), key=lambda each: each.name)

    def needed(self, root: Expr) -> dict[Symbol, BoolArray]:
        """Where the numbers of each table matter: a choice by a table of 0 and 1 takes one branch at each element."""
        found: dict[Symbol, BoolArray] = {}
        stack: list[tuple[Expr, BoolArray | None]] = [(root, None)]
        seen: set[tuple[Expr, bytes]] = set()
        while stack:
            node, need = stack.pop()
            key = node, b"" if need is None else need.tobytes()
            if key in seen:
                continue
            seen.add(key)
            for symbol in own_symbols(node) & self.known.keys():
                table = self.known[symbol]
                here = np.ones(table.shape, np.bool_) if need is None or need.shape != table.shape else need
                found[symbol] = found[symbol] | here if symbol in found else here
            mask = self.mask_of(node.test) if isinstance(node, Choose) else None
            if isinstance(node, Choose) and mask is not None and (need is None or need.shape == mask.shape):
                stack += (
                    (part, own if need is None else own & need)
                    for part, own in ((node.then, mask), (node.other, ~mask))
                )
            else:
                stack += ((part, need) for part in parts(node))
        return found

    def mask(self, mask: BoolArray) -> Cond:
        """A test that holds at the elements of a mask."""
        return algebra.eq(self.index(mask.astype(np.int64)), 1)

    def mask_of(self, test: Test) -> BoolArray | None:
        """The elements at which a test of a table of 0 and 1 holds; None for other tests."""
        if isinstance(test, Cmp) and test.op == "==":
            for one, other in ((test.left, test.right), (test.right, test.left)):
                if isinstance(one, Sym) and one.symbol in self.known and isinstance(other, Const):
                    return np.asarray(self.known[one.symbol] == other.value)
        return None

    def at(self, root: Expr, positions: Positions) -> Expr:
        """The expression at other elements; its tables must have two axes."""
        return replaced(root, {each: self.index(self.known[each][positions]) for each in self.of(root)})

    def joined(self, mask: BoolArray, one: Expr, other: Expr) -> Expr | None:
        """`one` where the mask is set, else `other`, as one expression; None if they differ in more than tables."""
        if one is other:
            return one

        def index(a: Index, b: Index) -> Index | None:
            return self._joined_index(mask, a, b)

        def cond(a: Cond, b: Cond) -> Cond | None:
            return joined_cond(a, b, index)

        return zipped(one, other, index, cond)

    def _joined_index(self, mask: BoolArray, a: Index, b: Index) -> Index | None:
        if a is b:
            return a
        (mine, first), (theirs, second) = self.split(a), self.split(b)
        whole = mine if mine is theirs else self._joined_atom(mask, mine, theirs)
        return None if whole is None else algebra.add(whole, self.index(np.where(mask, first, second)))

    def _joined_atom(self, mask: BoolArray, a: Index, b: Index) -> Index | None:
        """Two integers in memory, or two operations, whose own integers are joined."""
        match a, b:
            case Read(array=array, at=one), Read(array=other, at=two) if array == other:
                parts = [self._joined_index(mask, x, y) for x, y in zip(one, two, strict=True)]
                known = [part for part in parts if part is not None]
                return algebra.read(array, known) if len(known) == len(parts) else None
            case Bin(op=op, left=x, right=y), Bin(op=other, left=left, right=right) if op == other:
                turned = ((left, right), (right, left)) if op in ("min", "max") else ((left, right),)
                pairs = ((self._joined_index(mask, x, one), self._joined_index(mask, y, two)) for one, two in turned)
                found = next(((one, two) for one, two in pairs if one is not None and two is not None), None)
                return None if found is None else apply(op, *found)
            case _:
                return None

    def split(self, index: Index) -> tuple[Index, IntArray]:
        """The expression as a part without tables plus a table: quotients and remainders of tables are tables."""
        terms, constant = linear_terms(index)
        own = [(atom, factor) for atom, factor in terms if self._is_of_tables(atom)]
        rest = algebra.linear([term for term in terms if term not in own], 0)
        table = np.full((1, 1), constant, np.int64)
        for atom, factor in own:
            table = table + self._numbers(atom) * factor
        return rest, table

    def over_tables(self, root: Expr) -> Expr:
        """The expression with each integer as a part without tables plus one table."""
        return mapped(root, self.in_one, self.compared)

    def in_one(self, index: Index) -> Index:
        """An integer as a part without tables plus one table: its quotients and remainders of tables are numbers."""
        if self.known.keys().isdisjoint(symbols(index)):
            return index
        rest, table = self.split(index)
        return algebra.add(rest, self.index(table))

    def compared(self, of: Cond) -> Cond:
        """A comparison of integers each of which is such a sum; other conditions as they are."""
        if not isinstance(of, Cmp):
            return of
        found = self.in_one(algebra.sub(of.right, of.left))
        return algebra.le(0, found) if of.op == "<=" else algebra.eq(0, found)

    def conditions(self, of: Cond) -> Cond:
        """The same of each condition of several that hold together."""
        return algebra.all_of(map(self.compared, of.parts if isinstance(of, And) else (of,)))

    def numbers(self, index: Index) -> IntArray | None:
        """The table of an expression over symbols of tables; None if it has other symbols."""
        names = symbols(index)
        if any(each not in self.known for each in names):
            return None
        return self._numbers(index)

    def _is_of_tables(self, index: Index) -> bool:
        names = symbols(index)
        return bool(names) and names <= self.known.keys() and not mentions(index, (Coord, Held, Read))

    def _numbers(self, index: Index) -> IntArray:
        found = evaluate(index, {each: self.known[each] for each in symbols(index)})
        return np.atleast_2d(np.asarray(found, np.int64))


def _common_divisor(table: IntArray) -> int:
    """The greatest one of all entries; that of a few is mostly that of all."""
    entries = table.ravel()
    found = int(np.gcd.reduce(entries[:_SOME]))
    if found == 1:
        return found
    rest = entries % found if found else entries
    return int(np.gcd(found, np.gcd.reduce(rest))) if rest.any() else found


def _is_greater(one: IntArray, other: IntArray) -> bool:
    """Whether the first entry in which two tables differ is greater in the first one."""
    differences = (one - other).ravel()
    apart = np.flatnonzero(differences)
    return bool((differences[apart[:1]] > 0).any())


def alike_columns(rows: IntArray) -> tuple[IntArray, IntArray]:
    """The place of the first of each kind of column, and the kind of each column."""
    keys = np.zeros(rows.shape[1], np.int64)
    for row in rows:
        kinds = row - row.min(initial=0)
        if (int(keys.max(initial=0)) + 1) * (int(kinds.max(initial=0)) + 1) > _LARGEST_KEY:
            kinds = np.unique(row, return_inverse=True)[1].reshape(-1)
            keys = np.unique(keys, return_inverse=True)[1].reshape(-1)
        keys = keys * (kinds.max(initial=0) + 1) + kinds
    _, first, kinds = np.unique(keys, return_index=True, return_inverse=True)
    return first, kinds.reshape(-1)


def affine_in(
    table: IntArray, others: Sequence[IntArray], names: Sequence[Index], need: BoolArray | None = None
) -> Index | None:
    """The expression over `names`, the numbers of which are `others`, that equals the table; None if none is found.

    need: the elements at which it has to (not all of none).
    """
    if need is not None:
        table = np.broadcast_to(table, need.shape)[need]
        others = [np.broadcast_to(each, need.shape)[need] for each in others]
    flat = [np.broadcast_to(each, table.shape).ravel() for each in others]
    columns = np.stack([*flat, table.ravel()])
    columns = columns[:, alike_columns(columns)[0]]
    matrix = np.concatenate([columns[:-1].T.astype(float), np.ones((columns.shape[1], 1))], axis=1)
    solved = cast(
        "tuple[npt.NDArray[np.float64], object]", np.linalg.lstsq(matrix, columns[-1].astype(float), rcond=None)
    )[0]
    factors = [Fraction(float(each)).limit_denominator(1 << 12) for each in solved]
    if all(each.denominator == 1 for each in factors):
        found = sum(int(f) * part for f, part in zip(factors[:-1], columns[:-1], strict=True)) + int(factors[-1])
        if bool((found == columns[-1]).all()):
            terms = (algebra.mul(name, int(f)) for f, name in zip(factors[:-1], names, strict=True))
            return algebra.add(*terms, int(factors[-1]))
    for axis, name in enumerate(names):
        index = _quotient(columns[axis], columns[-1], name) or _clipped(columns[axis], columns[-1], name)
        if index is not None:
            return index
    return None


def _clipped(at: IntArray, table: IntArray, name: Index) -> Index | None:
    """The table as a number plus a multiple of max((at + b) // d, 0): nothing for the first elements, then a digit."""
    order = np.argsort(at, kind="stable")
    at, table = at[order], table[order]
    changes = np.flatnonzero(np.diff(table))
    if not changes.size:
        return None
    first = int(at[changes[0] + 1])
    step = int(table[changes[0] + 1] - table[0])
    every = int(at[changes[1] + 1]) - first if changes.size > 1 else int(at[-1]) - first + 1
    if every < 1:
        return None
    digit = np.maximum((at - first + every) // every, 0)
    if not bool((digit * step + table[0] == table).all()):
        return None
    found = algebra.maximum(algebra.floordiv(algebra.add(name, every - first), every), 0)
    return algebra.add(algebra.mul(found, step), int(table[0]))


def _quotient(at: IntArray, table: IntArray, name: Index) -> Index | None:
    """The table as (at // d) % m, or at // d, times a number plus a number: the digit of a coordinate."""
    order = np.argsort(at, kind="stable")
    at, table = at[order], table[order]
    changes = at[np.flatnonzero(np.diff(table)) + 1]
    d = int(np.gcd.reduce(changes)) if changes.size else 0
    if d <= 0:
        return None
    digit = at // d
    later = np.flatnonzero((table == table[0]) & (digit > digit[0]))
    m = int(digit[later[0]] - digit[0]) if later.size else 0
    for digits, index in ((digit, algebra.floordiv(name, d)), (digit % m if m else digit, None)):
        places, first = np.unique(digits, return_index=True)
        if places.size < 2:
            continue
        step, rest = divmod(int(table[first[1]] - table[first[0]]), int(places[1] - places[0]))
        start = int(table[first[0]]) - step * int(places[0])
        if not rest and bool((digits * step + start == table).all()):
            found = algebra.mod(algebra.floordiv(name, d), m) if index is None else index
            return algebra.add(algebra.mul(found, step), start)
    if changes.size == 1 and _is_step(at, table, int(changes[0])):
        low, high = int(table[0]), int(table[-1])
        return algebra.add(algebra.mul(algebra.minimum(algebra.floordiv(name, int(changes[0])), 1), high - low), low)
    return None


def _is_step(at: IntArray, table: IntArray, first: int) -> bool:
    """Whether a table of two numbers has one at all places from 0 below `first`, and the other at all from there on."""
    low, high = int(table[0]), int(table[-1])
    return int(at.min()) >= 0 and bool((np.where(at < first, low, high) == table).all())


def shape_of(buffer: Buffer) -> tuple[int, int]:
    """(threads, values) of a register tile."""
    layout = buffer.layout
    assert isinstance(layout, TV)
    return layout.threads.size(), layout.values.size()


def registers_of(buffer: Buffer) -> IntArray:
    """The register numbers of a tile, by (thread, value)."""
    shape = shape_of(buffer)
    return np.arange(shape[0] * shape[1]).reshape(shape)
