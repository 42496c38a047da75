"""How asynchronous work is known to be done: barriers that are ready, queues that hold something."""

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
    """A copy completes as its instruction says: on a barrier, or not."""
    if isinstance(stmt, Copy) and (stmt.signal is not None) != stmt.atom.completion.signal:
        message = f"`{stmt.atom}` completes on " + ("a barrier" if stmt.signal is None else "no barrier")
        yield error_at(executor.kernel, stmt, "E208", message, "name the barrier of a copy by the TMA, and of no other")
    if isinstance(stmt, Copy) and stmt.combine != stmt.atom.combine:
        does = f"joins by {stmt.atom.combine}" if stmt.atom.combine else "replaces what is there"
        help_ = "copy `combine=add` by an instruction that adds, and no other"
        yield error_at(executor.kernel, stmt, "E108", f"`{stmt.atom}` {does}", help_)


def check_barriers(kernel: Kernel) -> Iterator[Diagnostic]:
    """Barriers are initialised by the block, and every thread knows it, before one is used."""
    ready: frozenset[Buffer] = frozenset()
    pending: frozenset[Buffer] = frozenset()
    fenced = False
    for stmt in kernel.body:
        if isinstance(stmt, Alloc) and stmt.buffer.space == "barrier":
            pending |= {stmt.buffer}
            fenced = False
            if stmt.count is None or not 1 <= stmt.count < 1 << 20:
                message = f"barrier `{stmt.buffer.name}` counts {stmt.count} arrivals"
                yield error_at(kernel, stmt, "E208", message, "give a count from 1, less than 2^20")
        elif isinstance(stmt, Fence) and stmt.kind == "barrier_init":
            fenced = True
        elif isinstance(stmt, Sync) and stmt.barrier in ("cta", "cluster") and stmt.how != "arrive" and fenced:
            ready |= pending
        for inner in walk((stmt,)):
            yield from _inside(kernel, inner, stmt, ready)


def _inside(kernel: Kernel, stmt: Stmt, top: Stmt, ready: frozenset[Buffer]) -> Iterator[Diagnostic]:
    if isinstance(stmt, Alloc) and stmt.buffer.space == "barrier" and stmt is not top:
        message = f"barrier `{stmt.buffer.name}` is made inside a body"
        yield error_at(kernel, stmt, "E208", message, "make it at the level of the kernel")
    event = _event(stmt)
    if event is None:
        return
    name = event.buffer.name
    if event.buffer.space != "barrier" or event.shape:
        yield error_at(kernel, stmt, "E208", f"`{name}` is not one barrier", "index it: `b[i]`")
    elif event.buffer not in ready and not (isinstance(top, Roles) and stmt is top):
        message = f"`{name}` is used before all threads know that it is initialised"
        yield error_at(
            kernel, stmt, "E208", message, "make barriers before the roles; a fence and a meeting follow them"
        )


def _event(stmt: Stmt) -> View | None:
    match stmt:
        case Arrive(event=event) | Await(event=event):
            return event
        case Copy(signal=signal):
            return signal
        case _:
            return None


def check_queues(kernel: Kernel) -> Iterator[Diagnostic]:
    """Who waits on a queue of groups has issued to it."""
    outside = (*kernel.prologue, *kernel.epilogue)
    parts = [outside, *(() if kernel.roles is None else (role.body for role in kernel.roles.roles))]
    for body in parts:
        statements = [stmt for stmt in walk(body) if not isinstance(stmt, Roles)]
        issued = {stmt.atom.completion.queue for stmt in statements if isinstance(stmt, Copy | Mma)}
        for stmt in statements:
            if isinstance(stmt, Wait) and stmt.queue in _GROUPED and stmt.queue not in issued:
                message = f"a wait on `{stmt.queue}`, to which nothing is issued here"
                yield error_at(kernel, stmt, "E219", message, "wait in the role, and on the thread, that issues")
        yield from _unclosed(kernel, body, False)


def _unclosed(kernel: Kernel, body: tuple[Stmt, ...], inside: bool) -> Iterator[Diagnostic]:
    """Products of a group are closed by a commit of the body that they stand in, or of one around it."""
    last: Mma | None = None
    for stmt in body:
        if isinstance(stmt, Commit) and stmt.queue == "wgmma":
            last = None
        elif isinstance(stmt, Mma) and stmt.grouped:
            last = stmt
    if last is not None and not inside:
        message = "a group of products that nothing closes"
        yield error_at(kernel, last, "E219", message, "put its products into `with wgmma.group():`")
    for position, stmt in enumerate(body):
        closed = any(isinstance(after, Commit) and after.queue == "wgmma" for after in body[position + 1 :])
        for part in bodies(stmt) if not isinstance(stmt, Roles) else ():
            yield from _unclosed(kernel, part, inside or closed)
