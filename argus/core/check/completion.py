"""Checks of asynchronous completion: initialised mbarriers, copies with their barrier, queues and groups."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core.check.executor import Executor, error_at
from argus.core.diagnostic import Diagnostic
from argus.core.ir import (
    Alloc,
    Arrive,
    Await,
    Buffer,
    Commit,
    Copy,
    Fence,
    Kernel,
    Mma,
    Roles,
    Stmt,
    Sync,
    View,
    Wait,
    bodies,
    walk,
)

_GROUPED = ("cp_async", "bulk", "wgmma")


def check_completion(executor: Executor, stmt: Stmt) -> Iterator[Diagnostic]:
    """A copy names a barrier exactly if its instruction completes on one, and its reduction is the instruction's."""
    if isinstance(stmt, Copy) and (stmt.signal is not None) != stmt.atom.completion.signal:
        message = f"`{stmt.atom}` completes on " + ("a barrier" if stmt.signal is None else "no barrier")
        yield error_at(executor.kernel, stmt, "E208", message, "give `signal` for TMA loads, and for no other copy")
    if isinstance(stmt, Copy) and stmt.combine != stmt.atom.combine:
        does = f"combines by {stmt.atom.combine}" if stmt.atom.combine else "overwrites its target"
        help_ = "write `combine=add` exactly if the instruction adds"
        yield error_at(executor.kernel, stmt, "E108", f"`{stmt.atom}` {does}", help_)


def check_barriers(kernel: Kernel) -> Iterator[Diagnostic]:
    """Barriers are made at the top level, and a fence and a block or cluster barrier come before their first use."""
    ready: frozenset[Buffer] = frozenset()
    pending: frozenset[Buffer] = frozenset()
    fenced = False
    for stmt in kernel.body:
        if isinstance(stmt, Alloc) and stmt.buffer.space == "barrier":
            pending |= {stmt.buffer}
            fenced = False
            if stmt.count is None or not 1 <= stmt.count < 1 << 20:
                message = f"barrier `{stmt.buffer.name}` counts {stmt.count} arrivals"
                yield error_at(kernel, stmt, "E208", message, "give a count of at least 1 and less than 2^20")
        elif isinstance(stmt, Fence) and stmt.kind == "barrier_init":
            fenced = True
        elif isinstance(stmt, Sync) and stmt.barrier in ("cta", "cluster") and stmt.how != "arrive" and fenced:
            ready |= pending
        for inner in walk((stmt,)):
            yield from _check_barrier_use(kernel, inner, stmt, ready)


def _check_barrier_use(kernel: Kernel, stmt: Stmt, top: Stmt, ready: frozenset[Buffer]) -> Iterator[Diagnostic]:
    if isinstance(stmt, Alloc) and stmt.buffer.space == "barrier" and stmt is not top:
        message = f"barrier `{stmt.buffer.name}` is made inside a role, loop or branch"
        yield error_at(kernel, stmt, "E208", message, "make it at the kernel's top level")
    event = _barrier_of(stmt)
    if event is None:
        return
    name = event.buffer.name
    if event.buffer.space != "barrier" or event.shape:
        yield error_at(kernel, stmt, "E208", f"`{name}` is not a single barrier", "index it: `b[i]`")
    elif event.buffer not in ready and not (isinstance(top, Roles) and stmt is top):
        message = f"`{name}` is used before its initialisation is visible to all threads"
        yield error_at(
            kernel, stmt, "E208", message, "make barriers before the roles; a fence and a `sync()` follow them"
        )


def _barrier_of(stmt: Stmt) -> View | None:
    match stmt:
        case Arrive(event=event) | Await(event=event):
            return event
        case Copy(signal=signal):
            return signal
        case _:
            return None


def check_queues(kernel: Kernel) -> Iterator[Diagnostic]:
    """Each wait on a queue of groups is in a role, or in the code around the roles, that issues to this queue."""
    around_roles = (*kernel.prologue, *kernel.epilogue)
    parts = [around_roles, *(() if kernel.roles is None else (role.body for role in kernel.roles.roles))]
    for body in parts:
        statements = [stmt for stmt in walk(body) if not isinstance(stmt, Roles)]
        issued = {stmt.atom.completion.queue for stmt in statements if isinstance(stmt, Copy | Mma)}
        for stmt in statements:
            if isinstance(stmt, Wait) and stmt.queue in _GROUPED and stmt.queue not in issued:
                message = f"a wait on `{stmt.queue}`, but nothing is issued to it here"
                yield error_at(kernel, stmt, "E219", message, "wait in the role and thread that issue the operations")
        yield from _uncommitted_groups(kernel, body, False)


def _uncommitted_groups(kernel: Kernel, body: tuple[Stmt, ...], committed: bool) -> Iterator[Diagnostic]:
    """A commit of the queue `wgmma` follows the grouped products of a body, in this body or in one around it."""
    last: Mma | None = None
    for stmt in body:
        if isinstance(stmt, Commit) and stmt.queue == "wgmma":
            last = None
        elif isinstance(stmt, Mma) and stmt.grouped:
            last = stmt
    if last is not None and not committed:
        message = "a group of products without a commit"
        yield error_at(kernel, last, "E219", message, "put its products into `with wgmma.group():`")
    for position, stmt in enumerate(body):
        closed = any(isinstance(after, Commit) and after.queue == "wgmma" for after in body[position + 1 :])
        for part in bodies(stmt) if not isinstance(stmt, Roles) else ():
            yield from _uncommitted_groups(kernel, part, committed or closed)
