"""Completion queues of statements: which operations are asynchronous, and which of them complete in order."""

from __future__ import annotations

from argus.core.atom import Queue
from argus.core.ir.statements import Copy, Stmt


def queue_of(stmt: Stmt) -> Queue | None:
    """The completion queue of a copy whose completion the hardware does not track; None otherwise."""
    if isinstance(stmt, Copy) and not stmt.atom.completion.tracked:
        return stmt.atom.completion.queue
    return None


def completes_in_order(older: Stmt, younger: Stmt) -> bool:
    """Whether the younger of two operations on one queue never completes first; a load and a store have no order."""
    return queue_of(older) == "lds" or _is_global_store(older) == _is_global_store(younger)


def _is_global_store(stmt: Stmt) -> bool:
    return isinstance(stmt, Copy) and stmt.target.buffer.space == "global"
