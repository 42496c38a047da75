"""Checks of roles: warps, register budgets and ownership, elected threads, and operands that must be uniform."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core.check.executor import Executor, error_at
from argus.core.check.parts import views
from argus.core.diagnostic import Diagnostic
from argus.core.index import Coord, Node
from argus.core.index_text import show
from argus.core.ir import (
    Advance,
    Arrive,
    Assert,
    Assume,
    Await,
    Commit,
    Copy,
    Edit,
    Fence,
    For,
    If,
    Kernel,
    Mma,
    Policy,
    Role,
    Roles,
    Stmt,
    Tag,
    View,
    Wait,
    walk,
)
from argus.core.walk import mentions, only_as_quotient, symbols

_WARPGROUP = 4
_RESERVED = ("", "cta")
"""Role names that would collide: a role's name is also that of its barrier, and `cta` is the block's."""


def check_roles(kernel: Kernel) -> Iterator[Diagnostic]:
    """Roles are at the kernel's top level, on disjoint warps; with setmaxnreg or wgmma they are whole warpgroups."""
    for stmt in walk(kernel.body):
        if isinstance(stmt, Roles) and stmt is not kernel.roles:
            yield error_at(
                kernel,
                stmt,
                "E202",
                "roles are nested in another body",
                "open them at the kernel's top level",
            )
    if kernel.roles is None:
        return
    taken: dict[int, str] = {}
    for role in kernel.roles.roles:
        why = _placement_error(kernel, role) or _overlap_error(role, taken)
        if why:
            help_ = "give each role warps of its own, within the kernel's threads"
            yield error_at(kernel, kernel.roles, "E202", f"role `{role.name}` {why}", help_)
        taken |= dict.fromkeys(range(role.first_warp, role.first_warp + role.warps), role.name)


def _overlap_error(role: Role, taken: dict[int, str]) -> str:
    for warp in range(role.first_warp, role.first_warp + role.warps):
        if warp in taken:
            return f"shares warp {warp} with role `{taken[warp]}`"
    return ""


def _placement_error(kernel: Kernel, role: Role) -> str:
    last, threads = role.first_warp + role.warps, role.warps * role.unit
    if role.name in _RESERVED:
        return "has no name, or the reserved name `cta` of the block's barrier"
    if role.unit != kernel.target.unit or role.first_warp < 0 or role.warps < 1 or last * role.unit > kernel.threads:
        return f"takes warps {role.first_warp} to {last - 1}, the kernel has {kernel.threads // kernel.target.unit}"
    if role.agent != 1 and (role.agent % role.unit != 0 or threads % role.agent != 0):
        return f"divides {threads} threads into agents of {role.agent}"
    whole = role.registers is not None or any(
        isinstance(stmt, Mma) and stmt.atom.unit > role.unit for stmt in walk(role.body)
    )
    if whole and (role.first_warp % _WARPGROUP != 0 or role.warps % _WARPGROUP != 0):
        return f"takes warps {role.first_warp} to {last - 1}, which are not whole warpgroups"
    if role.registers is not None and (role.registers % 8 != 0 or not 24 <= role.registers <= 256):
        return f"holds {role.registers} registers a thread, which is not a multiple of 8 between 24 and 256"
    return ""


def check_agent(executor: Executor, stmt: Stmt) -> Iterator[Diagnostic]:
    """Errors of a statement that its executor (block, agent or elected thread) may not run."""
    yield from _check_ownership(executor, stmt)
    yield from _check_uniformity(executor, stmt)
    if executor.elected:
        yield from _check_elected(executor, stmt)
    if isinstance(stmt, Copy) and stmt.atom.unit == 1 and executor.threads != 1:
        yield error_at(
            executor.kernel,
            stmt,
            "E215",
            f"`{stmt.atom}` is a single-thread instruction, and {executor.threads} threads run it",
            "put it into `with elected():`, or into a role of one thread",
        )


def _check_ownership(executor: Executor, stmt: Stmt) -> Iterator[Diagnostic]:
    """Only the owner accesses registers and counters, and register indices are constants."""
    for view in views(stmt):
        if view.buffer.space not in ("register", "counter") or isinstance(stmt, Assert | Tag):
            continue
        name = view.buffer.name
        if view.buffer.owner != executor.owner:
            owner = f"role `{view.buffer.owner}`" if view.buffer.owner else "the block"
            help_ = "make it inside the role that uses it; pass values through shared memory"
            yield error_at(executor.kernel, stmt, "E216", f"`{name}` belongs to {owner}, {executor} uses it", help_)
        elif symbols(*view.at):
            help_ = "index registers by Python integers: `for j in range(4):`"
            yield error_at(
                executor.kernel, stmt, "E217", f"registers of `{name}` are indexed by a run-time value", help_
            )


def _check_elected(executor: Executor, stmt: Stmt) -> Iterator[Diagnostic]:
    """An elected thread runs only single-thread statements and accesses no register tiles."""
    match stmt:
        case Copy(atom=atom, source=source, target=target):
            fine = atom.unit == 1 and "register" not in (source.buffer.space, target.buffer.space)
        case Wait(queue=queue) | Commit(queue=queue):
            fine = queue in ("bulk", "cp_async")
        case Fence(kind=kind):
            fine = kind != "wgmma"
        case Arrive() | Await() | Edit() | Policy() | If() | For() | Assume() | Tag():
            fine = True
        case _:
            fine = False
    if not fine:
        yield error_at(
            executor.kernel,
            stmt,
            "E214",
            f"one elected thread runs a statement that needs all {executor.agent} threads",
            "leave only TMA copies, barrier arrivals and waits inside `with elected():`",
        )


def _is_divergent(executor: Executor, node: Node) -> bool:
    """Whether an expression may differ between threads of the agent, or between elements."""
    threads = {executor.kernel.thread} if executor.role is None else {executor.kernel.thread, executor.role.thread}
    return bool(threads & symbols(node)) or mentions(node, (Coord,))


def _is_wave_uniform(executor: Executor, stmt: Stmt, node: Node) -> bool:
    """Whether a branch condition that differs between threads is uniform within each wave.

    Allowed on targets with the queue `vmem` outside roles: their block barrier counts the arrivals of waves, so that
    waves in different branches may execute different barrier statements.
    """
    if not isinstance(stmt, If) or executor.role is not None or "vmem" not in executor.kernel.target.queues:
        return False
    return only_as_quotient(node, executor.kernel.thread, executor.kernel.target.unit) and not mentions(node, (Coord,))


def _check_uniformity(executor: Executor, stmt: Stmt) -> Iterator[Diagnostic]:
    for what, node in _uniform_operands(stmt):
        if _is_divergent(executor, node) and not _is_wave_uniform(executor, stmt, node):
            help_ = "make it uniform"
            if what in ("`init` operand", "branch"):
                help_ = "branch on sizes, blocks and loop variables; mask elements with `where(...)`"
            message = f"the {what} `{show(node)}` differs between threads"
            here = "must be uniform" if help_ != "make it uniform" else ""
            yield error_at(executor.kernel, stmt, "E207", message, help_, here)


def _uniform_operands(stmt: Stmt) -> Iterator[tuple[str, Node]]:
    """The operands of a statement that must be equal in all threads of an agent, with a description of each."""
    match stmt:
        case Mma(init=init):
            yield "`init` operand", init
        case If(cond=cond):
            yield "branch", cond
        case For(start=start, stop=stop):
            yield "loop bound", start
            yield "loop bound", stop
        case Arrive(event=event, bytes=size):
            yield from _barrier_index(event)
            yield "number of bytes", size
        case Await(event=event, phase=phase):
            yield from _barrier_index(event)
            yield "phase", phase
        case Copy(signal=View() as event):
            yield from _barrier_index(event)
        case Edit(tensor=View() as tensor):
            for node in tensor.at:
                if not mentions(node, (Coord,)):
                    yield "tensor of a tensor map", node
        case Advance(by=by):
            yield "step of a counter", by
        case _:
            return


def _barrier_index(event: View) -> Iterator[tuple[str, Node]]:
    for node in event.at:
        yield "barrier index", node
