"""Clusters: the grid they divide, where they meet, and what may reach another block."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core import algebra
from argus.core.check.executor import error_at
from argus.core.check.parts import views
from argus.core.diagnostic import Diagnostic, Label
from argus.core.ir import Arrive, Copy, Kernel, Stmt, Sync, View, walk
from argus.core.walk import show


def check_clusters(kernel: Kernel) -> Iterator[Diagnostic]:
    """Whole clusters, which meet as a whole; other blocks are reached by arrivals, multicasts and stores alone."""
    sizes = (*kernel.cluster, *(1 for _ in kernel.grid[len(kernel.cluster) :]))
    for count, size in zip(kernel.grid, sizes, strict=False):
        if algebra.mod(count, size) is not algebra.const(0):
            message = f"{show(count)} blocks along one axis are no whole clusters of {size}"
            label = Label(kernel.span, "declared here")
            help_ = "count tiles in groups: `2 * ceil_div(M, 2 * 128)`"
            yield Diagnostic("E230", "error", message, label, help=help_, kernel=kernel.name)
    yield from _halves(kernel)
    top = {*kernel.prologue, *kernel.epilogue}
    for stmt in walk(kernel.body):
        if isinstance(stmt, Sync):
            yield from _meeting(kernel, stmt, outside=stmt in top)
        yield from _reached(kernel, stmt)


def _halves(kernel: Kernel) -> Iterator[Diagnostic]:
    """Each arrival at a meeting of the cluster has its wait before the next meeting, and each wait its arrival."""
    pending: Sync | None = None
    for stmt in (*kernel.prologue, *kernel.epilogue):
        if not isinstance(stmt, Sync) or stmt.barrier != "cluster":
            continue
        if (stmt.how == "wait") != (pending is not None):
            help_ = "write `cluster.arrive()`, then `cluster.wait()`, and so on"
            yield error_at(kernel, stmt, "E231", "the halves of the cluster's meetings do not follow each other", help_)
        pending = stmt if stmt.how == "arrive" else None
    if pending is not None:
        yield error_at(
            kernel, pending, "E231", "an arrival at a meeting of the cluster without its wait", "wait for it"
        )


def _meeting(kernel: Kernel, stmt: Sync, *, outside: bool) -> Iterator[Diagnostic]:
    if stmt.barrier == "cluster" and (not outside or stmt.threads is not None or kernel.peers == 1):
        help_ = "put it at the level of the kernel, before the roles or after them"
        yield error_at(kernel, stmt, "E231", "a meeting of the cluster that not all of its threads reach alike", help_)
    if stmt.barrier != "cluster" and stmt.how == "wait":
        yield error_at(kernel, stmt, "E231", f"`{stmt.barrier}` has no meeting in halves", "meet, or arrive")


def _reached(kernel: Kernel, stmt: Stmt) -> Iterator[Diagnostic]:
    for view in views(stmt):
        if view.peer is None or (isinstance(stmt, Arrive) and view is stmt.event) or _sends(stmt, view):
            continue
        what = "is used otherwise than by an arrival, or by stores of registers: not built"
        yield error_at(kernel, stmt, "E501", f"`{view.buffer.name}` of another block {what}")


def _sends(stmt: Stmt, view: View) -> bool:
    """Whether each thread stores registers into another block's shared memory there."""
    if not isinstance(stmt, Copy) or view is not stmt.target or view.buffer.space != "shared":
        return False
    plain = stmt.atom.proxy == "generic" and all(each.tv is None for each in stmt.atom.operands.values())
    return plain and stmt.source.buffer.space == "register" and view.where is algebra.TRUE
