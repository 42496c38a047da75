"""Determines the ring use of an operation, as its distance from the trip of the surrounding loop."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from argus.core import algebra
from argus.core.index import Const, Index
from argus.core.ir import Buffer, Stmt
from argus.core.proof.sync.roles.context import ProofContext, refuse
from argus.core.proof.sync.roles.events import Event, MmaEvent, ReadEvent, WaitEvent, slot_of
from argus.core.proof.sync.roles.parsed import ParsedRole, RingStorage, UseLoop


def ring_of_barrier(barrier: Buffer, rings: Sequence[RingStorage], stmt: Stmt) -> tuple[RingStorage, bool]:
    """The ring of a barrier, and whether it is the ring's empty barrier."""
    for ring in rings:
        if barrier in (ring.full, ring.empty):
            return ring, barrier is ring.empty
    refuse(stmt, f"`{barrier.name}` belongs to no ring")


def ring_reads(event: Event, rings: Sequence[RingStorage]) -> tuple[tuple[RingStorage, Index | None], ...]:
    """The rings that a product or a load reads, each with the use of its stage. Raises RefusedError.

    Other shared memory is the role's own, which is checked as that of a kernel without roles.
    """
    action = event.action
    if isinstance(action, ReadEvent):
        ring = next((each for each in rings if action.buffer in each.buffers), None)
        if ring is None and action.use is not None:
            refuse(action.stmt, "a read of a slot that belongs to no ring")
        return () if ring is None else ((ring, action.use),)
    assert isinstance(action, MmaEvent)
    found: dict[int, tuple[RingStorage, Index | None]] = {}
    for view in action.views:
        ring = next((each for each in rings if view.buffer in each.buffers), None)
        if ring is None:
            continue
        use = slot_of(action.stmt, view)
        if ring.number in found and found[ring.number][1] is not use:
            refuse(action.stmt, "a product whose operands are in slots of different uses")
        found[ring.number] = ring, use
    return tuple(found.values())


@frozen(eq=False)
class UseResolver:
    """Computes distances in one loop of a role, for rings with one use per trip."""

    role: ParsedRole
    run: UseLoop
    rings: tuple[RingStorage, ...]
    proof: ProofContext

    def offset(self, use: Index, stmt: Stmt, stages: int = 0) -> int:
        """use - (base + trip) as a constant; modulo the stages if given, as a stage index determines no more."""
        found = algebra.sub(use, algebra.add(self.role.base, self.run.trip))
        if isinstance(found, Const):
            return found.value
        found = algebra.mod(found, stages) if stages else found
        found = self.proof.simplify(found, (*self.role.facts, *self.run.facts))
        if not isinstance(found, Const):
            refuse(stmt, "a slot that is not at a fixed distance from the loop's trip")
        return found.value

    def ahead(self, use: Index | None, ring: RingStorage, stmt: Stmt, near: int) -> int:
        """The distance of a use known modulo the stages: the largest one that is at most `near`."""
        return near if use is None else near - (near - self.offset(use, stmt, ring.stages)) % ring.stages

    def named(self, waited: WaitEvent, ring: RingStorage, plus: int) -> int:
        """The distance of the use whose phase `use // stages + plus` is awaited."""
        if waited.use is None:
            return self.offset(algebra.sub(waited.phase, plus), waited.stmt)
        stages = ring.stages
        offset = self.offset(waited.use, waited.stmt, stages)
        facts = (*self.role.facts, *self.run.facts)
        for at in (self.use(0), self.proof.simplify(self.use(0), facts)):
            for rounds in range(-_ROUNDS, _ROUNDS + 1):
                ahead = offset + rounds * stages
                if phase_of(algebra.add(at, ahead), stages, plus) is waited.phase:
                    return ahead
        refuse(waited.stmt, "the awaited phase is not that of the slot's use")

    def use(self, ahead: int) -> Index:
        """The use at that distance from the trip, counted over all tiles."""
        return algebra.add(self.role.base, self.run.trip, ahead)


_ROUNDS = 3


def phase_of(use: Index, stages: int, plus: int) -> Index:
    return algebra.add(algebra.floordiv(use, stages), plus)


def is_use(proof: ProofContext, role: ParsedRole, found: Index | None, wanted: Index, stages: int) -> bool:
    """Whether an operation outside the loops is on the stage of that use."""
    if found is None or algebra.mod(found, stages) is algebra.mod(wanted, stages):
        return True
    return proof.equal(role.facts, algebra.mod(found, stages), algebra.mod(wanted, stages))


def is_phase(proof: ProofContext, role: ParsedRole, waited: WaitEvent, wanted: Index, stages: int, plus: int) -> bool:
    """Whether a wait outside the loops is for the phase of that use."""
    if waited.phase is phase_of(wanted, stages, plus):
        return True
    return proof.equal(role.facts, waited.phase, phase_of(wanted, stages, plus))
