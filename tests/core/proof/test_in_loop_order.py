"""Turns of more than two agents: the barriers that their model adds to those of the program never make anyone wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import cast

import pytest

from argus.core.ir import Arrive, Await, Stmt
from argus.core.proof.sync.roles import in_loop_order
from argus.core.proof.sync.roles.in_loop_order import InLoopOrder
from argus.core.proof.sync.roles.parsed import ParsedRole
from argus.core.proof.sync.roles.prologue_epilogue import PlacedOp
from argus.core.protocol.ring import ArriveFull, Op, Release, Ring, WaitEmpty, WaitFull
from tests.core.proof.rings import of_role
from tests.core.proof.test_ring_shapes import kernel

USES = 3
Ops = Callable[[Stmt, InLoopOrder, int], Iterator[PlacedOp]]
State = tuple[int, ...]
"""How many waits and arrivals of the program each agent has passed."""


def order_of(agents: int) -> tuple[InLoopOrder, Await, Arrive]:
    """The turns of so many agents, and the statements that enter and leave one."""
    made = kernel("proved/turns_of_three")
    enter, leave = (
        next(each for each in of_role(made, "math", kind) if each.event.buffer.name.startswith("turns"))
        for kind in (Await, Arrive)
    )
    role = cast(ParsedRole, SimpleNamespace(role=SimpleNamespace(agents=agents)))
    assert isinstance(enter, Await)
    assert isinstance(leave, Arrive)
    return InLoopOrder(role, 0, enter.event.buffer, Ring(1, (), 1, 1)), enter, leave


def ops_of(agents: int) -> list[tuple[list[Op], list[Op]]]:
    """Each agent's operations on entering and on leaving: the program's own are the first wait and the last arrival."""
    ops: Ops = vars(in_loop_order)["_ops"]
    order, enter, leave = order_of(agents)
    return [([op.op for op in ops(enter, order, a)], [op.op for op in ops(leave, order, a)]) for a in range(agents)]


def arrived(state: State, ops: list[tuple[list[Op], list[Op]]], kind: type[ArriveFull | Release], ring: int) -> int:
    """The arrivals of this kind at a ring."""
    made = ((agent, op) for agent, (_, leave) in enumerate(ops) for op in leave)
    return sum(state[agent] // 2 for agent, op in made if isinstance(op, kind) and op.ring == ring)


def may_pass(state: State, ops: list[tuple[list[Op], list[Op]]], agent: int, wait: Op) -> bool:
    use = state[agent] // 2
    if isinstance(wait, WaitFull):
        return arrived(state, ops, ArriveFull, wait.ring) > use
    assert isinstance(wait, WaitEmpty)
    return arrived(state, ops, Release, wait.ring) >= use


@pytest.mark.parametrize("agents", [2, 3, 4, 5])
def test_added_barriers_never_make_an_agent_wait(agents: int) -> None:
    ops = ops_of(agents)
    states, todo = {(0,) * agents}, [(0,) * agents]
    while todo:
        state = todo.pop()
        moved = False
        for agent in range(agents):
            if state[agent] == 2 * USES:
                continue
            enters = state[agent] % 2 == 0
            waits = ops[agent][0] if enters else []
            if waits and not may_pass(state, ops, agent, waits[0]):
                continue
            assert all(may_pass(state, ops, agent, wait) for wait in waits), (state, agent)
            moved = True
            following = (*state[:agent], state[agent] + 1, *state[agent + 1 :])
            if following not in states:
                states.add(following)
                todo.append(following)
        assert moved or state == (2 * USES,) * agents, f"no agent can move: {state}"
    assert (2 * USES,) * agents in states
    assert len(states) == 2 * USES * agents + 1  # turns leave one order
