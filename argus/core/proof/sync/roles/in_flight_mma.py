"""Products in flight (I10): the `wgmma` groups that read a stage are complete when the stage is released.

Groups complete in issue order, and a wait leaves only the youngest in flight. The analysis computes the set of possible
queues at each statement of a tile, with each group as the uses that it reads, to a fixpoint over loops. Source:
proof-methods 3.2 (release), `reference/ir.md` 7, T16.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import Factory, define

from argus.core import algebra
from argus.core.index import Cond, Const, Index, Symbol
from argus.core.ir import Stmt, trips
from argus.core.proof.obligation import Obligation
from argus.core.proof.sync.roles.context import ProofContext, refuse
from argus.core.proof.sync.roles.events import ArriveEvent, Event, MmaEvent, MmaWaitEvent
from argus.core.proof.sync.roles.parsed import ParsedRole, RingStorage, UseLoop
from argus.core.proof.sync.roles.uses import ring_reads
from argus.core.walk import substitute

Group = tuple[tuple[int, Index | None], ...]
"""The rings that a product reads, each with the use, modulo its stages; None if there is one stage."""
Queue = tuple[Group, ...]
"""Oldest first."""
_MOST_QUEUES, _LONGEST = 32, 16


def tracks_products(role: ParsedRole, rings: Sequence[RingStorage]) -> bool:
    """Whether this analysis covers the role's products; the protocol then treats them as complete at the release.

    Products of consecutive uses in a single loop are left to the protocol, which counts groups by uses.
    """
    outside = any(isinstance(event.action, MmaEvent) for event in (*role.prologue, *role.epilogue))
    several = any(isinstance(e.action, MmaEvent) and len(ring_reads(e, rings)) != 1 for e in role.loop_events)
    return (
        outside
        or several
        or len(role.use_loops) > 1
        or _reads_across_wait(role, rings)
        or _reads_tile_ring(role, rings)
    )


def _reads_tile_ring(role: ParsedRole, rings: Sequence[RingStorage]) -> bool:
    """Whether products read a stage that is held for a whole tile, which no use of a trip releases."""
    products = (event for event in role.loop_events if isinstance(event.action, MmaEvent))
    return any(ring.per_tile for event in products for ring, _ in ring_reads(event, rings))


def _reads_across_wait(role: ParsedRole, rings: Sequence[RingStorage]) -> bool:
    """Whether a stage is read by several products with a wait between them."""
    waited: dict[int, bool] = {}
    for event in role.loop_events:
        match event.action:
            case MmaEvent():
                for ring, _ in ring_reads(event, rings):
                    if waited.get(ring.number, False):
                        return True
                    waited[ring.number] = False
            case MmaWaitEvent():
                waited = dict.fromkeys(waited, True)
            case ArriveEvent(barrier=barrier):
                back = {ring.number for ring in rings if ring.empty is barrier}
                waited = {number: known for number, known in waited.items() if number not in back}
            case _:
                pass
    return False


def in_flight_obligations(role: ParsedRole, rings: Sequence[RingStorage], proof: ProofContext) -> Iterator[Obligation]:
    """I10 of each release. Raises RefusedError where the queue of products is outside the model."""
    if not tracks_products(role, rings):
        return
    walk = _InFlightAnalysis(role, tuple(rings), proof)
    queues = walk.through(role.prologue, {()}, role.facts)
    for run in role.use_loops:
        queues = walk.repeated(run, queues)
    left = walk.through(role.epilogue, queues, role.facts)
    if any(left):
        refuse(role.loop, "products may be in flight when a tile ends")
    for stmt, good in walk.found.items():
        yield Obligation(
            "I10",
            "products that read a slot are complete when it is released",
            stmt,
            algebra.TRUE if good else algebra.FALSE,
            help="wait for the product, `wgmma.wait(...)`, before the slot is released",
        )


@define(eq=False)
class _InFlightAnalysis:
    role: ParsedRole
    rings: tuple[RingStorage, ...]
    proof: ProofContext
    found: dict[Stmt, bool] = Factory(dict[Stmt, bool])

    def repeated(self, run: UseLoop, entry: set[Queue]) -> set[Queue]:
        """The possible queues after the loop, for any trip count."""
        symbol, step = run.loop.symbol, run.loop.step
        earlier: dict[Symbol, Index] = {symbol: algebra.sub(algebra.sym(symbol), step)}
        heads, new = set(entry), set(entry)
        while new:
            after = self.through(run.events, new, (*self.role.facts, *run.facts))
            new = {_renamed(queue, earlier) for queue in after} - heads
            heads |= new
            self._check_size(heads, run.loop)
        end = algebra.add(run.loop.start, algebra.mul(trips(run.loop), step))
        return {_renamed(queue, {symbol: end}) for queue in heads}

    def through(self, events: Sequence[Event], queues: set[Queue], facts: tuple[Cond, ...]) -> set[Queue]:
        for event in events:
            match event.action:
                case MmaEvent(stmt=stmt):
                    if event.guard is not algebra.TRUE or stmt.grouped:
                        refuse(
                            stmt, "a product under a condition, or one of a group, among products that need tracking"
                        )
                    group = tuple((ring.number, use) for ring, use in ring_reads(event, self.rings))
                    queues = {(*queue, group) for queue in queues}
                    self._check_size(queues, stmt)
                case MmaWaitEvent(stmt=wait) if event.guard is algebra.TRUE:
                    queues = {queue[max(0, len(queue) - wait.pending) :] for queue in queues}
                case ArriveEvent(barrier=barrier, use=use):
                    ring = next((each for each in self.rings if each.empty is barrier), None)
                    if ring is not None:
                        here = (*facts, event.guard)
                        good = all(self._is_complete(queue, ring, use, here) for queue in queues)
                        self.found[event.stmt] = self.found.get(event.stmt, True) and good
                case _:
                    pass
        return queues

    @staticmethod
    def _check_size(queues: set[Queue], stmt: Stmt) -> None:
        if len(queues) > _MOST_QUEUES or any(len(queue) > _LONGEST for queue in queues):
            refuse(stmt, "more products may be in flight than the analysis tracks")

    def _is_complete(self, queue: Queue, ring: RingStorage, use: Index | None, facts: tuple[Cond, ...]) -> bool:
        pending = (read for group in queue for number, read in group if number == ring.number)
        return all(self._different_stage(read, use, ring.stages, facts) for read in pending)

    def _different_stage(self, one: Index | None, two: Index | None, stages: int, facts: tuple[Cond, ...]) -> bool:
        """Whether two uses, known modulo the stages, are certainly in different stages."""
        if one is None or two is None:
            return False
        distance = algebra.mod(algebra.sub(one, two), stages)
        if isinstance(distance, Const):
            return distance.value != 0
        return self.proof.holds(facts, algebra.negate(algebra.eq(distance, 0)))


def _renamed(queue: Queue, names: dict[Symbol, Index]) -> Queue:
    return tuple(
        tuple((ring, None if use is None else substitute(use, names)) for ring, use in group) for group in queue
    )
