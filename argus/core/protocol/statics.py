"""Checks that need no order of events: byte counts, arrival counts, trip counts and slots.

Part of the event-graph semantics.
"""

from __future__ import annotations

from argus.core.protocol.offsets import slot_offset
from argus.core.protocol.outcome import Fails
from argus.core.protocol.producers_consumers import RingParties, loses_uses
from argus.core.protocol.ring import Cursor, NamedBarrierOp, Protocol, Role


def static_failure(protocol: Protocol, found: tuple[RingParties, ...]) -> Fails | None:
    """The first failure that needs no distances."""
    faults = [check(party) for party in found for check in (_bytes, _arrivals, _slots)]
    faults.extend((_trips(protocol), _meetings(protocol)))
    return next((fault for fault in faults if fault is not None), None)


def _bytes(party: RingParties) -> Fails | None:
    announced = party.arrive.size if party.arrive is not None else 0
    copied = sum(copy.op.size for copy in party.copies)
    if announced != copied:
        return Fails("bytes", f"{party.producer.name} announces {announced} bytes per use, its copies have {copied}")
    missing = set(range(len(party.ring.parts))) - {copy.op.part for copy in party.copies}
    if missing and party.reads:
        return Fails("RAW", f"part {min(missing)} of ring {party.number} is read, and no copy writes it")
    return None


def _arrivals(party: RingParties) -> Fails | None:
    full = party.arrive.count if party.arrive is not None else 0
    if full != party.ring.full:
        return Fails("arrivals", f"{full} arrivals per use at a full barrier with a count of {party.ring.full}")
    empty = sum(consumer.release.count for consumer in party.consumers if consumer.release is not None)
    if empty != party.ring.empty:
        return Fails("arrivals", f"{empty} arrivals per use at an empty barrier with a count of {party.ring.empty}")
    return None


def _trips(protocol: Protocol) -> Fails | None:
    trips = {role.trips: role.name for role in reversed(protocol.roles)}
    if len(trips) > 1:
        (few, one), (many, other) = min(trips.items()), max(trips.items())
        return Fails("sequence", f"{one} runs {many - few} trips per tile fewer than {other}")
    return None


def _slots(party: RingParties) -> Fails | None:
    stages = party.stages
    cursors: list[tuple[str, Role, Cursor]] = []
    cursors.extend((copy.issued, copy.role, copy.op.slot) for copy in party.copies)
    cursors.extend(
        (consumer.read.read, consumer.role, consumer.read.op.slot)
        for consumer in party.consumers
        if consumer.read is not None
    )
    offsets = {name: slot_offset(cursor, stages, loses_uses=loses_uses(role)) for name, role, cursor in cursors}
    for name, offset in offsets.items():
        if offset is None:
            return Fails("cursor", f"the slot of {name} depends on where the tile begins")
    if len(set(offsets.values())) > 1:
        return Fails("slot", "one use is in different slots: " + ", ".join(f"{n}: u + {o}" for n, o in offsets.items()))
    return None


def _meetings(protocol: Protocol) -> Fails | None:
    for number, participants in enumerate(protocol.named_barriers):
        roles = [
            r for r in protocol.roles if any(isinstance(op, NamedBarrierOp) and op.barrier == number for op in r.body)
        ]
        if len(roles) != participants:
            return Fails(
                "meeting", f"{len(roles)} roles arrive at named barrier {number}, which has {participants} participants"
            )
    return None
