"""What a tile carried round a loop may hold, guessed from one iteration, and when two guesses are the same.

What an iteration leaves, an iteration later; sets that grow by adjacent runs are summed over all iterations before.
How a guess was come by does not matter: `carried` checks it.
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
    """What is held before iteration k if an iteration on what was held on entry leaves `after`."""
    if not isinstance(after, Data):
        return after
    if loop.symbol in symbols(*after.needs):
        return Top("what a tile holds presumes something of every iteration")
    after = _without_scales(after, loop)
    names = {loop.symbol} & symbols(*(case for part in after.record.values() for case in symbolic_parts(part)))
    grows = not names and not isinstance(entry, Bottom)

    def guess(tally: Multiset) -> Multiset:
        return _grown(tally, loop) if grows else tally.shifted(loop.back(1))

    sets = None if after.sets is None else {name: guess(tally) for name, tally in after.sets.items()}
    standing = changed(after.standing, guess)
    record = {name: sep.shifted(loop.back(1)) for name, sep in after.record.items()}
    inside = tuple(bound.shifted(loop.back(1)) for bound in after.inside)
    loose = tuple(bound.shifted(loop.back(1)) for bound in after.loose)
    guessed = evolve(after, sets=sets, standing=standing, record=record, inside=inside, loose=loose)
    return inherit_bounds(entry, guessed, loop) if isinstance(entry, Data) else guessed


def _without_scales(after: Data, loop: Loop) -> Data:
    """Of a sum over iterations, the names in which its summands' scales differ are no longer names of it, and are told
    as what it is a sum by.
    """
    if not after.plain or not after.sets:
        return after
    gone = {
        n for n, part in after.record.items() if n in after.scales and loop.symbol in symbols(*symbolic_parts(part))
    }
    form = f"sum by {', '.join(sorted(gone))} of {after.form}" if gone else after.form
    return evolve(after, record={name: part for name, part in after.record.items() if name not in gone}, form=form)


def _grown(tally: Multiset, loop: Loop) -> Multiset:
    """Runs that follow each other from iteration to iteration, all of them before this one; others as they were."""
    runs: list[Run] = []
    told = _as_run(tally.other, loop) if loop.symbol in symbols(tally.other) else None
    tally = tally if told is None else Multiset((*tally.runs, told))
    for each in tally.runs:
        if loop.symbol not in symbols(each.low, each.high, each.rest):
            runs.append(each)
            continue
        grown = telescope_run(each, loop)
        runs.append(each.shifted(loop.back(1)) if grown is None else grown)
    return Multiset(merge_runs(runs), substitute(tally.other, loop.back(1)))


def _as_run(count: Index, loop: Loop) -> Run | None:
    """A count of one where conditions hold as the run between those two of them that move with the loop; else None."""
    if not isinstance(count, Pick) or count.then is not algebra.const(1) or count.other is not algebra.const(0):
        return None
    x, lows, highs, rest = algebra.sym(COUNTED), list[Index](), list[Index](), list[Cond]()
    for part in count.cond.parts if isinstance(count.cond, And) else (count.cond,):
        room = algebra.sub(part.right, part.left) if isinstance(part, Cmp) and part.op == "<=" else None
        if room is None or COUNTED not in symbols(room):
            rest.append(part)
        elif COUNTED not in symbols(algebra.sub(room, x)):
            lows += _ends(algebra.sub(x, room), "max")
        elif COUNTED not in symbols(algebra.add(room, x)):
            highs += _ends(algebra.add(room, x, 1), "min")
        else:
            return None
    low, high = ([each for each in ends if loop.symbol in symbols(each)] for ends in (lows, highs))
    rest += [algebra.le(each, x) for each in lows if each not in low]
    rest += [algebra.lt(x, each) for each in highs if each not in high]
    if len(low) != 1 or len(high) != 1 or loop.symbol in symbols(*rest):
        return None
    return Run(low[0], high[0], algebra.all_of(rest), np.ones((1, 1), np.int64))


def _ends(end: Index, op: Literal["max", "min"]) -> Iterator[Index]:
    """The integers of which an end is the greatest, or the least."""
    for atom, factor in end.terms if isinstance(end, Sum) else ((end, 1),):
        if isinstance(atom, Bin) and atom.op == op and factor > 0:
            rest = algebra.sub(end, algebra.mul(atom, factor))
            for each in (atom.left, atom.right):
                yield from _ends(algebra.add(rest, algebra.mul(each, factor)), op)
            return
    yield end


# -- equality ------------------------------------------------------------------------------------------------


def equal_values(one: Value, two: Value) -> Cond | None:
    """The condition that two values are the same, wherever the first says something; None if they differ in kind.

    A number may stand for what is summed, or maximised, over nothing.
    """
    if isinstance(two, Number):
        return _nothing(one, two.value)
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


def _nothing(value: Value, number: float) -> Cond | None:
    """The condition that a value is this number because nothing has been folded into it."""
    if isinstance(value, Number):
        return algebra.TRUE if value.value == number else None
    if not isinstance(value, Data):
        return None
    padded = bool(value.inside) and not isnan(value.fill)  # of another padding nothing is said
    if guards(value.standing) or (padded and value.fill != number):
        return None
    if isinstance(value.standing, Maximum) and number == float("-inf"):
        return _empty(value.standing.over)
    if value.sets and number == 0:
        return _empty(value.sets)
    if isinstance(value.standing, Statistic) and ratios.value_of_nothing(value.standing.value) == number:
        return algebra.all_of(_empty({name: tally}) for name, tally in value.standing.sets)
    return None


def _empty(sets: Sets) -> Cond:
    """The condition on x that nothing is counted."""
    goals: list[Cond] = []
    for tally in sets.values():
        goals += [algebra.le(each.high, each.low) for each in tally.runs]
        goals.append(algebra.eq(tally.other, 0))
    return algebra.all_of(goals)
