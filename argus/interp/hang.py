"""A block in which nobody can move: who waits for what, and the circle."""

from __future__ import annotations

from argus.core.ir import Arrive, Buffer, Copy, Stmt, Sync, walk
from argus.interp.agents import Machine, Unit, Waiting
from argus.interp.barriers import Phased


def report(machine: Machine) -> None:
    """Report a hang: at the first wait of the circle, or the first of all, with every blocked agent as a fact."""
    blocked = [(unit, unit.waiting) for unit in machine.units if unit.waiting is not None]
    circle = _circle(blocked)
    unit, waiting = circle[0] if circle else blocked[0]
    other = circle[1] if len(circle) > 1 else next((pair for pair in blocked if pair[0] is not unit), None)
    what = "; ".join(f"{_name(who)} waits for {wait.told()}" for who, wait in circle or blocked)
    shape = f"a circle of waits: {what}" if circle else f"nobody will arrive: {what}"
    unit.agent.report(
        _code(blocked),
        f"no agent can move, {shape}",
        waiting.event,
        thread=unit.first,
        other=None if other is None else other[1].event,
        facts=tuple((_name(who), f"{_at(wait)}: {wait.told()}") for who, wait in blocked),
    )


def _name(unit: Unit) -> str:
    several = unit.agent.threads > unit.agent.width
    return f"{unit.agent.name}, thread {unit.agent.base + unit.first}" if several else unit.agent.name


def _at(waiting: Waiting) -> str:
    """The statement, and the turn of its loops."""
    turn = "".join(f", {name} = {value}" for name, value in waiting.event.iteration)
    return f"{type(waiting.event.stmt).__name__} at {waiting.event.stmt.span}{turn}"


def _code(blocked: list[tuple[Unit, Waiting]]) -> str:
    """I7 where bytes do not add up, I6 where a phase was missed, else I9."""
    for _, waiting in blocked:
        if isinstance(waiting.on, Phased):
            state = waiting.on.state
            if state.bytes < 0 or (state.bytes > 0 and state.arrived == state.count and not waiting.on.underway):
                return "I7"
    return "I6" if any(waiting.missed for _, waiting in blocked) else "I9"


def _circle(blocked: list[tuple[Unit, Waiting]]) -> list[tuple[Unit, Waiting]]:
    """Blocked units each of which waits for the next, the last for the first; empty if there is none."""
    provides = {unit: _provided(unit.agent.role.body if unit.agent.role else ()) for unit, _ in blocked}
    chain: list[tuple[Unit, Waiting]] = []
    at = blocked[0]
    while at not in chain:
        chain.append(at)
        wanted = at[1].on.buffer if isinstance(at[1].on, Phased) else at[1].on.name
        nexts = [pair for pair in blocked if pair[1].on is not at[1].on and wanted in provides[pair[0]]]
        if not nexts:
            return []
        at = nexts[0]
    return chain[chain.index(at) :]


def _provided(body: tuple[Stmt, ...]) -> set[Buffer | str]:
    """The barriers and rendezvous that these statements arrive at."""
    found: set[Buffer | str] = set()
    for stmt in walk(body):
        if isinstance(stmt, Arrive):
            found.add(stmt.event.buffer)
        elif isinstance(stmt, Copy) and stmt.signal is not None:
            found.add(stmt.signal.buffer)
        elif isinstance(stmt, Sync):
            found.add(stmt.barrier)
    return found
