"""Shuffles: each lane receives an element of another lane of its warp."""

from __future__ import annotations

import numpy as np

from argus.core import algebra
from argus.core.ir import Copy
from argus.core.layout import TV
from argus.core.proof.values.held.tables import Tables
from argus.core.proof.values.held.terms import chosen, number, unknown
from argus.core.proof.values.shuffles import taken
from argus.core.values.expr import Expr


def shuffled(tables: Tables, stmt: Copy, held: Expr, unit: int) -> Expr:
    """What each lane holds after a shuffle. held: the whole source tile. unit: threads of a warp."""
    target = stmt.target.buffer.layout
    assert isinstance(target, TV)
    assert stmt.edge is not None
    shape = target.threads.size(), target.values.size()
    found = taken(stmt, target, shape, unit)
    if found is None:
        return unknown("a shuffle from another warp")
    value = tables.at(held, found.at)
    there = algebra.eq(tables.index(found.there.astype(np.int64)), 1)
    return chosen(there, value, number(stmt.edge))
