"""Roles: `role` and `elected`, and the split of a traced kernel into prologue, roles and epilogue."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.dsl.faults import describe_value, fault
from argus.core.dsl.handles import Int, IntLike, extent, number
from argus.core.dsl.source_location import assigned_name, user_frame
from argus.core.dsl.tracer import Agent, Tracer, current
from argus.core.dsl.wgmma_fences import with_fences
from argus.core.index import Symbol
from argus.core.ir import Alloc, Fence, One, Origin, Policy, Role, Roles, Stmt, Sync

_WARPS_PER_WARPGROUP = 4


@frozen
class Warps:
    """Consecutive warps and how they are divided into agents of `agent` threads."""

    first: int
    count: int
    agent: int

    @property
    def elected(self) -> Warps:
        """The same warps, with one agent of one thread: thread 0 of the first warp executes the body."""
        return evolve(self, agent=1)


def warpgroup(index: int) -> Warps:
    """One warpgroup (4 warps, 128 threads) as one agent."""
    return warpgroups(index)


def warpgroups(*indices: int) -> Warps:
    """Consecutive warpgroups, each an agent of 128 threads."""
    first = _first_of_consecutive(indices, "warpgroups")
    return Warps(_WARPS_PER_WARPGROUP * first, _WARPS_PER_WARPGROUP * len(indices), 32 * _WARPS_PER_WARPGROUP)


def warp(index: int) -> Warps:
    """One warp as one agent."""
    return warps(index)


def warps(*indices: int) -> Warps:
    """Consecutive warps, each an agent of 32 threads."""
    return Warps(_first_of_consecutive(indices, "warps"), len(indices), 32)


def _first_of_consecutive(indices: tuple[IntLike, ...], what: str) -> int:
    numbers = [number(index, f"the number of one of the {what}") for index in indices]
    if not numbers or numbers[0] < 0 or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        fault("E106", f"{what} {tuple(numbers)} are not consecutive", help=f"write `{what}(1, 2)`")
    return numbers[0]


BARRIER_OF_A_ROLE = "`sync()` inside the role is the barrier of that name; call this barrier something else"


@contextmanager
def role(name: str, members: Warps, *, registers: int | None = None) -> Generator[Int]:
    """Each agent of the role's `members` runs the body; yields the index of the agent.

    registers: 32-bit registers per thread from here on (setmaxnreg), a multiple of 8 between 24 and 256. Raises E202
    inside another role, loop or branch, and for warps that are taken or do not exist.
    """
    tracer = current("role")
    _check_role(tracer, name, members)
    budget = None if registers is None else _register_budget(registers)
    # With an elected thread there is one agent, however many warps.
    agents = 1 if members.agent == 1 else members.count * tracer.target.unit // members.agent
    wanted = assigned_name(user_frame()) or f"{name}_agent"
    which = Symbol(tracer.unique(wanted), "agent", 0, agents - 1)
    thread = Symbol(tracer.unique(f"{name}_thread"), "thread", 0, members.agent - 1)
    tracer.agent = agent = Agent(name, members.agent, agents, which, thread)
    scope = tracer.open("role")
    yield Int(algebra.sym(which))
    body = with_fences(agent.finish_body(tracer.leave(scope)))
    tracer.agent = tracer.block
    policy = () if budget is None else (Policy("registers", (budget,), span=scope.span),)
    made = Role(
        name, members.first, members.count, members.agent, budget, (*policy, *body), which, thread, tracer.target.unit
    )
    tracer.emit(Roles((made,), span=scope.span))


def _check_role(tracer: Tracer, name: str, members: Warps) -> None:
    if not isinstance(members, Warps):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        fault(
            "E106", f"a role takes warps, found {describe_value(members)}", help="write `role(name, warpgroups(1, 2))`"
        )
    if not isinstance(name, str) or not name.isidentifier():  # pyright: ignore[reportUnnecessaryIsInstance]  # as above
        fault(
            "E106", f"a role is named by an identifier, found {describe_value(name)}", help='write `role("load", ...)`'
        )
    if "wgmma" not in tracer.target.queues:
        fault("E501", f"roles of {tracer.target} are not built yet", help="write the kernel without roles")
    if tracer.agent is not tracer.block or len(tracer.scopes) != 1:
        fault("E202", f"role `{name}` is nested in another body", help="open roles at the kernel's top level")
    if tracer.unique(f"role_{name}") != f"role_{name}":
        fault("E202", f"two roles are called `{name}`", help="give each role a name of its own")
    if name in tracer.barriers:
        fault("E202", f"barrier `{name}` has the name of a role", help=BARRIER_OF_A_ROLE)
    help_ = "give each role warps of its own, within the kernel's threads"
    for index in range(members.first, members.first + members.count):
        if index in tracer.warps:
            fault("E202", f"role `{name}` shares warp {index} with role `{tracer.warps[index]}`", help=help_)
        tracer.warps[index] = name
    have = tracer.threads // tracer.target.unit
    if members.first + members.count > have:
        last = members.first + members.count - 1
        fault("E202", f"role `{name}` takes warps {members.first} to {last}, the kernel has {have}", help=help_)


def _register_budget(registers: IntLike) -> int:
    found = extent(registers, "the registers of a role")
    if found % 8 != 0 or not 24 <= found <= 256:
        fault("E202", f"{found} registers a thread", help="give a multiple of 8 in 24 to 256 [PTX ISA, setmaxnreg]")
    return found


@contextmanager
def elected() -> Generator[None]:
    """Thread 0 of the agent (the elected thread, always the same one) runs the body."""
    tracer = current("elected")
    scope = tracer.open("elected")
    yield
    body = tracer.leave(scope)
    tracer.emit(One(body, span=scope.span))


def split_at_roles(
    body: tuple[Stmt, ...], *, clustered: bool
) -> tuple[tuple[Stmt, ...], Roles | None, tuple[Stmt, ...]]:
    """Prologue, roles and epilogue of a kernel's statements, with the synchronisation after barrier initialisation.

    clustered: other blocks use the barriers, so that a cluster barrier follows their initialisation. Raises E202 for a
    statement between two roles.
    """
    at = [position for position, stmt in enumerate(body) if isinstance(stmt, Roles)]
    if not at:
        return with_fences(_with_barrier_init(body, clustered=clustered)), None, ()
    between = next((body[p] for p in range(at[0], at[-1]) if not isinstance(body[p], Roles)), None)
    if between is not None:
        fault(
            "E202",
            "a statement between two roles",
            here="no role runs it",
            span=between.span,
            help="put it before the first role or after the last",
        )
    found = [stmt for stmt in body if isinstance(stmt, Roles)]
    roles = Roles(tuple(role for stmt in found for role in stmt.roles), span=found[0].span)
    prologue = _with_barrier_init(body[: at[0]], at_end=True, clustered=clustered)
    return with_fences(prologue), roles, with_fences(body[at[-1] + 1 :])


def _with_barrier_init(body: tuple[Stmt, ...], *, clustered: bool, at_end: bool = False) -> tuple[Stmt, ...]:
    """The body with the fence and barrier that make mbarrier initialisation visible to all threads and to the TMA.

    Unchanged if the body already has such a fence: then the kernel's author writes the barrier as well.
    """
    made = [p for p, stmt in enumerate(body) if isinstance(stmt, Alloc) and stmt.buffer.space == "barrier"]
    if not made:
        return body
    if any(isinstance(stmt, Fence) and stmt.kind == "barrier_init" for stmt in body):
        return body
    last = body[made[-1]]
    origin = Origin("barriers", 0)
    ready: tuple[Stmt, ...] = (
        Fence("barrier_init", span=last.span, origin=origin),
        Sync("cluster" if clustered else "cta", span=last.span, origin=origin),
    )
    if at_end:
        return (*body, *ready)
    return (*body[: made[-1] + 1], *ready, *body[made[-1] + 1 :])
