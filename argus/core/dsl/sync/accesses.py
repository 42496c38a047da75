"""What a statement reads and writes, at once or when its queue completes it: for the insertion of waits."""

from __future__ import annotations

from attrs import frozen

from argus.core.atom import Queue
from argus.core.check.parts import claim_views
from argus.core.index import Const
from argus.core.ir import (
    Arrive,
    Assert,
    Atomic,
    Buffer,
    Copy,
    Fence,
    Fold,
    Let,
    Map,
    Mma,
    Peek,
    Reset,
    Stmt,
    Sync,
    Tag,
    View,
    walk,
    whole,
)
from argus.core.ir.element_walk import gets


@frozen
class Access:
    """A read or a write of the elements of a view."""

    view: View
    writes: bool


def queue_of_operation(stmt: Stmt) -> Queue | None:
    """The queue that completes a copy or a product; None for other statements, and for those complete at once."""
    return stmt.atom.completion.queue if isinstance(stmt, Copy | Mma) else None


def in_groups(operation: Copy | Mma) -> bool:
    """Whether an operation is counted once its group is committed, and no entry of its own."""
    return operation.atom.completion.group == "commit" or (isinstance(operation, Mma) and operation.grouped)


def queued_accesses(stmt: Stmt) -> tuple[Access, ...]:
    """What an operation accesses until its queue completes it. A copy reads registers when it is issued."""
    if queue_of_operation(stmt) is None:
        return ()
    match stmt:
        case Copy(source=source, target=target):
            read = () if source.buffer.space == "register" else (Access(source, writes=False),)
            return (*read, Access(target, writes=True))
        case Mma(target=target, a=a, b=b):
            return Access(a, writes=False), Access(b, writes=False), Access(target, writes=True)
        case _:
            return ()


def immediate_accesses(stmt: Stmt) -> tuple[Access, ...]:
    """What a statement itself accesses when it is executed, without those nested in it.

    Claims and tags read what they are about, unless it is in global memory: there they describe what a launch leaves.
    """
    match stmt:
        case Copy(source=source, target=target):
            if queue_of_operation(stmt) is None:
                return _accesses((source,), target)
            return _accesses((source,)) if source.buffer.space == "register" else ()
        case Map(target=target, elem=elem):
            return _accesses(tuple(get.view for get in gets(elem)), target)
        case Fold(source=source, target=target):
            return _accesses((source,), target)
        case Mma(target=target, a=a, b=b):
            return () if queue_of_operation(stmt) is not None else _accesses((a, b), target)
        case Let(value=Peek(view=view)):
            return _accesses((view,))
        case Let(value=Atomic(view=view)):
            return _accesses((), view)
        case Reset(buffer=buffer):
            return _accesses((), whole(buffer))
        case Tag(view=view):
            return _accesses(_outside_global_memory(view))
        case Assert(claim=claim):
            return _accesses(_outside_global_memory(*claim_views(claim)))
        case _:
            return ()


def _accesses(read: tuple[View, ...], written: View | None = None) -> tuple[Access, ...]:
    reads = tuple(Access(view, writes=False) for view in read)
    return reads if written is None else (*reads, Access(written, writes=True))


def _outside_global_memory(*views: View) -> tuple[View, ...]:
    return tuple(view for view in views if view.buffer.space != "global")


def conflict(one: Access, other: Access) -> bool:
    """Whether two accesses may be of one element, and one of them writes it."""
    same = one.view.buffer is other.view.buffer and (one.writes or other.writes)
    return same and not _apart(one.view, other.view)


def _apart(one: View, other: View) -> bool:
    """Whether constant coordinates along some axis differ."""
    pairs = zip(one.at, other.at, strict=True)
    return any(isinstance(a, Const) and isinstance(b, Const) and a is not b for a, b in pairs)


def releases(stmt: Stmt) -> bool:
    """Whether other threads may rely on what this thread has done before the statement."""
    match stmt:
        case Sync() | Arrive() | Let(value=Atomic()):
            return True
        case Fence(kind=kind):
            return kind not in ("wgmma", "barrier_init")
        case _:
            return False


def shared_with_others(body: tuple[Stmt, ...]) -> frozenset[Buffer]:
    """The buffers that other threads of the block may access with a conflict.

    All shared memory, and global memory that the body both reads and writes.
    """
    accesses = [access for stmt in walk(body) for access in (*immediate_accesses(stmt), *queued_accesses(stmt))]
    read = {access.view.buffer for access in accesses if not access.writes}
    written = {access.view.buffer for access in accesses if access.writes}
    return frozenset(
        buffer
        for buffer in read | written
        if buffer.space == "shared" or (buffer.space == "global" and buffer in read and buffer in written)
    )
