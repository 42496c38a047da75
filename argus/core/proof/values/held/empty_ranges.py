"""Reductions that some elements of a fragment take and others do not, as ranges that are empty there.

A value that is neutral at some elements and a reduction over [a, b) at the others, by a table, is the reduction over a
range whose end is a table too: a or b. Parts of a scan that some threads do not have are then ranges of all threads.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from argus.core.proof.values.held.tables import Tables
from argus.core.proof.values.held.terms import exchanged
from argus.core.values.expr import Choose, Expr, Reduce, ReduceOp, expr, infinity, reduce_
from argus.core.values.rewriting import nodes

_NEUTRAL: Mapping[ReduceOp, Expr] = {"sum": expr(0), "product": expr(1), "max": infinity(-1), "min": infinity(1)}


def with_empty_ranges(root: Expr, tables: Tables) -> Expr:
    """The expression with such choices as reductions."""
    found = ((each, _as_range(each, tables)) for each in nodes(root) if isinstance(each, Choose))
    changed: dict[Expr, Expr] = {each: by for each, by in found if by is not None}
    return exchanged(root, changed) if changed else root


def _as_range(of: Choose, tables: Tables) -> Reduce | None:
    mask = tables.mask_of(of.test)
    if mask is None:
        return None
    for part, neutral, here in ((of.then, of.other, mask), (of.other, of.then, ~mask)):
        if isinstance(part, Reduce) and neutral is _NEUTRAL[part.op]:
            low, high = tables.numbers(part.low), tables.numbers(part.high)
            if low is None or high is None:
                return None
            end = tables.index(np.where(here, high, low))
            return reduce_(part.op, part.variable, part.low, end, part.body, part.where)
    return None
