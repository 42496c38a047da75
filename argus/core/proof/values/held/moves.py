"""Shuffles: each lane receives an element of another lane of its warp, which the layouts tell."""

from __future__ import annotations

from math import prod

import numpy as np
from attrs import frozen

from argus.core import algebra
from argus.core.ir import Copy
from argus.core.layout import TV
from argus.core.proof.values.content import BoolArray
from argus.core.proof.values.held.tables import Tables
from argus.core.proof.values.held.terms import chosen, number, unknown
from argus.core.values.expr import Expr
from argus.core.walk import IntArray, evaluate


def shuffled(tables: Tables, stmt: Copy, held: Expr, unit: int) -> Expr:
    """What each lane holds after a shuffle. held: the whole source tile. unit: threads of a warp."""
    target = stmt.target.buffer.layout
    assert isinstance(target, TV)
    assert stmt.edge is not None
    shape = target.threads.size(), target.values.size()
    found = _taken(stmt, target, shape, unit)
    if found is None:
        return unknown("a shuffle from another warp")
    value = tables.at(held, found.at)
    there = algebra.eq(tables.index(found.there.astype(np.int64)), 1)
    return chosen(there, value, number(stmt.edge))


@frozen(eq=False)
class _Taken:
    """there: mask of the (thread, value) targets that receive an element. at: the sources' (thread, value)."""

    there: BoolArray
    at: tuple[IntArray, IntArray]


def _taken(stmt: Copy, target: TV, shape: tuple[int, int], unit: int) -> _Taken | None:
    """The source of each target; None if a lane would read from another warp, or an element that its warp lacks."""
    source = stmt.source.buffer.layout
    assert isinstance(source, TV)
    if source.threads.size() != shape[0]:
        return None
    coords = [np.broadcast_to(axis, shape) for axis in target.coordinates()]
    there = np.array(np.broadcast_to(np.asarray(evaluate(stmt.source.where, {}, coords)), shape), np.bool_)
    number, below = np.zeros(shape, np.int64), 1
    for at, extent in zip(stmt.source.at, source.tile, strict=True):
        place = np.broadcast_to(np.asarray(evaluate(at, {}, coords)), shape)
        if bool(((place < 0) | (place >= extent))[there].any()):
            return None
        number, below = number + np.where(there, place, 0) * below, below * extent
    thread, value = np.broadcast_to(np.arange(shape[0])[:, None], shape).copy(), np.zeros(shape, np.int64)
    elements = source.elements()
    for warp in range(0, shape[0], unit):
        holders = np.full(prod(source.tile), -1, np.int64)
        own = elements[warp : warp + unit].ravel()
        holders[own] = np.arange(own.size)
        found = holders[number[warp : warp + unit]]
        if bool((found < 0)[there[warp : warp + unit]].any()):
            return None
        found = np.where(there[warp : warp + unit], found, 0)
        thread[warp : warp + unit] = warp + found // elements.shape[1]
        value[warp : warp + unit] = found % elements.shape[1]
    return _Taken(there, (thread, value))
