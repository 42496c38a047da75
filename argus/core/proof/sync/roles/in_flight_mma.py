"""Products in flight, followed along one tile of a role: those that read a slot are over when it is given back.

Groups end in the order in which they set out, and a wait leaves the youngest. All queues that a tile may have at a
place are kept, each group as the uses that it reads; a loop is repeated until none is new. Source: proof-methods 3.2
(release), `reference/ir.md` 7, T16.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import Factory, define

from argus.core import algebra
from argus.core.index import Cond, Const, Index, Symbol
from argus.core.ir import Stmt, trips
from argus.core.proof.obligation import Obligation
from argus.core.proof.sync.roles.context import Ledger, refuse
from argus.core.proof.sync.roles.events import Arrived, Drained, Event, Multiplied
from argus.core.proof.sync.roles.parsed import Parsed, Run, Storage
from argus.core.proof.sync.roles.uses import reads_of
from argus.core.walk import substitute

Group = tuple[tuple[int, Index | None], ...]
"""The rings that a product reads, each with the use, modulo its slots; None where there is one slot."""
Queue = tuple[Group, ...]
"""Oldest first."""
_MOST_QUEUES, _LONGEST = 32, 16


def settled(role: Parsed, rings: Sequence[Storage]) -> bool:
    """Whether the role's products are followed here, and the protocol reads them as over where they are given back.

    Products of one use after another, in one loop alone, are left to the protocol, which counts groups by uses.
    """
    beside = any(isinstance(event.happening, Multiplied) for event in (*role.ahead, *role.behind))
    several = any(isinstance(e.happening, Multiplied) and len(reads_of(e, rings)) > 1 for e in role.during)
    return beside or several or len(role.runs) > 1 or _apart(role, rings) or _of_held(role, rings)


def _of_held(role: Parsed, rings: Sequence[Storage]) -> bool:
    """Whether products read a slot that is held over a tile, of which no use of a trip tells when they are over."""
    products = (event for event in role.during if isinstance(event.happening, Multiplied))
    return any(ring.once for event in products for ring, _ in reads_of(event, rings))


def _apart(role: Parsed, rings: Sequence[Storage]) -> bool:
    """Whether a slot is read by several products with a wait between them, each of which counts groups by itself."""
    waited: dict[int, bool] = {}
    for event in role.during:
        match event.happening:
            case Multiplied():
                for ring, _ in reads_of(event, rings):
                    if waited.get(ring.number, False):
                        return True
                    waited[ring.number] = False
            case Drained():
                waited = dict.fromkeys(waited, True)
            case Arrived(barrier=barrier):
                back = {ring.number for ring in rings if ring.empty is barrier}
                waited = {number: known for number, known in waited.items() if number not in back}
            case _:
                pass
    return False


def flights(role: Parsed, rings: Sequence[Storage], ledger: Ledger) -> Iterator[Obligation]:
    """I10 of each release. Raises RefusedError where products have no order that can be followed."""
    if not settled(role, rings):
        return
    walk = _Flight(role, tuple(rings), ledger)
    queues = walk.through(role.ahead, {()}, role.facts)
    for run in role.runs:
        queues = walk.repeated(run, queues)
    left = walk.through(role.behind, queues, role.facts)
    if any(left):
        refuse(role.loop, "products may be under way when a tile ends")
    for stmt, good in walk.found.items():
        yield Obligation(
            "I10",
            "products that read a slot are over when it is given back",
            stmt,
            algebra.TRUE if good else algebra.FALSE,
            help="wait for the product, `wgmma.wait(...)`, before the slot is released",
        )


@define(eq=False)
class _Flight:
    role: Parsed
    rings: tuple[Storage, ...]
    ledger: Ledger
    found: dict[Stmt, bool] = Factory(dict[Stmt, bool])

    def repeated(self, run: Run, entry: set[Queue]) -> set[Queue]:
        """After the loop, however often it runs."""
        symbol, step = run.loop.symbol, run.loop.step
        earlier: dict[Symbol, Index] = {symbol: algebra.sub(algebra.sym(symbol), step)}
        heads, new = set(entry), set(entry)
        while new:
            after = self.through(run.events, new, (*self.role.facts, *run.facts))
            new = {_renamed(queue, earlier) for queue in after} - heads
            heads |= new
            self._judge_number(heads, run.loop)
        end = algebra.add(run.loop.start, algebra.mul(trips(run.loop), step))
        return {_renamed(queue, {symbol: end}) for queue in heads}

    def through(self, events: Sequence[Event], queues: set[Queue], facts: tuple[Cond, ...]) -> set[Queue]:
        for event in events:
            match event.happening:
                case Multiplied(stmt=stmt):
                    if event.guard is not algebra.TRUE or stmt.grouped:
                        refuse(stmt, "a product under a condition, or one of a group, where products are followed")
                    group = tuple((ring.number, use) for ring, use in reads_of(event, self.rings))
                    queues = {(*queue, group) for queue in queues}
                    self._judge_number(queues, stmt)
                case Drained(stmt=wait) if event.guard is algebra.TRUE:
                    queues = {queue[max(0, len(queue) - wait.pending) :] for queue in queues}
                case Arrived(barrier=barrier, use=use):
                    ring = next((each for each in self.rings if each.empty is barrier), None)
                    if ring is not None:
                        here = (*facts, event.guard)
                        good = all(self._over(queue, ring, use, here) for queue in queues)
                        self.found[event.stmt] = self.found.get(event.stmt, True) and good
                case _:
                    pass
        return queues

    @staticmethod
    def _judge_number(queues: set[Queue], stmt: Stmt) -> None:
        if len(queues) > _MOST_QUEUES or any(len(queue) > _LONGEST for queue in queues):
            refuse(stmt, "more products may be under way than are followed")

    def _over(self, queue: Queue, ring: Storage, use: Index | None, facts: tuple[Cond, ...]) -> bool:
        pending = (read for group in queue for number, read in group if number == ring.number)
        return all(self._elsewhere(read, use, ring.stages, facts) for read in pending)

    def _elsewhere(self, one: Index | None, two: Index | None, stages: int, facts: tuple[Cond, ...]) -> bool:
        """Whether two uses, known modulo the stages, are certainly not in one slot."""
        if one is None or two is None:
            return False
        apart = algebra.mod(algebra.sub(one, two), stages)
        if isinstance(apart, Const):
            return apart.value != 0
        return self.ledger.holds(facts, algebra.negate(algebra.eq(apart, 0)))


def _renamed(queue: Queue, names: dict[Symbol, Index]) -> Queue:
    return tuple(
        tuple((ring, None if use is None else substitute(use, names)) for ring, use in group) for group in queue
    )
