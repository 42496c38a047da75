"""What the blocks of a cluster store into each other's shared memory, once, after their rings are done with.

Each agent of a role stores parts of its registers into every block of the cluster, its own among them; it meets; one
of its threads arrives at a barrier of each block; and all wait for that of their own block, which counts as many
arrivals as there are blocks. So what the agents of one number have stored in a block is there, for the agent of that
number, once it has waited; nothing else touches that memory. Stands once in a role without a loop over tiles, at its
level: phases do not repeat. Source: proof-methods 3.6; PTX ISA, `mbarrier.arrive.release.cluster`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import combinations

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.check.parts import views
from argus.core.index import Const, Index, Symbol
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
from argus.core.proof.sync.roles.events import tiles_of
from argus.core.proof.sync.roles.parsed import arrivals
from argus.core.walk import substitute, symbols


@frozen(eq=False)
class Exchange:
    """sends: what an agent stores, by the rank that it stores to. landed: what comes to a block, one a sender, told as
    if it were copied from the sender's registers. rest: the kernel without arrivals and wait.
    """

    role: Role
    sends: tuple[Copy, ...]
    meeting: Sync | None
    arrivals: tuple[Arrive, ...]
    wait: Await
    landed: tuple[Copy, ...]
    rest: Kernel


def exchange(kernel: Kernel) -> Exchange | None:
    """None for a kernel whose blocks store nothing into each other's memory. Raises RefusedError."""
    assert kernel.roles is not None
    stores = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Copy) and stmt.target.peer is not None]
    if not stores:
        return None
    role = next((each for each in kernel.roles.roles if stores[0] in each.body), None)
    if role is None or role.agent == 1 or tiles_of(role) is not None:
        refuse(stores[0], "stores into another block's memory that are not made once by all threads of an agent")
    first = role.body.index(stores[0])
    last = first + len(stores)
    if role.body[first:last] != tuple(stores):
        refuse(stores[0], "stores into another block's memory that do not follow one another")
    met, arrived, wait, end = _ending(role, last)
    after = tuple(walk(role.body[end:]))
    own = {*stores, *arrived, wait, *(stmt for stmt in after if _reads(stmt))}
    _judge_alone(kernel, own, frozenset(copy.target.buffer for copy in stores), wait.event.buffer)
    later = next((stmt for stmt in after if isinstance(stmt, Arrive | Await | For)), None)
    if later is not None:
        refuse(later, "barriers or loops after blocks have exchanged what they stored")
    rest = (*role.body[:last], *(() if met is None else (met,)), *role.body[end:])
    roles = Roles(
        tuple(evolve(each, body=rest) if each is role else each for each in kernel.roles.roles), span=kernel.roles.span
    )
    return Exchange(role, tuple(stores), met, arrived, wait, _landed(kernel, stores), evolve(kernel, roles=roles))


def _ending(role: Role, at: int) -> tuple[Sync | None, tuple[Arrive, ...], Await, int]:
    """The meeting, the arrivals and the wait after the stores, and where they end."""
    body, before, met = role.body, role.body[at - 1], None
    if at < len(body) and isinstance(found := body[at], Sync):
        met, at = found, at + 1
    arrived: tuple[Arrive, ...] = ()
    if at < len(body) and isinstance(alone := body[at], One):
        found_arrivals = tuple(stmt for stmt in alone.body if isinstance(stmt, Arrive))
        if len(found_arrivals) != len(alone.body):
            refuse(alone, "one thread that tells other blocks of stores does something else too")
        arrived, at = found_arrivals, at + 1
    wait = body[at] if at < len(body) else None
    if not isinstance(wait, Await):
        refuse(before, "stores into another block's memory that are not followed by arrivals there and a wait here")
    return met, arrived, wait, at + 1


def _judge_alone(kernel: Kernel, own: AbstractSet[Stmt], boxes: frozenset[Buffer], barrier: Buffer) -> None:
    """Raises RefusedError if anything but the exchange's own statements touches its memory or its barrier."""
    for stmt in walk(kernel.body):
        touched = {view.buffer for view in views(stmt)} & {*boxes, barrier}
        if touched and stmt not in own and not isinstance(stmt, Alloc):
            refuse(stmt, "memory that other blocks store into, or the barrier that tells of it, serves something else")


def _reads(stmt: Stmt) -> bool:
    return isinstance(stmt, Copy) and stmt.atom.proxy == "generic" and stmt.target.buffer.space == "register"


def _landed(kernel: Kernel, stores: Sequence[Copy]) -> tuple[Copy, ...]:
    """What comes to the block of the symbolic rank: of each sender what it stores into that block.

    The parts that go to different ranks must follow each other by one step, so that they have one form over the rank.
    """
    rank, made = rank_of(kernel), list[Copy]()
    targets = [store.target.peer for store in stores]
    for to in range(kernel.peers):
        if sum(each is algebra.const(to) for each in targets) * kernel.peers != len(stores):
            refuse(stores[0], "not every block of the cluster is stored into alike")
    groups = [[s for s in stores if s.target.peer is algebra.const(to)] for to in range(kernel.peers)]
    for alike in zip(*groups, strict=True):
        first = alike[0]
        at = tuple(_by_rank(first, [each.source.at[axis] for each in alike], rank) for axis in range(_axes(first)))
        for each in alike:
            same = (each.atom, each.by, each.edge, each.combine) == (first.atom, first.by, None, None)
            same = same and each.source.buffer is first.source.buffer and each.target.buffer is first.target.buffer
            same = same and each.source.where is algebra.TRUE
            if not same or each.target.at != first.target.at or each.source.shape != first.source.shape:
                refuse(
                    each, "what is stored into one block differs from what is stored into another by more than place"
                )
        for sender in range(kernel.peers):
            name: dict[Symbol, Index] = {rank: algebra.const(sender)}
            source = View(first.source.buffer, first.source.shape, at, peer=algebra.const(sender))
            place = tuple(substitute(each, name) for each in first.target.at)
            made.append(evolve(first, source=source, target=evolve(first.target, at=place, peer=None)))
    return tuple(made)


def _axes(store: Copy) -> int:
    return len(store.source.at)


def _by_rank(store: Copy, found: Sequence[Index], rank: Symbol) -> Index:
    """The one form over the rank that these expressions are, one a rank."""
    step = algebra.sub(found[1], found[0])
    made = algebra.add(found[0], algebra.mul(algebra.sym(rank), step))
    alone = not any(rank in symbols(each) for each in found)
    if not alone or any(substitute(made, {rank: algebra.const(to)}) is not each for to, each in enumerate(found)):
        refuse(store, "the parts that go to the blocks of the cluster do not follow one another by rank")
    return made


# -- what is owed --------------------------------------------------------------------------------------------------


def obligations(kernel: Kernel, found: Exchange) -> Iterator[Obligation]:
    """That arrivals come after what they tell of, that each block waits for those of all blocks, and that none ends
    before.
    """
    role, wait, first = found.role, found.wait, found.arrivals[0] if found.arrivals else found.wait
    met = found.meeting is not None and (found.meeting.barrier, found.meeting.how) == (role.name, "meet")
    met = met and found.meeting is not None and found.meeting.threads in (None, role.agent)
    yield _owed("I5", "all threads have stored before one of them tells the other blocks", first, met, _MEET)
    ranks = sorted(each.event.peer.value for each in found.arrivals if isinstance(each.event.peer, Const))
    every = ranks == list(range(kernel.peers)) and len(ranks) == len(found.arrivals) and _at_what_is_waited_for(found)
    yield _owed("I8", "each agent arrives once at the barrier of every block of the cluster", first, every, _ARRIVE)
    count = arrivals(kernel, wait.event.buffer)
    once = count == kernel.peers and all(each.count == 1 and _no_bytes(each) for each in found.arrivals)
    yield _owed("I8", "the barrier counts one arrival of each block of the cluster", wait, once, _ARRIVE)
    alone = algebra.sym(role.number) if role.agents > 1 else algebra.const(0)
    several = static(wait.event.buffer.shape[0]) == role.agents
    own = several and all(_index(role, each.event) is alone for each in (*found.arrivals, wait))
    yield _owed("I9", "agents of one number tell each other, each by a barrier of its own", wait, own, _OWN)
    yield _owed("I6", "the first phase is waited for", wait, wait.phase is algebra.const(0), "wait for phase 0")
    what = "a block ends after all others have stored into its memory"
    yield _owed("I15", what, wait, every and once and own, _ARRIVE)


def _at_what_is_waited_for(found: Exchange) -> bool:
    """Whether all arrivals are at the barrier of the wait, and at no other."""
    return all(each.event.buffer is found.wait.event.buffer for each in found.arrivals)


def _index(role: Role, event: View) -> Index:
    return substitute(event.at[0], {role.number: algebra.const(0)}) if role.agents == 1 else event.at[0]


def _no_bytes(stmt: Arrive) -> bool:
    return stmt.bytes is algebra.const(0)


def _owed(code: str, what: str, stmt: Stmt, good: bool, help_: str) -> Obligation:
    return Obligation(code, what, stmt, algebra.TRUE if good else algebra.FALSE, help=help_)


_MEET = "put a `sync()` of the agent between the stores and the arrivals"
_ARRIVE = "let one thread of each agent arrive once at the barrier of every rank: `come[wg].of(rank).arrive()`"
_OWN = "make a barrier an agent, `barrier(blocks, of=agents)`, and index it by the agent's number"


def apart(accesses: Accesses, found: Exchange) -> Iterator[Obligation]:
    """I5: what different blocks store into one, in any order, lies in parts of its memory of their own."""
    written = [accesses.of(Step(copy, algebra.TRUE, 0, 0, None))[-1] for copy in found.landed]
    for one, two in combinations(written, 2):
        if one.view.buffer is not two.view.buffer:
            continue
        met = overlap(one, two, {})
        alone = met is not None and (met.slots is algebra.FALSE or not met.cells.shared)
        what = f"blocks store into parts of `{one.view.buffer.name}` of their own"
        reason = "" if met is not None else "an address does not separate into slot and cell"
        goal = algebra.TRUE if alone else algebra.FALSE
        help_ = "give each block of the cluster a part of it: index it by `cluster.rank`"
        yield Obligation("I5", what, two.step.stmt, goal, (), one.step.stmt, reason, compared=one.shape[1], help=help_)
