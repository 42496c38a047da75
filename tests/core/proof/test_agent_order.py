"""Turns: an order for any number of tiles, and edited turns that are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

import pytest
from attrs import evolve

from argus.core import algebra
from argus.core.algebra import add, const, mod, sym
from argus.core.ir import Alloc, Arrive, Await, Kernel, One, Stmt, walk
from argus.core.proof.sync.roles import agent_order
from argus.core.proof.sync.roles.agent_order import is_strict_order
from property_tests.role_programs import ROLES
from tests.core.proof.queries import extract, refusal
from tests.core.proof.rings import changed, edited, every, of_role

KERNEL = ROLES["pingpong"]
unremembered = is_strict_order.__wrapped__


@pytest.mark.parametrize("agents", [2, 3, 4])
def test_turns_order_agents(agents: int) -> None:
    assert unremembered(agents)


class State(Protocol):
    """How far agents and barriers are, as the exploration has it."""

    @property
    def uses(self) -> tuple[int, ...]: ...

    @property
    def inside(self) -> tuple[bool, ...]: ...

    @property
    def phases(self) -> tuple[int, ...]: ...


Wanted = Callable[[State, int], int]
OTHER_PHASES: dict[str, Wanted] = {
    "nobody begins": lambda state, agent: state.uses[agent],
    "all begin": lambda state, agent: state.uses[agent] - 1,
    "the second begins": lambda state, agent: state.uses[agent] - (agent == 1),
    "a phase ahead": lambda state, agent: state.uses[agent] - (agent == 0) + 1,
    "a phase for two turns": lambda state, agent: state.uses[agent] // 2 - (agent == 0),
}


@pytest.mark.parametrize("wanted", OTHER_PHASES.values(), ids=OTHER_PHASES)
@pytest.mark.parametrize("agents", [2, 3])
def test_waits_for_other_phases_do_not_order_agents(
    wanted: Wanted, agents: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_order, "_awaited_phase", wanted)
    assert not unremembered(agents)


def test_turns_passed_to_another_agent_do_not_order_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = cast("Callable[[State, int], Any]", vars(agent_order)["_step"])

    def left_for_itself(state: State, agent: int) -> object:
        after = moved(state, agent)
        if after is None or not state.inside[agent]:
            return after
        phases = list(state.phases)
        phases[agent] += 1
        return evolve(after, phases=tuple(phases))

    monkeypatch.setattr(agent_order, "_step", left_for_itself)
    assert not unremembered(2)


def enter() -> Await:
    return next(each for each in of_role(KERNEL, "math", Await) if each.event.buffer.name.startswith("turns"))


def leave() -> Arrive:
    return next(each for each in of_role(KERNEL, "math", Arrive) if each.event.buffer.name.startswith("turns"))


def around(kernel: Kernel, stmt: Stmt) -> One:
    return next(each for each in every(kernel, One) if stmt in each.body)


def test_the_schedule_takes_turns() -> None:
    math = next(role for role in extract(KERNEL).extracted.protocol.roles if "math[1]" in role.name)
    assert math.turn
    assert math.share == (1, 2)


@pytest.mark.parametrize("by", [-1, 1, 2])
def test_a_turn_waits_for_the_phase_of_its_use(by: int) -> None:
    reason, stmt = refusal(changed(KERNEL, enter(), phase=add(enter().phase, by)))
    assert reason == "an agent does not wait for the turn that the agent before it leaves"
    assert stmt.span == enter().span


def test_only_the_first_agent_starts() -> None:
    assert KERNEL.roles is not None
    number = sym(KERNEL.roles.roles[1].number)
    for lead in (const(0), const(-1), algebra.mul(number, -1)):
        rest = algebra.sub(enter().phase, algebra.sub(algebra.minimum(number, 1), 1))
        reason, _ = refusal(changed(KERNEL, enter(), phase=add(rest, lead)))
        assert reason == "an agent does not wait for the turn that the agent before it leaves"


def test_an_agent_waits_for_its_own_barrier_of_one_arrival() -> None:
    assert KERNEL.roles is not None
    number = sym(KERNEL.roles.roles[1].number)
    other = evolve(enter().event, at=(mod(add(number, 1), 2),))
    alloc = next(each for each in every(KERNEL, Alloc) if each.buffer is enter().event.buffer)
    for broken in (changed(KERNEL, enter(), event=other), changed(KERNEL, alloc, count=2)):
        reason, _ = refusal(broken)
        assert reason == "an agent does not wait for its own barrier of turns, with an arrival count of one"


def test_leaving_arrives_once_at_the_next_agents_barrier() -> None:
    assert KERNEL.roles is not None
    number = sym(KERNEL.roles.roles[1].number)
    own = changed(KERNEL, leave(), event=evolve(leave().event, at=(number,)))
    alone = around(KERNEL, leave())
    for broken in (own, changed(KERNEL, leave(), count=2), edited(KERNEL, alone, *alone.body)):
        reason, stmt = refusal(broken)
        assert reason == "leaving a turn does not arrive once at the next agent's barrier"
        assert stmt.span == leave().span


def test_a_turn_is_entered_and_left_once_a_tile() -> None:
    alone = around(KERNEL, leave())
    for broken in (edited(KERNEL, alone), edited(KERNEL, enter())):
        reason, _ = refusal(broken)
        assert "turns" in reason


def test_no_ring_operation_precedes_the_turn() -> None:
    alone = around(KERNEL, leave())
    before = edited(edited(KERNEL, alone), enter(), alone, enter())
    reason, stmt = refusal(before)
    assert reason in (
        "a ring is used before the agent has its turn",
        "a turn that is left before the end of the loop over uses",
    )
    assert stmt in set(walk(before.body)) or stmt.span == leave().span
