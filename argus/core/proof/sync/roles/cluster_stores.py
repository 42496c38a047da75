"""The DSMEM exchange of a cluster: blocks store into each other's shared memory, once, after their rings are finished.

Each agent of a role stores parts of its registers into every block of the cluster, including its own; its threads
synchronise; one of them arrives at a barrier of each block; and all wait for the barrier of their own block, whose
arrival count is the number of blocks. So after the wait, an agent sees what the agents of the same number in all blocks
have stored; nothing else accesses that memory. It occurs once, in a role without a loop over tiles, at the role's top
level: phases do not repeat. Source: proof-methods 3.6; PTX ISA, `mbarrier.arrive.release.cluster`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import combinations

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.check.parts import views
from argus.core.index import Cond, Const, Index, Symbol
from argus.core.ir import (
    Alloc,
    Arrive,
    Await,
    Buffer,
    Copy,
    For,
    Kernel,
    One,
    Role,
    Roles,
    Stmt,
    Sync,
    View,
    static,
    walk,
)
from argus.core.proof.dataflow.access import Accesses, overlap
from argus.core.proof.dataflow.timeline import Step
from argus.core.proof.obligation import Obligation
from argus.core.proof.sync.roles.clusters import rank_of
from argus.core.proof.sync.roles.context import refuse
from argus.core.proof.sync.roles.events import tile_loop_of
from argus.core.proof.sync.roles.parsed import arrivals
from argus.core.walk import substitute, symbols


@frozen(eq=False)
class Exchange:
    """A DSMEM exchange.

    sends: the stores of an agent, by target rank. barrier: the agent's barrier after them. received: the stores into
    one block, one per sender, as copies from the sender's registers. rest: the kernel without arrivals and wait.
    """

    role: Role
    sends: tuple[Copy, ...]
    barrier: Sync | None
    arrivals: tuple[Arrive, ...]
    wait: Await
    received: tuple[Copy, ...]
    rest: Kernel


def find_exchange(kernel: Kernel) -> Exchange | None:
    """The exchange of a kernel; None if its blocks do not store into each other's memory. Raises RefusedError."""
    assert kernel.roles is not None
    stores = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Copy) and stmt.target.peer is not None]
    if not stores:
        return None
    role = next((each for each in kernel.roles.roles if stores[0] in each.body), None)
    if role is None or role.agent == 1 or tile_loop_of(role) is not None:
        refuse(stores[0], "stores into another block's memory that are not executed once by all threads of an agent")
    first = role.body.index(stores[0])
    last = first + len(stores)
    if role.body[first:last] != tuple(stores):
        refuse(stores[0], "stores into another block's memory that are not consecutive")
    met, arrived, wait, end = _ending(role, last)
    after = tuple(walk(role.body[end:]))
    own = {*stores, *arrived, wait, *(stmt for stmt in after if _is_register_load(stmt))}
    _check_exclusive(kernel, own, frozenset(copy.target.buffer for copy in stores), wait.event.buffer)
    later = next((stmt for stmt in after if isinstance(stmt, Arrive | Await | For)), None)
    if later is not None:
        refuse(later, "barriers or loops after the exchange between blocks")
    rest = (*role.body[:last], *(() if met is None else (met,)), *role.body[end:])
    roles = Roles(
        tuple(evolve(each, body=rest) if each is role else each for each in kernel.roles.roles), span=kernel.roles.span
    )
    return Exchange(
        role, tuple(stores), met, arrived, wait, received_copies(kernel, stores), evolve(kernel, roles=roles)
    )


def _ending(role: Role, at: int) -> tuple[Sync | None, tuple[Arrive, ...], Await, int]:
    """The barrier, the arrivals and the wait after the stores, and the index after them."""
    body, before, met = role.body, role.body[at - 1], None
    if at < len(body) and isinstance(found := body[at], Sync):
        met, at = found, at + 1
    arrived: tuple[Arrive, ...] = ()
    if at < len(body) and isinstance(alone := body[at], One):
        found_arrivals = tuple(stmt for stmt in alone.body if isinstance(stmt, Arrive))
        if len(found_arrivals) != len(alone.body):
            refuse(alone, "the thread that arrives at other blocks' barriers does something else too")
        arrived, at = found_arrivals, at + 1
    wait = body[at] if at < len(body) else None
    if not isinstance(wait, Await):
        refuse(before, "stores into another block's memory that are not followed by arrivals there and a wait here")
    return met, arrived, wait, at + 1


def _check_exclusive(kernel: Kernel, own: AbstractSet[Stmt], boxes: frozenset[Buffer], barrier: Buffer) -> None:
    """Raises RefusedError if anything but the exchange's own statements uses its memory or its barrier."""
    for stmt in walk(kernel.body):
        touched = {view.buffer for view in views(stmt)} & {*boxes, barrier}
        if touched and stmt not in own and not isinstance(stmt, Alloc):
            refuse(stmt, "another use of the memory that other blocks store into, or of its barrier")


def _is_register_load(stmt: Stmt) -> bool:
    return isinstance(stmt, Copy) and stmt.atom.proxy == "generic" and stmt.target.buffer.space == "register"


def received_copies(kernel: Kernel, stores: Sequence[Copy]) -> tuple[Copy, ...]:
    """The stores of each sender into the block of the symbolic rank.

    The parts sent to ranks 0, 1, ... must be an arithmetic progression, so that they are one expression over the rank.
    """
    rank, made = rank_of(kernel), list[Copy]()
    targets = [store.target.peer for store in stores]
    for to in range(kernel.peers):
        if sum(each is algebra.const(to) for each in targets) * kernel.peers != len(stores):
            refuse(stores[0], "the blocks of the cluster receive different numbers of stores")
    groups = [[s for s in stores if s.target.peer is algebra.const(to)] for to in range(kernel.peers)]
    for group in zip(*groups, strict=True):
        first = group[0]
        at = tuple(
            _affine_in_rank(first, [each.source.at[axis] for each in group], rank) for axis in range(_axes(first))
        )
        for each in group:
            same = (each.atom, each.by, each.edge, each.combine) == (first.atom, first.by, first.edge, None)
            same = same and each.source.buffer is first.source.buffer and each.target.buffer is first.target.buffer
            same = same and each.source.where is algebra.TRUE
            if not same or _place(each) != _place(first) or each.source.shape != first.source.shape:
                refuse(each, "the stores into two blocks differ by more than the index")
        for sender in range(kernel.peers):
            name: dict[Symbol, Index] = {rank: algebra.const(sender)}
            source = View(first.source.buffer, first.source.shape, at, peer=algebra.const(sender))
            place = tuple(substitute(each, name) for each in first.target.at)
            target = evolve(first.target, at=place, where=substitute(first.target.where, name), peer=None)
            made.append(evolve(first, source=source, target=target))
    return tuple(made)


def _place(store: Copy) -> tuple[tuple[Index, ...], Cond]:
    return store.target.at, store.target.where


def _axes(store: Copy) -> int:
    return len(store.source.at)


def _affine_in_rank(store: Copy, found: Sequence[Index], rank: Symbol) -> Index:
    """The affine expression over the rank that has these values at ranks 0, 1, ..."""
    step = algebra.sub(found[1], found[0])
    made = algebra.add(found[0], algebra.mul(algebra.sym(rank), step))
    alone = not any(rank in symbols(each) for each in found)
    if not alone or any(substitute(made, {rank: algebra.const(to)}) is not each for to, each in enumerate(found)):
        refuse(store, "the parts sent to the blocks of the cluster are not affine in the rank")
    return made


# -- obligations ---------------------------------------------------------------------------------------------------


def exchange_obligations(kernel: Kernel, found: Exchange) -> Iterator[Obligation]:
    """Arrivals follow the stores, each block waits for the arrivals of all blocks, and no block ends before that."""
    role, wait, first = found.role, found.wait, found.arrivals[0] if found.arrivals else found.wait
    synced = found.barrier is not None and (found.barrier.barrier, found.barrier.how) == (role.name, "meet")
    synced = synced and found.barrier is not None and found.barrier.threads in (None, role.agent)
    what = "all threads have stored before one of them arrives at the other blocks' barriers"
    yield _obligation("I5", what, first, synced, _SYNC)
    ranks = sorted(each.event.peer.value for each in found.arrivals if isinstance(each.event.peer, Const))
    every = (
        ranks == list(range(kernel.peers)) and len(ranks) == len(found.arrivals) and _arrive_at_awaited_barrier(found)
    )
    yield _obligation("I8", "each agent arrives once at a barrier of every block of the cluster", first, every, _ARRIVE)
    count = arrivals(kernel, wait.event.buffer)
    once = count == kernel.peers and all(each.count == 1 and _no_bytes(each) for each in found.arrivals)
    yield _obligation("I8", "the barrier's arrival count is the number of blocks in the cluster", wait, once, _ARRIVE)
    alone = algebra.sym(role.number) if role.agents > 1 else algebra.const(0)
    several = static(wait.event.buffer.shape[0]) == role.agents
    own = several and all(_index(role, each.event) is alone for each in (*found.arrivals, wait))
    yield _obligation("I9", "each agent number has its own barrier", wait, own, _OWN)
    yield _obligation("I6", "the wait is for the first phase", wait, wait.phase is algebra.const(0), "wait for phase 0")
    what = "a block ends after all others have stored into its memory"
    yield _obligation("I15", what, wait, every and once and own, _ARRIVE)


def _arrive_at_awaited_barrier(found: Exchange) -> bool:
    """Whether all arrivals are at the barrier of the wait."""
    return all(each.event.buffer is found.wait.event.buffer for each in found.arrivals)


def _index(role: Role, event: View) -> Index:
    return substitute(event.at[0], {role.number: algebra.const(0)}) if role.agents == 1 else event.at[0]


def _no_bytes(stmt: Arrive) -> bool:
    return stmt.bytes is algebra.const(0)


def _obligation(code: str, what: str, stmt: Stmt, good: bool, help_: str) -> Obligation:
    return Obligation(code, what, stmt, algebra.TRUE if good else algebra.FALSE, help=help_)


_SYNC = "put a `sync()` of the agent between the stores and the arrivals"
_ARRIVE = "let one thread of each agent arrive once at the barrier of every rank: `come[wg].of(rank).arrive()`"
_OWN = "make one barrier per agent, `barrier(blocks, of=agents)`, and index it by the agent's number"


def disjoint_store_obligations(accesses: Accesses, received: Sequence[Copy]) -> Iterator[Obligation]:
    """I5: different blocks store into disjoint parts of a block's memory, as their stores are unordered."""
    written = [accesses.of(Step(copy, algebra.TRUE, 0, 0, None))[-1] for copy in received]
    for one, two in combinations(written, 2):
        if one.view.buffer is not two.view.buffer:
            continue
        common = overlap(one, two, {})
        disjoint = common is not None and (common.slots is algebra.FALSE or not common.cells.shared)
        what = f"blocks store into disjoint parts of `{one.view.buffer.name}`"
        reason = "" if common is not None else "an address does not separate into slot and cell"
        goal = algebra.TRUE if disjoint else algebra.FALSE
        help_ = "give each block of the cluster its own part: index it by `cluster.rank`"
        yield Obligation("I5", what, two.step.stmt, goal, (), one.step.stmt, reason, compared=one.shape[1], help=help_)
