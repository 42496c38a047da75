"""Races on shared memory (I5, I36, I30, I31): two waves access one cell, one writes, and no barrier orders them.

All waves execute one sequence of steps and their n-th barriers synchronise, so one pair of executions represents all:
they are ordered iff there is a barrier between them and the earlier one completes before it. Where some waves lead by
barriers of their own, this is required for every two groups of waves that access a common cell (`epochs`). Within one
wave, LDS operations are in order.
I5: the write is first in program order; I36: the read is first; I30: a read not drained before the barrier; I31: a
write not drained before it.
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
_UNKNOWN_LEAD = "the number of barriers by which some waves lead others varies between iterations"


def race_obligations(flow: Flow) -> Iterator[Obligation]:
    """One obligation for each pair of possibly conflicting accesses, at each iteration distance in the horizon."""
    for step in flow.timeline.steps:
        for access in flow.accesses.of(step):
            if access.view.buffer.space == "shared":
                if access.mode == "write":
                    yield from _no_double_writes(access)
                yield from _against_earlier(flow, access)


def _no_double_writes(access: Access) -> Iterator[Obligation]:
    """I5: two threads of one statement never write one cell."""
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
    for execution in flow.history.before(later.step):
        if isinstance(execution, Horizon):
            yield from _beyond_horizon(flow, later, execution, settled)
            continue
        for earlier in flow.accesses.of(execution.step):
            conflict = "write" in (earlier.mode, later.mode)
            if earlier.view.buffer is later.view.buffer and conflict and earlier not in settled:
                yield from _same_wave_obligation(flow, earlier, execution, later)
                found = _pair_obligation(flow, earlier, execution, later)
                if found is not None:
                    yield found
                    if found.goal is algebra.TRUE:
                        yield _drained_obligation(found)
                    if found.goal is algebra.TRUE and _ordered_at_all_distances(flow, execution, later):
                        settled.add(earlier)


def _same_wave_obligation(flow: Flow, earlier: Access, execution: Execution, later: Access) -> Iterator[Obligation]:
    """A direct load to LDS is not in order with its wave's LDS operations: the earlier must complete before the later.

    Two direct loads of one wave complete in order.
    """
    if _is_direct(earlier) == _is_direct(later):
        return
    common = overlap(later, earlier, execution.shift)
    if common is None:
        return  # reported as unknown by `_pair_obligation`
    cond = algebra.all_of((common.slots, execution.exists))
    if not _shares_wave(flow, common) or flow.impossible(later.step.context, cond):
        return
    context = (*later.step.context, cond)
    done = flow.ordering.completed(execution, later.step, context) is not None
    code = "I30" if earlier.mode == "read" else "I31"
    queue = "vmem" if _is_direct(earlier) else "lds"
    yield Obligation(
        code,
        f"the {earlier.mode} of `{later.view.buffer.name}` is complete before the same wave's {later.mode}",
        later.step.stmt,
        algebra.TRUE if done else algebra.FALSE,
        context,
        earlier.step.stmt,
        compared=common.cells.first.size,
        help="" if done else f"put `{queue}.wait(0)` between them: a direct load is not in order with LDS operations",
    )


def _is_direct(access: Access) -> bool:
    return isinstance(access.step.stmt, Copy) and access.step.stmt.atom.direct


def _shares_wave(flow: Flow, common: Overlap) -> bool:
    """Whether some wave accesses a common cell in both."""
    mine, theirs = common.cells.waves(flow.timeline.kernel.target.unit)
    return bool((mine & theirs).any())


def _ordered_at_all_distances(flow: Flow, execution: Execution, later: Access) -> bool:
    """Whether the order of this pair implies the order of the same pair at every greater distance.

    In one loop: the path of a pair at a greater distance starts with this path, up to an earlier execution of the
    later step; so the order must not depend on the later step's guard. From an earlier loop: every wait and barrier
    used must execute in any iteration.
    """
    if execution.distance == 0:
        return False
    loop = later.step.loop
    context = (*loop.facts, execution.exists) if execution.distance is not None and loop is not None else ()
    return flow.ordering.relation(execution, later.step, context, flow.epochs.pairs) == "ordered"


def _pair_obligation(flow: Flow, earlier: Access, execution: Execution, later: Access) -> Obligation | None:
    """The obligation for two executions; None if they cannot access one cell from two waves."""
    common = overlap(later, earlier, execution.shift)
    name = later.view.buffer.name
    what = f"a barrier orders the {earlier.mode} and the {later.mode} of `{name}`"
    if common is None:
        reason = "an address does not separate into slot and cell"
        return Obligation("I5", what, later.step.stmt, algebra.FALSE, later.step.context, earlier.step.stmt, reason)
    cond = algebra.all_of((common.slots, execution.exists))
    pairs = _conflicting_groups(common, flow)
    if not pairs:
        return None
    if cond is algebra.FALSE or flow.impossible(later.step.context, cond):
        return None
    context = (*later.step.context, cond)
    relation = flow.ordering.relation(execution, later.step, context, pairs)
    read_first = earlier.mode == "read"
    code = ("I30" if read_first else "I31") if relation == "undrained" else ("I36" if read_first else "I5")
    return Obligation(
        code,
        what,
        later.step.stmt,
        algebra.TRUE if relation == "ordered" else algebra.FALSE,
        context,
        earlier.step.stmt,
        _UNKNOWN_LEAD if relation == "unknown" else "",
        minimise=tuple(algebra.sym(s) for s in sorted(symbols(cond), key=lambda s: s.name)),
        compared=common.cells.first.size,
        help="" if relation == "ordered" else _REPAIRS[code],
    )


def _drained_obligation(ordered: Obligation) -> Obligation:
    """The second obligation of an ordered pair: the earlier access completes before the barrier that orders it."""
    code = "I30" if ordered.invariant == "I36" else "I31"
    return evolve(ordered, invariant=code, what=ordered.what.replace("orders", "follows the completion of"))


def _conflicting_groups(common: Overlap, flow: Flow) -> tuple[Pair, ...]:
    """The pairs of groups, earlier and later, of which different waves access a common cell."""
    groups = flow.epochs.groups
    mine, theirs = common.cells.waves(flow.timeline.kernel.target.unit)
    return tuple(
        (g, h)
        for g, before in enumerate(groups)
        for h, after in enumerate(groups)
        if _two_waves(mine & after, theirs & before)
    )


def _two_waves(mine: IntArray, theirs: IntArray) -> bool:
    """Whether some cell is accessed by a wave of the first set and a different wave of the second."""
    both = (mine != 0) & (theirs != 0)
    alone = (mine == theirs) & ((mine & (mine - 1)) == 0)
    return bool((both & ~alone).any())


def _beyond_horizon(flow: Flow, later: Access, horizon: Horizon, settled: set[Access]) -> Iterator[Obligation]:
    """Conflicts beyond the horizon: ordered if the pair at the horizon is, otherwise unknown."""
    if flow.impossible(later.step.context, horizon.reached):
        return
    loose = [a for a in _conflicting(flow, later, horizon) if a not in settled and not _never_overlap(flow, a, later)]
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
            "the two may be more iterations apart than the model covers",
        )


def _conflicting(flow: Flow, later: Access, horizon: Horizon) -> Iterator[Access]:
    for step in horizon.segment.steps:
        for access in flow.accesses.of(step):
            if access.view.buffer is later.view.buffer and "write" in (access.mode, later.mode):
                yield access


def _never_overlap(flow: Flow, earlier: Access, later: Access) -> bool:
    """Whether two accesses have no common cell in any iteration; the variable of another loop is free."""
    common = overlap(later, earlier, {})
    if common is None:
        return False
    if earlier.step.loop is not later.step.loop and flow.impossible(later.step.context, common.slots):
        return True
    if _is_direct(earlier) != _is_direct(later) and _shares_wave(flow, common):
        return False
    return not _conflicting_groups(common, flow)


def _ordered_at_horizon(flow: Flow, earlier: Access, later: Access) -> bool:
    """A pair that is ordered two iterations apart is ordered at every greater distance."""
    loop = flow.timeline.segments[later.step.segment].loop
    if loop is None or earlier.step.loop is not loop:
        return False
    execution = Execution(earlier.step, loop.back(2), loop.has_earlier(2), 2)
    context: tuple[Cond, ...] = (*later.step.context, execution.exists)
    return flow.ordering.relation(execution, later.step, context, flow.epochs.pairs) == "ordered"
