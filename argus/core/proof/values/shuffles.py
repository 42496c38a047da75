"""Warp shuffles: the element that each lane receives, computed from the layouts."""

from __future__ import annotations

from math import prod

import numpy as np
from attrs import evolve, frozen

from argus.core import algebra
from argus.core.ir import Copy
from argus.core.layout import TV
from argus.core.proof.values.content import BoolArray, Content, Data, Number, Piece, Top, Value, uniform
from argus.core.proof.values.multiset_count import Multiset, Run, make_run
from argus.core.proof.values.recognisers.standing import Plain
from argus.core.walk import IntArray, evaluate


@frozen(eq=False)
class _Taken:
    """there: mask of the (thread, value) targets that receive an element. at: the sources' (thread, value)."""

    there: BoolArray
    at: tuple[IntArray, IntArray]


def shuffle_content(stmt: Copy, held: Content, unit: int) -> Content:
    """The target's content after a shuffle. held: the content of the whole source tile. unit: threads per warp."""
    target = stmt.target.buffer.layout
    assert isinstance(target, TV)
    shape = target.threads.size(), target.values.size()
    received = taken(stmt, target, shape, unit)
    one = held[0] if len(held) == 1 and held[0].guard is algebra.TRUE and bool(held[0].mask.all()) else None
    if received is None or one is None:
        return uniform(shape, Top("a shuffle of a content that differs from case to case"), algebra.TRUE)
    assert stmt.edge is not None
    value = one.value
    if not isinstance(value, Data):
        same = isinstance(value, Number) and value.value == stmt.edge
        return uniform(
            shape,
            value if same or not isinstance(value, Number) else Top("a shuffle of a literal other than its edge value"),
            algebra.TRUE,
        )
    if bool(received.there.all()):
        return uniform(shape, value.at(received.at), algebra.TRUE)
    summed = _empty_elsewhere(value.at(received.at), received.there) if stmt.edge == 0 else None
    if summed is not None:
        return uniform(shape, summed, algebra.TRUE)
    moved = Piece(received.there, algebra.TRUE, value.at(received.at))
    return (moved, Piece(~received.there, algebra.TRUE, Number(stmt.edge)))


def taken(stmt: Copy, target: TV, shape: tuple[int, int], unit: int) -> _Taken | None:
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


def _empty_elsewhere(value: Data, there: BoolArray) -> Value | None:
    """A sum that is empty outside of `there`; None if the value is not a plain sum."""
    if not value.sets or not isinstance(value.standing, Plain) or value.closed or value.needs or value.inside:
        return None
    if value.loose or any(tally.other is not algebra.const(0) for tally in value.sets.values()):
        return None
    sets = {
        name: Multiset(tuple(filter(None, (_masked(each, there) for each in tally.runs))))
        for name, tally in value.sets.items()
    }
    return evolve(value, sets=sets)


def _masked(each: Run, there: BoolArray) -> Run | None:
    which = np.zeros(there.shape, np.int64) if each.which is None else each.which
    nothing = np.zeros((1, each.period), np.int64)
    patterns = np.concatenate([each.patterns, nothing])
    return make_run(each.low, each.high, each.rest, patterns, np.where(there, which, len(each.patterns)))
