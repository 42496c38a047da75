"""Derives loop-invariant candidates for register tiles from one iteration, and compares two values.

A candidate is the value after an iteration, shifted by one iteration; sets that grow by adjacent runs are summed over
all earlier iterations. Candidates need no justification: `loop_invariants` proves each by induction.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from typing import Literal

import numpy as np
from attrs import evolve

from argus.core import algebra
from argus.core.index import And, Bin, Cmp, Cond, Index, Pick, Sum
from argus.core.proof.dataflow.bounds import covers_bounds, equal_bounds, inherit_bounds
from argus.core.proof.dataflow.separable_index import equal_indices, symbolic_parts
from argus.core.proof.dataflow.timeline import Loop
from argus.core.proof.values.content import Bottom, Data, Number, Top, Value
from argus.core.proof.values.multiset_count import COUNTED, Multiset, Run, Sets, equal_sets, merge_runs, telescope_run
from argus.core.proof.values.recognisers import ratios
from argus.core.proof.values.recognisers.standing import Maximum, Statistic, agreeing, changed, guards
from argus.core.walk import substitute, symbols


def candidate_invariant(entry: Value, after: Value, loop: Loop) -> Value:
    """The candidate for the value before iteration k. after: the value after one iteration that starts from `entry`."""
    if not isinstance(after, Data):
        return after
    if loop.symbol in symbols(*after.needs):
        return Top("the value of a tile depends on a premise about every iteration")
    after = _drop_varying_scales(after, loop)
    names = {loop.symbol} & symbols(*(case for part in after.record.values() for case in symbolic_parts(part)))
    accumulates = not names and not isinstance(entry, Bottom)

    def next_set(tally: Multiset) -> Multiset:
        return _telescope_set(tally, loop) if accumulates else tally.shifted(loop.back(1))

    sets = None if after.sets is None else {name: next_set(tally) for name, tally in after.sets.items()}
    standing = changed(after.standing, next_set)
    record = {name: sep.shifted(loop.back(1)) for name, sep in after.record.items()}
    inside = tuple(bound.shifted(loop.back(1)) for bound in after.inside)
    loose = tuple(bound.shifted(loop.back(1)) for bound in after.loose)
    candidate = evolve(after, sets=sets, standing=standing, record=record, inside=inside, loose=loose)
    return inherit_bounds(entry, candidate, loop) if isinstance(entry, Data) else candidate


def _drop_varying_scales(after: Data, loop: Loop) -> Data:
    """Drop from a sum over iterations the names by which the scales of its summands differ between iterations.

    The form of the result mentions them: "sum by NAME of ...".
    """
    if not after.plain or not after.sets:
        return after
    varying = {
        n for n, part in after.record.items() if n in after.scales and loop.symbol in symbols(*symbolic_parts(part))
    }
    form = f"sum by {', '.join(sorted(varying))} of {after.form}" if varying else after.form
    return evolve(after, record={name: part for name, part in after.record.items() if name not in varying}, form=form)


def _telescope_set(tally: Multiset, loop: Loop) -> Multiset:
    """Telescope the runs that are adjacent from iteration to iteration over all earlier ones; shift the others."""
    runs: list[Run] = []
    run = _as_run(tally.other, loop) if loop.symbol in symbols(tally.other) else None
    tally = tally if run is None else Multiset((*tally.runs, run))
    for each in tally.runs:
        if loop.symbol not in symbols(each.low, each.high, each.rest):
            runs.append(each)
            continue
        grown = telescope_run(each, loop)
        runs.append(each.shifted(loop.back(1)) if grown is None else grown)
    return Multiset(merge_runs(runs), substitute(tally.other, loop.back(1)))


def _as_run(count: Index, loop: Loop) -> Run | None:
    """A count of 1 under a conjunction as the run between the two bounds that move with the loop; None if not so."""
    if not isinstance(count, Pick) or count.then is not algebra.const(1) or count.other is not algebra.const(0):
        return None
    x, lows, highs, rest = algebra.sym(COUNTED), list[Index](), list[Index](), list[Cond]()
    for part in count.cond.parts if isinstance(count.cond, And) else (count.cond,):
        room = algebra.sub(part.right, part.left) if isinstance(part, Cmp) and part.op == "<=" else None
        if room is None or COUNTED not in symbols(room):
            rest.append(part)
        elif COUNTED not in symbols(algebra.sub(room, x)):
            lows += _bound_operands(algebra.sub(x, room), "max")
        elif COUNTED not in symbols(algebra.add(room, x)):
            highs += _bound_operands(algebra.add(room, x, 1), "min")
        else:
            return None
    low, high = ([each for each in ends if loop.symbol in symbols(each)] for ends in (lows, highs))
    rest += [algebra.le(each, x) for each in lows if each not in low]
    rest += [algebra.lt(x, each) for each in highs if each not in high]
    if len(low) != 1 or len(high) != 1 or loop.symbol in symbols(*rest):
        return None
    return Run(low[0], high[0], algebra.all_of(rest), np.ones((1, 1), np.int64))


def _bound_operands(end: Index, op: Literal["max", "min"]) -> Iterator[Index]:
    """The operands of an end of a run that is a (nested) `max` or `min`; the end itself otherwise."""
    for atom, factor in end.terms if isinstance(end, Sum) else ((end, 1),):
        if isinstance(atom, Bin) and atom.op == op and factor > 0:
            rest = algebra.sub(end, algebra.mul(atom, factor))
            for each in (atom.left, atom.right):
                yield from _bound_operands(algebra.add(rest, algebra.mul(each, factor)), op)
            return
    yield end


# -- equality ------------------------------------------------------------------------------------------------


def equal_values(one: Value, two: Value) -> Cond | None:
    """The condition that two values are equal wherever the first is known; None if they differ in kind.

    The second may be a number: the neutral element of a sum or maximum over an empty set.
    """
    if isinstance(two, Number):
        return _equals_empty_fold(one, two.value)
    if not isinstance(one, Data) or not isinstance(two, Data):
        return None
    padding = equal_bounds(one, two)
    if one.record.keys() != two.record.keys() or padding is None:
        return None
    if (one.root, one.times, one.sets is None, one.scales) != (two.root, two.times, two.sets is None, two.scales):
        return None
    if not set(two.needs) <= set(one.needs):
        return None
    standing = agreeing(one.standing, two.standing)
    if standing is None or [name for name, _ in one.closed] != [name for name, _ in two.closed]:
        return None
    closed = [equal_sets({"": a}, {"": b}) for (_, a), (_, b) in zip(one.closed, two.closed, strict=True)]
    records = [equal_indices(one.record[name], two.record[name]) for name in one.record]
    known = (padding, covers_bounds(two, one))
    return algebra.all_of((standing, *known, equal_sets(one.sets or {}, two.sets or {}), *closed, *records))


def _equals_empty_fold(value: Value, number: float) -> Cond | None:
    """The condition that a value is `number` because it is a fold over an empty set; None if that is impossible."""
    if isinstance(value, Number):
        return algebra.TRUE if value.value == number else None
    if not isinstance(value, Data):
        return None
    padded = bool(value.inside) and not isnan(value.fill)  # padding of unknown value is not compared
    if guards(value.standing) or (padded and value.fill != number):
        return None
    if isinstance(value.standing, Maximum) and number == float("-inf"):
        return _all_empty(value.standing.over)
    if value.sets and number == 0:
        return _all_empty(value.sets)
    if isinstance(value.standing, Statistic) and ratios.value_of_nothing(value.standing.value) == number:
        return algebra.all_of(_all_empty({name: tally}) for name, tally in value.standing.sets)
    return None


def _all_empty(sets: Sets) -> Cond:
    """The condition that all sets are empty."""
    goals: list[Cond] = []
    for tally in sets.values():
        goals += [algebra.le(each.high, each.low) for each in tally.runs]
        goals.append(algebra.eq(tally.other, 0))
    return algebra.all_of(goals)
