"""Expressions over a fragment by the elements at which each of their branches is taken.

A test of a table of 0 and 1 takes one branch at each element. A table that is one number at all of those is that
number there, which may decide conditions in the branch; branches that then differ in tables alone are one expression.
"""

from __future__ import annotations

import numpy as np

from argus.core import algebra
from argus.core.index import Cmp, Cond, Index
from argus.core.proof.values.held.facts import Known
from argus.core.proof.values.held.tables import BoolArray, Tables
from argus.core.proof.values.held.terms import chosen, mapped
from argus.core.values.expr import Choose, Expr
from argus.core.values.rewriting import nodes
from argus.core.walk import IntArray, symbols


def settled(tables: Tables, root: Expr, known: Known) -> Expr:
    """The expression simplified by what is known, also at the elements at which each of its branches is taken."""
    root = known.simplified(root)
    if not any(isinstance(node, Choose) and tables.mask_of(node.test) is not None for node in nodes(root)):
        return root
    found = of_taken_branches(tables, root)
    return root if found is root else of_taken_branches(tables, known.simplified(found))


def of_taken_branches(tables: Tables, root: Expr) -> Expr:
    """The expression with its tables as they are where the branches that name them are taken."""
    return _Settling(tables).of(root, None)


class _Settling:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._done: dict[tuple[Expr, bytes], Expr] = {}
        self._alike: dict[tuple[tuple[int, ...], bytes, bytes], IntArray] = {}

    def of(self, root: Expr, need: BoolArray | None) -> Expr:
        """The expression at the elements at which it is needed; at all, if that is None."""
        key = root, b"" if need is None else need.tobytes()
        if key not in self._done:
            self._done[key] = self._of(root, need)
        return self._done[key]

    def _of(self, root: Expr, need: BoolArray | None) -> Expr:
        mask = self._tables.mask_of(root.test) if isinstance(root, Choose) else None
        if isinstance(root, Choose) and mask is not None and (need is None or need.shape == mask.shape):
            return self._branches(root, mask, np.ones(mask.shape, np.bool_) if need is None else need)
        return mapped(
            root,
            lambda part: self.of(part, need),
            lambda index: self._index(index, need),
            lambda cond: self._cond(cond, need),
        )

    def _branches(self, root: Choose, mask: BoolArray, need: BoolArray) -> Expr:
        here, rest = need & mask, need & ~mask
        if not here.any() or not rest.any():
            return self.of(root.then if here.any() else root.other, need)
        then, other = self.of(root.then, here), self.of(root.other, rest)
        joined = self._tables.joined(mask, then, other)
        return chosen(root.test, then, other) if joined is None else joined

    def _index(self, index: Index, need: BoolArray | None) -> Index:
        """The expression with its tables as one: for those that differ by a number where they are needed, the first."""
        own = [self._tables.known[each] for each in symbols(index) if each in self._tables.known]
        if not own or any(need is not None and need.shape != table.shape for table in own):
            return index
        rest, table = self._tables.split(index)
        if need is not None:
            low = int(table[need].min())
            apart = table - low
            first = self._alike.setdefault((need.shape, need.tobytes(), apart[need].tobytes()), apart)
            table = first + low if apart[need].any() else table[need][:1]
        return algebra.add(rest, self._tables.index(table))

    def _cond(self, cond: Cond, need: BoolArray | None) -> Cond:
        """The same of a comparison; other conditions stay as they are."""
        if not isinstance(cond, Cmp) or self._tables.known.keys().isdisjoint(symbols(cond)):
            return cond
        found = self._index(algebra.sub(cond.right, cond.left), need)
        return algebra.le(0, found) if cond.op == "<=" else algebra.eq(0, found)
