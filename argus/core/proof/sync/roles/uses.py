"""Which use of a ring an operation is of: its distance from the trip of the loop that it stands in."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from argus.core import algebra
from argus.core.index import Const, Index
from argus.core.ir import Buffer, Stmt
from argus.core.proof.sync.roles.context import Ledger, refuse
from argus.core.proof.sync.roles.events import Event, Looked, Multiplied, Waited, slot_of
from argus.core.proof.sync.roles.parsed import Parsed, Run, Storage


def of_barrier(barrier: Buffer, rings: Sequence[Storage], stmt: Stmt) -> tuple[Storage, bool]:
    """The ring that a barrier belongs to, and whether it is the one of empty slots."""
    for ring in rings:
        if barrier in (ring.full, ring.empty):
            return ring, barrier is ring.empty
    refuse(stmt, f"`{barrier.name}` belongs to no ring")


def reads_of(event: Event, rings: Sequence[Storage]) -> tuple[tuple[Storage, Index | None], ...]:
    """The rings that a product or a load reads, each with the use of its slot. Raises RefusedError."""
    happening = event.happening
    if isinstance(happening, Looked):
        ring = next((each for each in rings if happening.buffer in each.buffers), None)
        if ring is None and happening.use is not None:
            refuse(happening.stmt, "operands in different rings, or in slots of none")
        return () if ring is None else ((ring, happening.use),)
    assert isinstance(happening, Multiplied)
    found: dict[int, tuple[Storage, Index | None]] = {}
    for view in happening.views:
        ring = next((each for each in rings if view.buffer in each.buffers), None)
        if ring is None and not isinstance(view.at[0], Const):
            refuse(happening.stmt, "operands in different rings, or in slots of none")
        if ring is None:
            continue
        use = slot_of(happening.stmt, view)
        if ring.number in found and found[ring.number][1] is not use:
            refuse(happening.stmt, "a product whose operands lie in slots of different uses")
        found[ring.number] = ring, use
    if not found:
        refuse(happening.stmt, "a product that reads no slot of a ring")
    return tuple(found.values())


@frozen(eq=False)
class Reader:
    """Finds distances in one loop of a role, of rings with a use a trip."""

    role: Parsed
    run: Run
    rings: tuple[Storage, ...]
    ledger: Ledger

    def offset(self, use: Index, stmt: Stmt, stages: int = 0) -> int:
        """use - (base + trip), a number; modulo the stages if they are given, as a slot tells no more."""
        found = algebra.sub(use, algebra.add(self.role.base, self.run.trip))
        if isinstance(found, Const):
            return found.value
        found = algebra.mod(found, stages) if stages else found
        found = self.ledger.settled(found, (*self.role.facts, *self.run.facts))
        if not isinstance(found, Const):
            refuse(stmt, "a slot that is not at a fixed distance of the loop's trip")
        return found.value

    def ahead(self, use: Index | None, ring: Storage, stmt: Stmt, near: int) -> int:
        """The distance of a use known modulo the stages: the one not beyond `near` and less than a round before it."""
        return near if use is None else near - (near - self.offset(use, stmt, ring.stages)) % ring.stages

    def named(self, waited: Waited, ring: Storage, plus: int) -> int:
        """The distance of the use whose phase is waited for: phase `use // stages + plus`."""
        if waited.use is None:
            return self.offset(algebra.sub(waited.phase, plus), waited.stmt)
        stages = ring.stages
        offset = self.offset(waited.use, waited.stmt, stages)
        facts = (*self.role.facts, *self.run.facts)
        for at in (self.use(0), self.ledger.settled(self.use(0), facts)):
            for rounds in range(-_ROUNDS, _ROUNDS + 1):
                ahead = offset + rounds * stages
                if phase_of(algebra.add(at, ahead), stages, plus) is waited.phase:
                    return ahead
        refuse(waited.stmt, "the phase waited for is not that of the slot's use")

    def use(self, ahead: int) -> Index:
        """Of all tiles, the use at that distance of the trip."""
        return algebra.add(self.role.base, self.run.trip, ahead)


_ROUNDS = 3


def phase_of(use: Index, stages: int, plus: int) -> Index:
    return algebra.add(algebra.floordiv(use, stages), plus)


def is_use(ledger: Ledger, role: Parsed, found: Index | None, wanted: Index, stages: int) -> bool:
    """Whether an operation beside the loops is of the slot of that use."""
    if found is None or algebra.mod(found, stages) is algebra.mod(wanted, stages):
        return True
    return ledger.equal(role.facts, algebra.mod(found, stages), algebra.mod(wanted, stages))


def is_phase(ledger: Ledger, role: Parsed, waited: Waited, wanted: Index, stages: int, plus: int) -> bool:
    """Whether a wait beside the loops is for the phase of that use."""
    if waited.phase is phase_of(wanted, stages, plus):
        return True
    return ledger.equal(role.facts, waited.phase, phase_of(wanted, stages, plus))
