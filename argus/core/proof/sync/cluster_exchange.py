"""Exchanges of a cluster's blocks without roles: all store into each other's shared memory, then meet, then read.

A cluster barrier orders what the threads of all blocks did before it ahead of what they do after it [PTX ISA,
`barrier.cluster`, which releases and acquires]. So a block that has met the others finds in a tile what each of them
has stored there, if they store into disjoint parts, and nothing else writes to the tile. Such stores stand at the
kernel's top level, where all blocks reach them equally often.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import combinations

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.check.parts import views
from argus.core.ir import Alloc, Buffer, Copy, Kernel, Stmt, Sync, walk
from argus.core.proof.dataflow.access import Accesses
from argus.core.proof.obligation import Obligation
from argus.core.proof.sync.roles.cluster_stores import disjoint_store_obligations, received_copies
from argus.core.proof.sync.roles.clusters import has_cluster_barrier, with_rank_axis
from argus.core.proof.sync.roles.context import refuse


@frozen(eq=False)
class Round:
    """Stores into the blocks of a cluster that follow each other, and what each block receives by them.

    started: whether a cluster barrier comes before. met: whether the next cluster barrier after them is one at which
    all threads arrive and wait. unread: whether nothing reads what was received ahead of that.
    """

    sends: tuple[Copy, ...]
    received: tuple[Copy, ...]
    started: bool
    met: bool
    unread: bool


@frozen(eq=False)
class BlockOfCluster:
    """One block of a cluster as a kernel of its own: it makes the stores that it receives, in place of those it sends.

    The rank is an axis of its grid, and cluster barriers are barriers of the block.
    """

    kernel: Kernel
    rounds: tuple[Round, ...]


def block_of_cluster(kernel: Kernel) -> BlockOfCluster | None:
    """The block of a kernel without roles; None if its blocks do not store into each other's memory.

    Raises RefusedError for stores that are not made once by all blocks, or that are used otherwise.
    """
    assert kernel.roles is None
    if not _sent(kernel):
        return None
    kernel = with_rank_axis(kernel)
    body, rounds, made = kernel.body, list[Round](), list[Stmt]()
    at = 0
    while at < len(body):
        run = tuple(_run(body[at:]))
        if not run:
            made += _within_block(body[at])
            at += 1
            continue
        received = received_copies(kernel, run)
        rounds.append(Round(run, received, has_cluster_barrier(body[:at]), *_met(run, body[at:])))
        made += received
        at += len(run)
    _check_exclusive(kernel, rounds)
    return BlockOfCluster(evolve(kernel, prologue=tuple(made), epilogue=()), tuple(rounds))


def _run(body: Sequence[Stmt]) -> Iterator[Copy]:
    """The stores into other blocks with which statements begin."""
    for stmt in body:
        if not isinstance(stmt, Copy) or stmt.target.peer is None:
            return
        yield stmt


def _within_block(stmt: Stmt) -> Iterator[Stmt]:
    """A statement as the block itself executes it: to arrive at a cluster barrier, or to wait, orders nothing in it."""
    if not isinstance(stmt, Sync) or stmt.barrier != "cluster":
        yield stmt
    elif stmt.how == "meet":
        yield evolve(stmt, barrier="cta")


def _met(sends: Sequence[Copy], body: Sequence[Stmt]) -> tuple[bool, bool]:
    """Whether the next cluster barrier is one at which all arrive and wait, and whether no load comes before it."""
    boxes, unread = {copy.target.buffer for copy in sends}, True
    for stmt in body:
        if isinstance(stmt, Sync) and stmt.barrier == "cluster":
            return stmt.how == "meet", unread
        unread = unread and not any(_is_load_of(inner, boxes) for inner in walk((stmt,)))
    return False, unread


def _is_load_of(stmt: Stmt, boxes: AbstractSet[Buffer]) -> bool:
    return isinstance(stmt, Copy) and stmt.target.peer is None and stmt.source.buffer in boxes


def _check_exclusive(kernel: Kernel, rounds: Sequence[Round]) -> None:
    """Raises RefusedError unless each tile is written by one round of stores, and else only read by its block."""
    boxes = [frozenset(copy.target.buffer for copy in each.sends) for each in rounds]
    shared = next((b for one, two in combinations(boxes, 2) for b in one & two), None)
    if shared is not None:
        refuse(_first_use(rounds[-1], shared), f"`{shared.name}` receives stores of other blocks a second time")
    sends = {copy for each in rounds for copy in each.sends}
    received = frozenset[Buffer]().union(*boxes)
    for stmt in walk(kernel.body):
        touched = {view.buffer for view in views(stmt)} & received
        if touched and stmt not in sends and not isinstance(stmt, Alloc) and not _is_load(stmt):
            refuse(stmt, "another use of the memory that other blocks store into than a load of registers")


def _sent(kernel: Kernel) -> tuple[Copy, ...]:
    return tuple(stmt for stmt in walk(kernel.body) if isinstance(stmt, Copy) and stmt.target.peer is not None)


def _first_use(found: Round, box: Buffer) -> Copy:
    return next((copy for copy in found.sends if copy.target.buffer is box), found.sends[0])


def _is_load(stmt: Stmt) -> bool:
    return isinstance(stmt, Copy) and stmt.atom.proxy == "generic" and stmt.target.buffer.space == "register"


def exchange_obligations(block: BlockOfCluster, accesses: Accesses) -> Iterator[Obligation]:
    """Stores follow the start of all blocks, are met before they are read, end before the block, and are disjoint."""
    for each in block.rounds:
        first = each.sends[0]
        what = "all blocks of the cluster have started before others store into their memory"
        yield _obligation("I15", what, first, good=each.started, repair=_START)
        what = "the blocks of the cluster meet after they have stored into each other's memory, and before they read it"
        yield _obligation("I5", what, first, good=each.met and each.unread, repair=_MEET)
        what = "a block ends after all others have stored into its memory"
        yield _obligation("I15", what, first, good=each.met, repair=_MEET)
        yield from disjoint_store_obligations(accesses, each.received)


def _obligation(code: str, what: str, stmt: Stmt, *, good: bool, repair: str) -> Obligation:
    return Obligation(code, what, stmt, algebra.TRUE if good else algebra.FALSE, help=repair)


_START = "put `cluster.arrive()` at the start, and `cluster.wait()` ahead of the first store into another block"
_MEET = "put `cluster.sync()` between the stores into other blocks and the loads of what was received"
