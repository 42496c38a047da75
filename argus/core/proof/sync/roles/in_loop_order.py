"""Order of agents within each trip of a loop over uses (`turns`), modelled as rings of one stage without data.

All agents process the same tiles. Agent a waits for phase u of its barrier (agent 0 for phase u - 1) and, on leaving,
arrives at the barrier of the next agent, the last one at that of agent 0. Each pair of an agent and the next one, and
that of agent 0 and the last one, is the producer and the consumer of a ring. Of two agents, these are one ring, and
the program has both of its barriers. Of more, it lacks some: the empty barriers between neighbours, and the full one
between agent 0 and the last. They change nothing: an agent arrives at them just before it arrives at a barrier of the
program, and waits for them just after it has waited for one; what it then waits for lies before the turn that it got.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from argus.core import algebra
from argus.core.index import Const, Index
from argus.core.ir import Arrive, Await, Buffer, Kernel, Stmt, static
from argus.core.proof.sync.roles.context import ProofContext, refuse
from argus.core.proof.sync.roles.events import OrderEvent, SyncEvent
from argus.core.proof.sync.roles.parsed import ParsedRole, UseLoop, arrivals
from argus.core.proof.sync.roles.prologue_epilogue import PlacedOp
from argus.core.protocol.ring import ArriveFull, Op, Release, Ring, WaitEmpty, WaitFull


@frozen(eq=False)
class InLoopOrder:
    """The turns of a role's agents. number: of the first of the rings that model them. ring: each of these."""

    role: ParsedRole
    number: int
    barrier: Buffer
    ring: Ring

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The producer and the consumer of each ring."""
        last = self.role.role.agents - 1
        return (*((agent, agent + 1) for agent in range(last)), *(((0, last),) if last > 1 else ()))


def find_in_loop_order(kernel: Kernel, role: ParsedRole, number: int, proof: ProofContext) -> InLoopOrder | None:
    """The in-loop order of a role; None if no loop takes turns. Raises RefusedError if it has another form."""
    found = [_turn(role, run) for run in role.use_loops]
    present = [pair for pair in found if pair is not None]
    if not present:
        return None
    enter = present[0][0]
    if len(present) != len(found):
        refuse(enter.stmt, "turns in one of several loops over uses")
    if any(isinstance(event.action, OrderEvent) for event in (*role.prologue, *role.epilogue)):
        refuse(enter.stmt, "turns both in a loop over uses and outside of it")
    if role.role.agents < 2 or (role.tile_loop.tiles is not None and role.tile_loop.tiles.step != 1):
        refuse(enter.stmt, "turns in a loop over uses that are not between several agents with the same tiles")
    if any(_event_types(run) != _event_types(role.use_loops[0]) for run in role.use_loops):
        refuse(enter.stmt, "turns at different positions in two loops over uses")
    if not _same_barriers(present):
        refuse(enter.stmt, "turns at different barriers in two loops over uses")
    for run, pair in zip(role.use_loops, present, strict=True):
        _check(kernel, role, run, pair, proof)
    lacking = algebra.sub(role.uses, role.trips)
    assert isinstance(lacking, Const)
    ring = Ring(1, (), 1, 1, fewer=lacking.value)
    assert isinstance(enter.stmt, Await)
    return InLoopOrder(role, number, enter.stmt.event.buffer, ring)


def _same_barriers(pairs: list[tuple[OrderEvent, OrderEvent]]) -> bool:
    """Whether all loops use one array of barriers: its phases continue from one loop to the next."""
    return len({stmt.event.buffer for pair in pairs for stmt in (pair[0].stmt, pair[1].stmt)}) == 1


def _event_types(run: UseLoop) -> list[type[object]]:
    return [type(event.action) for event in run.events if not isinstance(event.action, SyncEvent)]


def _turn(role: ParsedRole, run: UseLoop) -> tuple[OrderEvent, OrderEvent] | None:
    events = [event for event in run.events if isinstance(event.action, OrderEvent)]
    if not events:
        return None
    if any(event.guard is not algebra.TRUE for event in events):
        refuse(events[0].stmt, "a turn under a condition")
    found = [event.action for event in events if isinstance(event.action, OrderEvent)]
    if len(found) != 2 or not isinstance(found[0].stmt, Await) or not isinstance(found[1].stmt, Arrive):
        refuse(events[0].stmt, f"a turn of `{role.role.name}` that is not one wait and one arrival per trip")
    return found[0], found[1]


def _check(
    kernel: Kernel, role: ParsedRole, run: UseLoop, pair: tuple[OrderEvent, OrderEvent], proof: ProofContext
) -> None:
    enter, leave = pair[0].stmt, pair[1].stmt
    assert isinstance(enter, Await)
    assert isinstance(leave, Arrive)
    barrier, number, agents = enter.event.buffer, algebra.sym(role.role.number), role.role.agents
    if enter.event.at[0] is not number or static(barrier.shape[0]) != agents or arrivals(kernel, barrier) != 1:
        refuse(enter, "an agent does not wait for its own barrier of turns, with an arrival count of one")
    following = algebra.mod(algebra.add(number, 1), agents)
    known = algebra.le(0, number), algebra.lt(number, agents)
    same = leave.event.at[0] is following or proof.equal(known, leave.event.at[0], following)
    if leave.event.buffer is not barrier or not same or pair[1].count != 1:
        refuse(leave, "leaving a turn does not arrive once at the next agent's barrier")
    use = algebra.add(_base(role, proof), run.trip)
    facts = (*role.facts, *run.facts)
    for agent in range(agents):
        own = (*facts, algebra.eq(number, agent))
        if not proof.equal(own, enter.phase, algebra.sub(use, int(agent == 0))):
            refuse(enter, "an agent does not wait for the turn that the agent before it leaves")


def _base(role: ParsedRole, proof: ProofContext) -> Index:
    tiles = role.tile_loop.tiles
    return algebra.const(0) if tiles is None else proof.base(algebra.pick(role.active, role.trips, 0), tiles)


def insert_order_ops(
    role: ParsedRole, ops: tuple[PlacedOp, ...], chain: InLoopOrder, agent: int
) -> tuple[PlacedOp, ...]:
    """The operations of one agent, with its turns inserted at their positions in the first loop."""
    made: list[PlacedOp] = []
    left = list(ops)
    for event in role.loop_events:
        if isinstance(event.action, OrderEvent):
            made.extend(_ops(event.stmt, chain, agent))
            continue
        while left and left[0].stmt is event.stmt:
            made.append(left.pop(0))
    return (*made, *left)


def _ops(stmt: Stmt, chain: InLoopOrder, agent: int) -> Iterator[PlacedOp]:
    """What an agent does at the rings: first waits of the program, then others; first other arrivals, then those of it.

    The program's are a wait for the agent before, and an arrival for the one after.
    """
    last, enters = chain.role.role.agents - 1, isinstance(stmt, Await)
    before, after = ((0, last), (0, 1)) if agent == 0 else ((agent - 1, agent), (agent, agent + 1))
    own = before if enters else (0, last) if agent == last else after
    others = [pair for pair in chain.pairs if agent in pair and pair != own]
    for pair in (own, *others) if enters else (*others, own):
        number = chain.number + chain.pairs.index(pair)
        produces = agent == pair[0]
        op: Op = WaitEmpty(number) if produces else WaitFull(number)
        if not enters:
            op = ArriveFull(0, number) if produces else Release(number)
        yield PlacedOp(op, stmt, chain.barrier, algebra.TRUE)
