"""Races on shared memory: two waves, one cell, one of them writing, and no barrier that orders them.

All waves execute one line of steps and the n-th barriers pair, so one pair of executions stands for all: they
are ordered iff a barrier lies between, with the earlier one drained before it; where some waves lead by barriers of
their own, for every two groups of waves that meet in a cell (`epochs`). Within one wave the LDS works in order.
I5: the write comes first in program order; I36: the read does; I30: a read that is not drained at the barrier; I31: a
write that is not.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from attrs import evolve

from argus.core import algebra
from argus.core.index import Cond
from argus.core.ir import Copy
from argus.core.proof.dataflow.access import Access, Overlap, overlap
from argus.core.proof.dataflow.executions import Execution, Horizon
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.obligation import Obligation
from argus.core.proof.sync.epochs import Pair
from argus.core.walk import IntArray, symbols

_REPAIRS = {
    "I5": "put a `sync()` between the write and the read",
    "I36": "put a `sync()` between the read and the next write of the same cells",
    "I30": "put `lds.wait(0)` after the read and before the barrier",
    "I31": "put `lds.wait(0)` after the write and before the barrier",
}
_APART = "how many barriers some waves are ahead of others differs from iteration to iteration"


def obligations(flow: Flow) -> Iterator[Obligation]:
    """One obligation for each pair of accesses that may conflict, at each distance that matters."""
    for step in flow.timeline.steps:
        for access in flow.accesses.of(step):
            if access.view.buffer.space == "shared":
                if access.mode == "write":
                    yield from _within(access)
                yield from _against_earlier(flow, access)


def _within(access: Access) -> Iterator[Obligation]:
    """Two threads of one statement never write one cell."""
    name = access.view.buffer.name
    own = overlap(access, access, {})
    what = f"no two threads write one cell of `{name}`"
    if own is None:
        reason = "its address does not separate into slot and cell"
        yield Obligation("I5", what, access.step.stmt, algebra.FALSE, access.step.context, unknown=reason)
        return
    cells = np.sort(own.cells.first, axis=None)
    distinct = not (cells[1:] == cells[:-1]).any()
    goal = algebra.TRUE if distinct else algebra.FALSE
    yield Obligation("I5", what, access.step.stmt, goal, access.step.context, compared=own.cells.first.size)


def _against_earlier(flow: Flow, later: Access) -> Iterator[Obligation]:
    settled: set[Access] = set()
    for moment in flow.history.before(later.step):
        if isinstance(moment, Horizon):
            yield from _beyond(flow, later, moment, settled)
            continue
        for earlier in flow.accesses.of(moment.step):
            conflict = "write" in (earlier.mode, later.mode)
            if earlier.view.buffer is later.view.buffer and conflict and earlier not in settled:
                yield from _of_one_wave(flow, earlier, moment, later)
                found = _pair(flow, earlier, moment, later)
                if found is not None:
                    yield found
                    if found.goal is algebra.TRUE:
                        yield _drained(found)
                    if found.goal is algebra.TRUE and _for_all_older(flow, moment, later):
                        settled.add(earlier)


def _of_one_wave(flow: Flow, earlier: Access, moment: Execution, later: Access) -> Iterator[Obligation]:
    """A load that goes to shared memory directly is not served in order with its wave's LDS operations: the earlier of
    the two must be over before the later one begins. Two such loads of one wave land in order.
    """
    if _direct(earlier) == _direct(later):
        return
    met = overlap(later, earlier, moment.shift)
    if met is None:
        return  # the pair is unknown already, whatever the waves
    cond = algebra.all_of((met.slots, moment.exists))
    if not _one_wave(flow, met) or flow.impossible(later.step.context, cond):
        return
    context = (*later.step.context, cond)
    done = flow.ordering.completed(moment, later.step, context) is not None
    code = "I30" if earlier.mode == "read" else "I31"
    queue = "vmem" if _direct(earlier) else "lds"
    yield Obligation(
        code,
        f"the {earlier.mode} of `{later.view.buffer.name}` is over before its own wave's {later.mode}",
        later.step.stmt,
        algebra.TRUE if done else algebra.FALSE,
        context,
        earlier.step.stmt,
        compared=met.cells.first.size,
        help="" if done else f"put `{queue}.wait(0)` between them: a direct load is not in order with LDS operations",
    )


def _direct(access: Access) -> bool:
    return isinstance(access.step.stmt, Copy) and access.step.stmt.atom.direct


def _one_wave(flow: Flow, met: Overlap) -> bool:
    """Whether some wave touches a cell in both."""
    mine, theirs = met.cells.waves(flow.timeline.kernel.target.unit)
    return bool((mine & theirs).any())


def _for_all_older(flow: Flow, moment: Execution, later: Access) -> bool:
    """Whether this pair being ordered shows that the same pair further apart is ordered too.

    In one loop: a pair further apart contains, as the start of its path, this very path up to an earlier
    execution of the later step; so the order must not rest on the later step's own guard. From a loop left
    behind: every wait and barrier relied on must happen whatever the iteration.
    """
    if moment.distance == 0:
        return False
    loop = later.step.loop
    context = (*loop.facts, moment.exists) if moment.distance is not None and loop is not None else ()
    return flow.ordering.relation(moment, later.step, context, flow.epochs.pairs) == "ordered"


def _pair(flow: Flow, earlier: Access, moment: Execution, later: Access) -> Obligation | None:
    """The obligation of two executions, or None if they cannot touch one cell from two waves."""
    met = overlap(later, earlier, moment.shift)
    name = later.view.buffer.name
    what = f"a barrier orders the {earlier.mode} and the {later.mode} of `{name}`"
    if met is None:
        reason = "an address does not separate into slot and cell"
        return Obligation("I5", what, later.step.stmt, algebra.FALSE, later.step.context, earlier.step.stmt, reason)
    cond = algebra.all_of((met.slots, moment.exists))
    pairs = _groups(met, flow)
    if not pairs:
        return None
    if cond is algebra.FALSE or flow.impossible(later.step.context, cond):
        return None
    context = (*later.step.context, cond)
    relation = flow.ordering.relation(moment, later.step, context, pairs)
    read_first = earlier.mode == "read"
    code = ("I30" if read_first else "I31") if relation == "undrained" else ("I36" if read_first else "I5")
    return Obligation(
        code,
        what,
        later.step.stmt,
        algebra.TRUE if relation == "ordered" else algebra.FALSE,
        context,
        earlier.step.stmt,
        _APART if relation == "unknown" else "",
        minimise=tuple(algebra.sym(s) for s in sorted(symbols(cond), key=lambda s: s.name)),
        compared=met.cells.first.size,
        help="" if relation == "ordered" else _REPAIRS[code],
    )


def _drained(ordered: Obligation) -> Obligation:
    """The companion of an ordered pair: the earlier access is over before the barrier that orders it."""
    code = "I30" if ordered.invariant == "I36" else "I31"
    return evolve(ordered, invariant=code, what=ordered.what.replace("orders", "follows the end of"))


def _groups(met: Overlap, flow: Flow) -> tuple[Pair, ...]:
    """The groups of waves, earlier and later, of which different waves touch some cell."""
    groups = flow.epochs.groups
    mine, theirs = met.cells.waves(flow.timeline.kernel.target.unit)
    return tuple(
        (g, h)
        for g, before in enumerate(groups)
        for h, after in enumerate(groups)
        if _two_waves(mine & after, theirs & before)
    )


def _two_waves(mine: IntArray, theirs: IntArray) -> bool:
    """Whether some cell is touched by one wave of the first sets and another of the second."""
    both = (mine != 0) & (theirs != 0)
    alone = (mine == theirs) & ((mine & (mine - 1)) == 0)
    return bool((both & ~alone).any())


def _beyond(flow: Flow, later: Access, horizon: Horizon, settled: set[Access]) -> Iterator[Obligation]:
    """Older conflicts are ordered if the ones within the horizon are; otherwise nothing is known."""
    if flow.impossible(later.step.context, horizon.reached):
        return
    loose = [a for a in _conflicting(flow, later, horizon) if a not in settled and not _never(flow, a, later)]
    for earlier in loose:
        if _ordered_at_horizon(flow, earlier, later):
            continue
        yield Obligation(
            "I5",
            f"a barrier orders the {earlier.mode} and the {later.mode} of `{later.view.buffer.name}`",
            later.step.stmt,
            algebra.FALSE,
            later.step.context,
            earlier.step.stmt,
            "the two may be more iterations apart than is modelled",
        )


def _conflicting(flow: Flow, later: Access, horizon: Horizon) -> Iterator[Access]:
    for step in horizon.segment.steps:
        for access in flow.accesses.of(step):
            if access.view.buffer is later.view.buffer and "write" in (access.mode, later.mode):
                yield access


def _never(flow: Flow, earlier: Access, later: Access) -> bool:
    """Whether two accesses touch no cell in common, whatever the iteration; of another loop, its variable is free."""
    met = overlap(later, earlier, {})
    if met is None:
        return False
    if earlier.step.loop is not later.step.loop and flow.impossible(later.step.context, met.slots):
        return True
    if _direct(earlier) != _direct(later) and _one_wave(flow, met):
        return False
    return not _groups(met, flow)


def _ordered_at_horizon(flow: Flow, earlier: Access, later: Access) -> bool:
    """A pair that is ordered two iterations apart is ordered at every greater distance."""
    loop = flow.timeline.segments[later.step.segment].loop
    if loop is None or earlier.step.loop is not loop:
        return False
    moment = Execution(earlier.step, loop.back(2), loop.has_earlier(2), 2)
    context: tuple[Cond, ...] = (*later.step.context, moment.exists)
    return flow.ordering.relation(moment, later.step, context, flow.epochs.pairs) == "ordered"
