"""Order of agents with different tiles (`turns`): agent i enters its tile once agent i - 1 has left its own.

Each agent has a barrier of arrival count one: for its use u, agent i waits for phase u of barrier i (agent 0 for phase
u - 1), and on leaving arrives at the barrier of agent i + 1. That this is mutual exclusion in order, without ambiguous
parity and without deadlock, is model-checked once per number of agents, modulo two uses; it holds for any number of
tiles.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from attrs import frozen

from argus.core import algebra
from argus.core.ir import Arrive, Await, Kernel, Stmt, static
from argus.core.proof.sync.roles.context import ProofContext, refuse
from argus.core.proof.sync.roles.events import ArriveEvent, MmaEvent, OrderEvent, ReadEvent, SyncEvent, WaitEvent
from argus.core.proof.sync.roles.parsed import ParsedRole, arrivals


def check_agent_order(kernel: Kernel, role: ParsedRole, proof: ProofContext) -> bool:
    """Whether the role's agents are ordered by turns; False if it uses no barrier of turns. Raises RefusedError."""
    found = list(order_events(role))
    if not found:
        return False
    tiles, own = role.tile_loop.tiles, role.role
    enters = [each for each in found if isinstance(each.stmt, Await)]
    leaves = [each for each in found if isinstance(each.stmt, Arrive)]
    if tiles is None or tiles.step != own.agents or len(enters) != 1 or len(leaves) != 1:
        refuse(found[0].stmt, "a barrier not indexed by a use, which is not one of turns between agents' tiles")
    _check_enter(kernel, role, enters[0], proof)
    _check_leave(role, leaves[0], enters[0])
    if not is_strict_order(own.agents):
        refuse(enters[0].stmt, f"turns of {own.agents} agents are not known to order them")
    return True


def _check_enter(kernel: Kernel, role: ParsedRole, enter: OrderEvent, proof: ProofContext) -> None:
    stmt, own = enter.stmt, role.role
    assert isinstance(stmt, Await)
    assert role.tile_loop.tiles is not None
    barrier, number = stmt.event.buffer, algebra.sym(own.number)
    if stmt.event.at[0] is not number or static(barrier.shape[0]) != own.agents or arrivals(kernel, barrier) != 1:
        refuse(stmt, "an agent does not wait for its own barrier of turns, with an arrival count of one")
    use = proof.rounds(role.tile_loop.tiles.symbol)
    first = (algebra.eq(number, 0),)
    others = (algebra.le(1, number), algebra.lt(number, own.agents))
    early = proof.equal(first, stmt.phase, algebra.sub(use, 1))
    if not early or not proof.equal(others, stmt.phase, use):
        refuse(stmt, "an agent does not wait for the turn that the agent before it leaves")
    first = next((event for event in role.prologue if not isinstance(event.action, SyncEvent)), None)
    if first is None or first.stmt is not stmt:
        refuse(stmt, "a ring is used before the agent has its turn")


def _check_leave(role: ParsedRole, leave: OrderEvent, enter: OrderEvent) -> None:
    stmt, own = leave.stmt, role.role
    assert isinstance(stmt, Arrive)
    assert isinstance(enter.stmt, Await)
    following = algebra.mod(algebra.add(algebra.sym(own.number), 1), own.agents)
    if stmt.event.buffer is not enter.stmt.event.buffer or stmt.event.at[0] is not following or leave.count != 1:
        refuse(stmt, "leaving a turn does not arrive once at the next agent's barrier")
    if not any(event.stmt is stmt for event in role.epilogue):
        refuse(stmt, "a turn that is left before the end of the loop over uses")
    if _leaves_early(role, stmt):
        refuse(stmt, "a turn that is left before the last uses of the tile, which come after the loop")


def _leaves_early(role: ParsedRole, leave: Stmt) -> bool:
    """Whether uses peeled after the loop are processed after leaving the turn, when the next agent may be ahead.

    Operations of the loop's own uses that are only delayed, such as releases of stages, may follow the turn.
    """
    events = [event.action for event in role.epilogue]
    at = next(place for place, each in enumerate(events) if each.stmt is leave)
    uses = any(isinstance(each, WaitEvent) for each in events)
    return uses and any(isinstance(each, WaitEvent | MmaEvent | ReadEvent | ArriveEvent) for each in events[at + 1 :])


@frozen
class _State:
    """uses: turns that each agent has completed. inside: whether it is in one. phases: of each barrier."""

    uses: tuple[int, ...]
    inside: tuple[bool, ...]
    phases: tuple[int, ...]


@lru_cache(maxsize=16)
def is_strict_order(agents: int) -> bool:
    """Whether the turns of `agents` agents are exclusive and in order, and no barrier is two phases ahead of a wait.

    In the model no agent runs out of tiles: an agent without further tiles stops, and then the others can only wait
    for phases that it has already completed. Cached, as it depends only on the number.
    """
    start = _State((0,) * agents, (False,) * agents, (0,) * agents)
    seen, queue = {start}, deque([start])
    while queue:
        state = queue.popleft()
        if sum(state.inside) > 1 or not _is_consistent(state):
            return False
        following = [each for agent in range(agents) if (each := _step(state, agent)) is not None]
        if not following:
            return False
        for each in map(_normalised, following):
            if each not in seen:
                seen.add(each)
                queue.append(each)
        if len(seen) > _MAX_STATES:
            return False
    return True


_MAX_STATES = 10_000


def _awaited_phase(state: _State, agent: int) -> int:
    return state.uses[agent] - (agent == 0)


def _is_consistent(state: _State) -> bool:
    """Each barrier is at the phase that its agent waits for or the next; agents have completed turns in order."""
    ordered = all(0 <= a - b <= 1 for a, b in pairwise(state.uses))
    near = all(0 <= state.phases[agent] - _awaited_phase(state, agent) <= 1 for agent in range(len(state.uses)))
    return ordered and near


def _step(state: _State, agent: int) -> _State | None:
    agents = len(state.uses)
    inside = list(state.inside)
    if not state.inside[agent]:
        if state.phases[agent] % 2 == _awaited_phase(state, agent) % 2:
            return None
        inside[agent] = True
        return _State(state.uses, tuple(inside), state.phases)
    inside[agent] = False
    uses, phases = list(state.uses), list(state.phases)
    uses[agent] += 1
    phases[(agent + 1) % agents] += 1
    return _State(tuple(uses), tuple(inside), tuple(phases))


def _normalised(state: _State) -> _State:
    base = min(*state.uses, *state.phases) // 2 * 2
    return _State(tuple(u - base for u in state.uses), state.inside, tuple(p - base for p in state.phases))


def order_events(role: ParsedRole) -> Iterator[OrderEvent]:
    for event in (*role.prologue, *role.epilogue):
        if isinstance(event.action, OrderEvent):
            if event.guard is not algebra.TRUE:
                refuse(event.stmt, "a turn under a condition")
            yield event.action
