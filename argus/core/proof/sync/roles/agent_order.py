"""The order of agents by barriers: agent i enters its tile once agent i - 1 has left its own.

A barrier an agent, of one arrival: use u of agent i waits for phase u of barrier i, agent 0 for phase u - 1, and
leaving arrives at the barrier of agent i + 1. That this is an order, that no parity is ambiguous and that nobody
waits for ever is explored once for each number of agents, modulo two uses, however many tiles there are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from attrs import frozen

from argus.core import algebra
from argus.core.ir import Arrive, Await, Kernel, Stmt, static
from argus.core.proof.sync.roles.context import Ledger, refuse
from argus.core.proof.sync.roles.events import Arrived, Looked, Met, Multiplied, Turned, Waited
from argus.core.proof.sync.roles.parsed import Parsed, arrivals


def turned(kernel: Kernel, role: Parsed, ledger: Ledger) -> bool:
    """Whether the role's agents take turns; False if no barrier of turns is touched. Raises RefusedError."""
    found = list(turns_of(role))
    if not found:
        return False
    tiles, own = role.laps.tiles, role.role
    enters = [each for each in found if isinstance(each.stmt, Await)]
    leaves = [each for each in found if isinstance(each.stmt, Arrive)]
    if tiles is None or tiles.step != own.agents or len(enters) != 1 or len(leaves) != 1:
        refuse(found[0].stmt, "a barrier that no use chooses, which is not one of turns between agents with own tiles")
    _judge_enter(kernel, role, enters[0], ledger)
    _judge_leave(role, leaves[0], enters[0])
    if not orders(own.agents):
        refuse(enters[0].stmt, f"turns of {own.agents} agents are not known to be an order")
    return True


def _judge_enter(kernel: Kernel, role: Parsed, enter: Turned, ledger: Ledger) -> None:
    stmt, own = enter.stmt, role.role
    assert isinstance(stmt, Await)
    assert role.laps.tiles is not None
    barrier, number = stmt.event.buffer, algebra.sym(own.number)
    if stmt.event.at[0] is not number or static(barrier.shape[0]) != own.agents or arrivals(kernel, barrier) != 1:
        refuse(stmt, "an agent does not wait for its own barrier of turns, of one arrival")
    use = ledger.rounds(role.laps.tiles.symbol)
    first = (algebra.eq(number, 0),)
    others = (algebra.le(1, number), algebra.lt(number, own.agents))
    early = ledger.equal(first, stmt.phase, algebra.sub(use, 1))
    if not early or not ledger.equal(others, stmt.phase, use):
        refuse(stmt, "the turn waited for is not the one after the agent before has left")
    first = next((event for event in role.ahead if not isinstance(event.happening, Met)), None)
    if first is None or first.stmt is not stmt:
        refuse(stmt, "a ring is used before the turn is taken")


def _judge_leave(role: Parsed, leave: Turned, enter: Turned) -> None:
    stmt, own = leave.stmt, role.role
    assert isinstance(stmt, Arrive)
    assert isinstance(enter.stmt, Await)
    following = algebra.mod(algebra.add(algebra.sym(own.number), 1), own.agents)
    if stmt.event.buffer is not enter.stmt.event.buffer or stmt.event.at[0] is not following or leave.count != 1:
        refuse(stmt, "leaving a turn does not arrive once at the next agent's barrier")
    if not any(event.stmt is stmt for event in role.behind):
        refuse(stmt, "a turn that is left before the loop over uses has ended")
    if _left_early(role, stmt):
        refuse(stmt, "a turn that is left before the last uses of the tile, which stand after the loop")


def _left_early(role: Parsed, leave: Stmt) -> bool:
    """Whether uses that stand behind the loop are worked on after the turn: those of the next agent come before then.

    What a loop's trips do later than their own use, such as giving slots back, may follow the turn.
    """
    events = [event.happening for event in role.behind]
    at = next(place for place, each in enumerate(events) if each.stmt is leave)
    uses = any(isinstance(each, Waited) for each in events)
    return uses and any(isinstance(each, Waited | Multiplied | Looked | Arrived) for each in events[at + 1 :])


@frozen
class _State:
    """uses: turns that each agent has left. inside: who is in one. phases: of each barrier."""

    uses: tuple[int, ...]
    inside: tuple[bool, ...]
    phases: tuple[int, ...]


@lru_cache(maxsize=16)
def orders(agents: int) -> bool:
    """Whether turns of so many agents exclude each other, follow in order, and meet no parity two phases off.

    Every agent has a use more to make: an agent without further tiles stops, and those before it can do no more than
    wait for what it has done already. A pure function of the number: explored once, remembered.
    """
    start = _State((0,) * agents, (False,) * agents, (0,) * agents)
    seen, queue = {start}, deque([start])
    while queue:
        state = queue.popleft()
        if sum(state.inside) > 1 or not _sane(state):
            return False
        following = [each for agent in range(agents) if (each := _moved(state, agent)) is not None]
        if not following:
            return False
        for each in map(_normal, following):
            if each not in seen:
                seen.add(each)
                queue.append(each)
        if len(seen) > _CAP:
            return False
    return True


_CAP = 10_000


def _wanted(state: _State, agent: int) -> int:
    return state.uses[agent] - (agent == 0)


def _sane(state: _State) -> bool:
    """Each barrier is at the phase its agent will wait for, or at the next; agents left turns in order."""
    ordered = all(0 <= a - b <= 1 for a, b in pairwise(state.uses))
    near = all(0 <= state.phases[agent] - _wanted(state, agent) <= 1 for agent in range(len(state.uses)))
    return ordered and near


def _moved(state: _State, agent: int) -> _State | None:
    agents = len(state.uses)
    inside = list(state.inside)
    if not state.inside[agent]:
        if state.phases[agent] % 2 == _wanted(state, agent) % 2:
            return None
        inside[agent] = True
        return _State(state.uses, tuple(inside), state.phases)
    inside[agent] = False
    uses, phases = list(state.uses), list(state.phases)
    uses[agent] += 1
    phases[(agent + 1) % agents] += 1
    return _State(tuple(uses), tuple(inside), tuple(phases))


def _normal(state: _State) -> _State:
    base = min(*state.uses, *state.phases) // 2 * 2
    return _State(tuple(u - base for u in state.uses), state.inside, tuple(p - base for p in state.phases))


def turns_of(role: Parsed) -> Iterator[Turned]:
    for event in (*role.ahead, *role.behind):
        if isinstance(event.happening, Turned):
            if event.guard is not algebra.TRUE:
                refuse(event.stmt, "a turn that is taken under a condition")
            yield event.happening
