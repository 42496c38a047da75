"""Explains a deadlock of the protocol machine: the cycle of roles that wait for each other."""

from __future__ import annotations

from argus.core.barriers import Mbarrier
from argus.testing.protocol.lowering import ArriveBarrier, ArriveNamed, Await, AwaitNamed
from argus.testing.protocol.state import Machine, State


def wait_cycle(machine: Machine, state: State) -> tuple[str, ...]:
    """One sentence for each role that waits for the one in the next sentence; the last closes the cycle or ends it."""
    role = machine.waiting(state)[0]
    seen: list[int] = []
    said: list[str] = []
    while role not in seen:
        seen.append(role)
        text, following = _wait(machine, state, role)
        said.append(text)
        if following is None:
            return tuple(said)
        role = following
    return tuple(said[seen.index(role) :])


def _wait(machine: Machine, state: State, role: int) -> tuple[str, int | None]:
    """What the role waits for, and a waiting role that has yet to arrive there; None if there is none."""
    name = machine.program.roles[role]
    upcoming = machine.next_step(state, role)
    assert upcoming is not None
    step = upcoming[1]
    if isinstance(step, AwaitNamed):
        others = [r for r in _arriving_at_named(machine, state, step.meeting) if r != role]
        return _describe(machine, f"{name} waits at named barrier {step.meeting}", others)
    assert isinstance(step, Await)
    barrier = state.barriers[step.barrier]
    what = f"{name} waits for phase {step.phase} of {machine.program.names[step.barrier]} ({_barrier_status(barrier)})"
    if barrier.arrived == barrier.count:
        return f"{what}: the bytes announced are not those that land", None
    return _describe(machine, what, _arriving_roles(machine, state, step.barrier))


def _describe(machine: Machine, what: str, givers: list[int]) -> tuple[str, int | None]:
    if not givers:
        return f"{what}: nobody arrives any more", None
    return f"{what}, where {machine.program.roles[givers[0]]} would arrive", givers[0]


def _barrier_status(barrier: Mbarrier) -> str:
    pending = f", {barrier.bytes} bytes due" if barrier.bytes else ""
    return f"{barrier.phases} phases complete, {barrier.arrived} of {barrier.count} arrivals{pending}"


def _arriving_roles(machine: Machine, state: State, number: int) -> list[int]:
    """The roles with a remaining arrival at the barrier, the least advanced first."""
    left: list[int] = []
    for role, steps in enumerate(machine.program.steps):
        rest = steps[state.actors[role].at :]
        if any(isinstance(step, ArriveBarrier) and step.barrier == number for _, step in rest):
            left.append(role)
    return sorted(left, key=lambda role: state.actors[role].at)


def _arriving_at_named(machine: Machine, state: State, number: int) -> list[int]:
    here = state.meetings[number].here
    rests = [steps[state.actors[role].at :] for role, steps in enumerate(machine.program.steps)]
    return [
        role
        for role, rest in enumerate(rests)
        if role not in here and any(isinstance(step, ArriveNamed) and step.meeting == number for _, step in rest)
    ]
