"""Checks of clusters: grid divisibility, cluster barriers, and accesses to other blocks' shared memory."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core.check.divisible import always_multiple
from argus.core.check.executor import error_at
from argus.core.check.parts import views
from argus.core.diagnostic import Diagnostic, Label
from argus.core.index import Sym
from argus.core.index_text import show
from argus.core.ir import Arrive, Copy, Kernel, Stmt, Sync, View, walk


def check_clusters(kernel: Kernel) -> Iterator[Diagnostic]:
    """The grid is whole clusters, all threads reach each cluster barrier, and only arrivals, multicasts and stores of
    registers access another block.
    """
    sizes = (*kernel.cluster, *(1 for _ in kernel.grid[len(kernel.cluster) :]))
    for count, size in zip(kernel.grid, sizes, strict=False):
        if not always_multiple(kernel, count, size):
            message = f"{show(count)} blocks along one axis are not always whole clusters of {size}"
            label = Label(kernel.span, "declared here")
            text = show(count) if isinstance(count, Sym) else f"({show(count)})"
            help_ = (
                f"assume it, `assume({text} % {size} == 0)`, or round the count up to whole clusters, "
                f"`{size} * ceil_div(M, {size} * 128)` for tiles of 128 rows"
            )
            yield Diagnostic("E230", "error", message, label, help=help_, kernel=kernel.name)
    yield from _check_arrive_wait_pairs(kernel)
    top = {*kernel.prologue, *kernel.epilogue}
    for stmt in walk(kernel.body):
        if isinstance(stmt, Sync):
            yield from _check_sync(kernel, stmt, at_top_level=stmt in top)
        yield from _check_peer_accesses(kernel, stmt)


def _check_arrive_wait_pairs(kernel: Kernel) -> Iterator[Diagnostic]:
    """`cluster.arrive()` and `cluster.wait()` alternate, beginning with an arrival and ending with a wait."""
    pending: Sync | None = None
    for stmt in (*kernel.prologue, *kernel.epilogue):
        if not isinstance(stmt, Sync) or stmt.barrier != "cluster":
            continue
        if (stmt.how == "wait") != (pending is not None):
            help_ = "write `cluster.arrive()`, then `cluster.wait()`, before the next `cluster.arrive()`"
            yield error_at(kernel, stmt, "E231", "`cluster.arrive()` and `cluster.wait()` do not alternate", help_)
        pending = stmt if stmt.how == "arrive" else None
    if pending is not None:
        yield error_at(kernel, pending, "E231", "`cluster.arrive()` without a `cluster.wait()` after it", "wait for it")


def _check_sync(kernel: Kernel, stmt: Sync, *, at_top_level: bool) -> Iterator[Diagnostic]:
    if stmt.barrier == "cluster" and (not at_top_level or stmt.threads is not None or kernel.peers == 1):
        help_ = "put it at the kernel's top level, before the roles or after them"
        yield error_at(kernel, stmt, "E231", "a cluster barrier that not every thread of the cluster reaches", help_)
    if stmt.barrier != "cluster" and stmt.how == "wait":
        yield error_at(kernel, stmt, "E231", f"`{stmt.barrier}` has no separate wait", "use `sync` or `arrive`")


def _check_peer_accesses(kernel: Kernel, stmt: Stmt) -> Iterator[Diagnostic]:
    for view in views(stmt):
        if view.peer is None or (isinstance(stmt, Arrive) and view is stmt.event) or _is_peer_store(stmt, view):
            continue
        what = "is accessed by something other than an arrival or a store of registers: not built yet"
        yield error_at(kernel, stmt, "E501", f"`{view.buffer.name}` of another block {what}")


def _is_peer_store(stmt: Stmt, view: View) -> bool:
    """Whether the view is the target of a store of registers into another block's shared memory."""
    if not isinstance(stmt, Copy) or view is not stmt.target or view.buffer.space != "shared":
        return False
    plain = stmt.atom.proxy == "generic" and all(each.tv is None for each in stmt.atom.operands.values())
    return plain and stmt.source.buffer.space == "register"
