"""Turns taken in each trip of a loop, by two agents that walk over the same tiles: a ring of one slot without data.

Agent 0 waits for phase u - 1 of its barrier and, leaving, completes phase u of the other's; agent 1 waits for that
and gives the turn back. So the one fills, the other drains, and the protocol of rings judges them.
"""

from __future__ import annotations

from attrs import frozen

from argus.core import algebra
from argus.core.index import Cond, Const, Index
from argus.core.ir import Arrive, Await, Buffer, Kernel, Stmt, static
from argus.core.proof.sync.roles.context import Ledger, refuse
from argus.core.proof.sync.roles.events import Met, Turned
from argus.core.proof.sync.roles.parsed import Parsed, Run, arrivals
from argus.core.proof.sync.roles.prologue_epilogue import Placed
from argus.core.protocol.ring import ArriveFull, Op, Release, Ring, WaitEmpty, WaitFull


@frozen(eq=False)
class Chain:
    """Turns of a role's two agents. number: of the ring that stands for them."""

    role: Parsed
    number: int
    barrier: Buffer
    ring: Ring


def chained(kernel: Kernel, role: Parsed, number: int, ledger: Ledger) -> Chain | None:
    """None if no turn is taken in a loop. Raises RefusedError where it is not such an order."""
    found = [_turn(role, run) for run in role.runs]
    present = [pair for pair in found if pair is not None]
    if not present:
        return None
    enter = present[0][0]
    if len(present) != len(found):
        refuse(enter.stmt, "turns in one of several loops over uses")
    if any(isinstance(event.happening, Turned) for event in (*role.ahead, *role.behind)):
        refuse(enter.stmt, "turns in a loop over uses and beside it")
    if role.role.agents != 2 or (role.laps.tiles is not None and role.laps.tiles.step != 1):
        refuse(enter.stmt, "turns in a loop over uses, of other than two agents with the same tiles")
    if any(_kinds(run) != _kinds(role.runs[0]) for run in role.runs):
        refuse(enter.stmt, "turns at other places in one loop over uses than in another")
    if not _of_one_barrier(present):
        refuse(enter.stmt, "turns at other barriers in one loop over uses than in another")
    for run, pair in zip(role.runs, present, strict=True):
        _judge(kernel, role, run, pair, ledger)
    lacking = algebra.sub(role.uses, role.trips)
    assert isinstance(lacking, Const)
    ring = Ring(1, (), 1, 1, fewer=lacking.value)
    assert isinstance(enter.stmt, Await)
    return Chain(role, number, enter.stmt.event.buffer, ring)


def _of_one_barrier(pairs: list[tuple[Turned, Turned]]) -> bool:
    """Phases go on from one loop over uses to the next, so that all count those of one array of barriers."""
    return len({stmt.event.buffer for pair in pairs for stmt in (pair[0].stmt, pair[1].stmt)}) == 1


def _kinds(run: Run) -> list[type[object]]:
    return [type(event.happening) for event in run.events if not isinstance(event.happening, Met)]


def _turn(role: Parsed, run: Run) -> tuple[Turned, Turned] | None:
    events = [event for event in run.events if isinstance(event.happening, Turned)]
    if not events:
        return None
    if any(event.guard is not algebra.TRUE for event in events):
        refuse(events[0].stmt, "a turn that is taken under a condition")
    found = [event.happening for event in events if isinstance(event.happening, Turned)]
    if len(found) != 2 or not isinstance(found[0].stmt, Await) or not isinstance(found[1].stmt, Arrive):
        refuse(events[0].stmt, f"a turn of `{role.role.name}` that is not one wait and one arrival a trip")
    return found[0], found[1]


def _judge(kernel: Kernel, role: Parsed, run: Run, pair: tuple[Turned, Turned], ledger: Ledger) -> None:
    enter, leave = pair[0].stmt, pair[1].stmt
    assert isinstance(enter, Await)
    assert isinstance(leave, Arrive)
    barrier, number = enter.event.buffer, algebra.sym(role.role.number)
    if enter.event.at[0] is not number or static(barrier.shape[0]) != 2 or arrivals(kernel, barrier) != 1:
        refuse(enter, "an agent does not wait for its own barrier of turns, of one arrival")
    following = algebra.mod(algebra.add(number, 1), 2)
    same = leave.event.at[0] is following or ledger.equal(_agents(number), leave.event.at[0], following)
    if leave.event.buffer is not barrier or not same or pair[1].count != 1:
        refuse(leave, "leaving a turn does not arrive once at the next agent's barrier")
    use = algebra.add(_base(role, ledger), run.trip)
    facts = (*role.facts, *run.facts)
    for agent in (0, 1):
        own = (*facts, algebra.eq(number, agent))
        if not ledger.equal(own, enter.phase, algebra.add(use, agent - 1)):
            refuse(enter, "the turn waited for is not the one after the agent before has left")


def _agents(number: Index) -> tuple[Cond, ...]:
    return algebra.le(0, number), algebra.lt(number, 2)


def _base(role: Parsed, ledger: Ledger) -> Index:
    tiles = role.laps.tiles
    return algebra.const(0) if tiles is None else ledger.base(algebra.pick(role.worked, role.trips, 0), tiles)


def with_turns(role: Parsed, ops: tuple[Placed, ...], chain: Chain, agent: int) -> tuple[Placed, ...]:
    """The operations of one agent, its turns among them where its first loop takes them."""
    made: list[Placed] = []
    left = list(ops)
    for event in role.during:
        if isinstance(event.happening, Turned):
            made.append(_op(event.stmt, chain, agent))
            continue
        while left and left[0].stmt is event.stmt:
            made.append(left.pop(0))
    return (*made, *left)


def _op(stmt: Stmt, chain: Chain, agent: int) -> Placed:
    number = chain.number
    first: Op
    if isinstance(stmt, Await):
        first = WaitEmpty(number) if agent == 0 else WaitFull(number)
    else:
        first = ArriveFull(0, number) if agent == 0 else Release(number)
    return Placed(first, stmt, chain.barrier, algebra.TRUE)
