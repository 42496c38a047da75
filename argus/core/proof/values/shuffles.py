"""Copies between the lanes of a warp: which element of a tile each lane takes, decided by layouts alone."""

from __future__ import annotations

from math import prod

import numpy as np
from attrs import evolve, frozen

from argus.core import algebra
from argus.core.ir import Copy
from argus.core.layout import TV
from argus.core.proof.values.content import BoolArray, Content, Data, Number, Piece, Top, Value, everywhere
from argus.core.proof.values.multiset_count import Run, Tally, run
from argus.core.proof.values.recognisers.standing import Plain
from argus.core.walk import IntArray, evaluate


@frozen(eq=False)
class _Taken:
    """there: the targets, (thread, value), that take an element; at: the (thread, value) that holds it, any else."""

    there: BoolArray
    at: tuple[IntArray, IntArray]


def shuffled(stmt: Copy, held: Content, unit: int) -> Content:
    """What a copy between lanes leaves. held: what all of the source's tile holds. unit: threads of a warp."""
    target = stmt.target.buffer.layout
    assert isinstance(target, TV)
    shape = target.threads.size(), target.values.size()
    taken = _taken(stmt, target, shape, unit)
    one = held[0] if len(held) == 1 and held[0].guard is algebra.TRUE and bool(held[0].mask.all()) else None
    if taken is None or one is None:
        return everywhere(shape, Top("a copy between lanes of what differs from case to case"), algebra.TRUE)
    assert stmt.edge is not None
    value = one.value
    if not isinstance(value, Data):
        same = isinstance(value, Number) and value.value == stmt.edge
        return everywhere(
            shape, value if same or not isinstance(value, Number) else Top("numbers are moved"), algebra.TRUE
        )
    if bool(taken.there.all()):
        return everywhere(shape, value.at(taken.at), algebra.TRUE)
    summed = _nothing_elsewhere(value.at(taken.at), taken.there) if stmt.edge == 0 else None
    if summed is not None:
        return everywhere(shape, summed, algebra.TRUE)
    moved = Piece(taken.there, algebra.TRUE, value.at(taken.at))
    return (moved, Piece(~taken.there, algebra.TRUE, Number(stmt.edge)))


def _taken(stmt: Copy, target: TV, shape: tuple[int, int], unit: int) -> _Taken | None:
    """Who takes what; None where a lane would take from another warp, or what nobody there holds."""
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


def _nothing_elsewhere(value: Data, there: BoolArray) -> Value | None:
    """A sum that is over nothing where this does not hold; None of what is no plain sum."""
    if not value.sets or not isinstance(value.standing, Plain) or value.closed or value.needs or value.inside:
        return None
    if value.loose or any(tally.other is not algebra.const(0) for tally in value.sets.values()):
        return None
    sets = {
        name: Tally(tuple(filter(None, (_masked(each, there) for each in tally.runs))))
        for name, tally in value.sets.items()
    }
    return evolve(value, sets=sets)


def _masked(each: Run, there: BoolArray) -> Run | None:
    which = np.zeros(there.shape, np.int64) if each.which is None else each.which
    nothing = np.zeros((1, each.period), np.int64)
    patterns = np.concatenate([each.patterns, nothing])
    return run(each.low, each.high, each.rest, patterns, np.where(there, which, len(each.patterns)))
