"""Candidate repairs of a barrier protocol: single edits of a barrier's arrival count or of the phase of a wait.

If such an edit removes a fault, the edited statement is its cause, wherever the symptom appears.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.index import Const
from argus.core.ir import Alloc, Arrive, Await, Buffer, Kernel, One, Role, Roles, Stmt, bodies, walk, with_bodies


@frozen(eq=False)
class Repair:
    """A repaired kernel. code: the invariant that the statement violates. fault: what is wrong; help: the repair."""

    kernel: Kernel
    code: str
    stmt: Stmt
    fault: str
    help: str


def repairs(kernel: Kernel) -> Iterator[Repair]:
    """Candidate repairs, counts first: a barrier whose phases complete too early makes every wait look wrong."""
    stmts = list(walk(kernel.body))
    for stmt in stmts:
        if isinstance(stmt, Alloc) and stmt.count is not None:
            yield from _counts(kernel, stmt, stmt.count)
    for stmt in stmts:
        if isinstance(stmt, Await):
            yield from _phases(kernel, stmt)


def _counts(kernel: Kernel, stmt: Alloc, count: int) -> Iterator[Repair]:
    name = stmt.buffer.name
    for wanted, who in _arrivals(kernel, stmt.buffer):
        if wanted != count:
            changed = _with(kernel, stmt, evolve(stmt, count=wanted))
            yield Repair(
                changed,
                "I8",
                stmt,
                f"`{name}` expects {_count(count, 'arrival')} per phase, but {who} arrive {wanted} times",
                f"make `{name}` expect {_count(wanted, 'arrival')}, or let as many threads arrive as it expects",
            )


def _phases(kernel: Kernel, stmt: Await) -> Iterator[Repair]:
    for step, where, what in ((1, "before", "add 1 to"), (-1, "after", "subtract 1 from")):
        changed = _with(kernel, stmt, evolve(stmt, phase=algebra.add(stmt.phase, step)))
        yield Repair(
            changed,
            "I6",
            stmt,
            f"a wait on `{stmt.event.buffer.name}` is for the phase {where} the one of its use",
            f"{what} the phase of the wait",
        )


def _arrivals(kernel: Kernel, buffer: Buffer) -> Iterator[tuple[int, str]]:
    """Arrivals per phase, with the arriving agents: of one statement in all agents of a role, and of all roles."""
    found: dict[int, str] = {}
    each: list[tuple[int, str]] = []
    for role in () if kernel.roles is None else kernel.roles.roles:
        counts = [number * role.agents for number in _threads(role, role.body, buffer, kernel.peers)]
        who = f"the {_count(role.agents, 'agent')} of `{role.name}`" + (" in each block" if kernel.peers > 1 else "")
        if counts:
            each.append((max(counts), f"`{role.name}`"))
        for number in counts:
            found.setdefault(number, who)
    if len(each) > 1:
        found.setdefault(sum(number for number, _ in each), " and ".join(name for _, name in each))
    yield from found.items()


def _threads(role: Role, body: tuple[Stmt, ...], buffer: Buffer, blocks: int, alone: bool = False) -> Iterator[int]:
    """For each statement that arrives at the barrier: the arrivals of one agent, or of one agent in each block."""
    for stmt in body:
        if isinstance(stmt, Arrive) and stmt.event.buffer is buffer:
            yield stmt.count * (1 if alone else role.agent) * (blocks if isinstance(stmt.event.peer, Const) else 1)
        for inner in bodies(stmt):
            yield from _threads(role, inner, buffer, blocks, alone or isinstance(stmt, One))


def _with(kernel: Kernel, old: Stmt, new: Stmt) -> Kernel:
    """The kernel with one statement replaced."""

    def inside(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        made: list[Stmt] = []
        for stmt in body:
            if stmt is old:
                made.append(new)
                continue
            parts = bodies(stmt)
            changed = tuple(inside(part) for part in parts)
            made.append(with_bodies(stmt, changed) if changed != parts else stmt)
        return tuple(made)

    roles = None if kernel.roles is None else inside((kernel.roles,))[0]
    assert roles is None or isinstance(roles, Roles)
    return evolve(kernel, prologue=inside(kernel.prologue), roles=roles, epilogue=inside(kernel.epilogue))


def _count(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
