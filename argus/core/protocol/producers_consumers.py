"""Finds the producer and the consumers of each ring, where they are regular enough for a periodic event graph.

Part of the event-graph semantics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from attrs import evolve, frozen

from argus.core.protocol.events import event_name
from argus.core.protocol.outcome import Unknown
from argus.core.protocol.ring import (
    ArriveFull,
    Copy,
    NamedBarrierOp,
    Op,
    Protocol,
    Read,
    Release,
    Ring,
    RingOp,
    Role,
    WaitEmpty,
    WaitFull,
    WaitGroups,
)

OpT = TypeVar("OpT", bound=RingOp)


@frozen
class CopyEvents:
    """The events of a copy. role: the ring's producer, or that of another ring that also copies into this one."""

    role: Role
    op: Copy
    issued: str
    completed: str


@frozen
class ReadEvents:
    """The events of a read. over: from this event on the read has certainly ended."""

    op: Read
    read: str
    over: str


@frozen
class Consumer:
    """A role that consumes every use of the ring, or the representative of several that divide its tiles."""

    role: Role
    wait: WaitFull | None
    read: ReadEvents | None
    release: Release | None


@frozen
class RingParties:
    """One ring and its roles. full, empty: the completion events of its barriers' phases."""

    number: int
    ring: Ring
    producer: Role
    wait: WaitEmpty | None
    arrive: ArriveFull | None
    copies: tuple[CopyEvents, ...]
    consumers: tuple[Consumer, ...]

    @property
    def full(self) -> str:
        return f"full of ring {self.number}"

    @property
    def empty(self) -> str:
        return f"empty of ring {self.number}"

    @property
    def stages(self) -> int:
        return self.ring.stages

    @property
    def reads(self) -> tuple[ReadEvents, ...]:
        return tuple(consumer.read for consumer in self.consumers if consumer.read is not None)


def loses_uses(role: Role) -> bool:
    """Whether the role's cursors do not count the uses of other agents' tiles."""
    return role.share[1] > 1 and not role.skips


def for_single_tile(protocol: Protocol) -> Protocol:
    """The protocol with restarting cursors replaced by running ones if there is one tile, where they are equal."""
    if protocol.persistent:
        return protocol
    return evolve(
        protocol, roles=tuple(evolve(r, body=tuple(_without_restarts(op) for op in r.body)) for r in protocol.roles)
    )


def _without_restarts(op: Op) -> Op:
    if isinstance(op, WaitGroups | NamedBarrierOp):
        return op
    op = evolve(op, slot=evolve(op.slot, restarts=False))
    match op:
        case WaitEmpty() | WaitFull():
            return evolve(op, phase=evolve(op.phase, cursor=evolve(op.phase.cursor, restarts=False)))
        case Copy():
            return evolve(op, signal=evolve(op.signal, restarts=False))
        case _:
            return op


def representatives(protocol: Protocol) -> tuple[Role, ...] | Unknown:
    """The roles, with one for each set of agents that divide the tiles among them."""
    shared = [role for role in protocol.roles if role.share[1] > 1]
    alone = tuple(role for role in protocol.roles if role.share[1] == 1)
    if any(role.turn for role in alone):
        return Unknown("a role takes turns, but takes all tiles itself")
    if not shared:
        return alone
    if not protocol.persistent:
        return Unknown("roles divide tiles among them, but there is only one tile")
    first = shared[0]
    same = all((r.body, r.trips, r.turn, r.skips) == (first.body, first.trips, first.turn, first.skips) for r in shared)
    if not same or [role.share for role in shared] != [(i, len(shared)) for i in range(len(shared))]:
        return Unknown("roles that divide the tiles among them differ, or skip some")
    if any(role.seeds or any(isinstance(op, NamedBarrierOp) for op in role.body) for role in shared):
        return Unknown("roles that divide the tiles among them use named barriers")
    if any(isinstance(op, WaitEmpty | ArriveFull | Copy) for op in first.body):
        return Unknown("producers divide the tiles among them")
    return (*alone, first)


def ring_parties(protocol: Protocol) -> tuple[RingParties, ...] | Unknown:
    """The roles of each ring, or why the protocol is out of scope."""
    roles = representatives(protocol)
    if isinstance(roles, Unknown):
        return roles
    found: list[RingParties] = []
    for number, ring in enumerate(protocol.rings):
        if ring.per_tile:
            continue
        party = _party(roles, number, ring)
        if isinstance(party, Unknown):
            return party
        found.append(party)
    return tuple(found)


def _party(roles: Sequence[Role], number: int, ring: Ring) -> RingParties | Unknown:
    producers = [role for role in roles if _ops(role, number, WaitEmpty) or _ops(role, number, Copy)]
    producers = producers or [role for role in roles if _ops(role, number, ArriveFull)]
    remote_copies = [role for role in producers if _is_remote_producer(role, number)] if len(producers) > 1 else []
    producers = [role for role in producers if role not in remote_copies]
    if len(producers) != 1:
        return Unknown(f"ring {number} is filled by {len(producers)} roles")
    producer = producers[0]
    others = [role for role in roles if role is not producer and role not in remote_copies]
    consumers = [_drainer(role, number) for role in others if _uses_ring(role, number)]
    sent = [(role, copy) for role in (producer, *remote_copies) for copy in _ops(role, number, Copy)]
    copies = [copy for _, copy in sent]
    waits, arrives = _ops(producer, number, WaitEmpty), _ops(producer, number, ArriveFull)
    single = len(waits) <= 1 and len(arrives) <= 1 and len({copy.part for copy in copies}) == len(copies)
    complete = tuple(each for each in consumers if each is not None)
    if ring.parts and all(each.read is None for each in complete):
        return Unknown(f"no role reads ring {number}")
    if not single or len(complete) != len(consumers) or any(_consumes(producer, number)):
        return Unknown(f"a role repeats an operation on ring {number}, or both fills and consumes it")
    return RingParties(
        number,
        ring,
        producer,
        waits[0] if waits else None,
        arrives[0] if arrives else None,
        tuple(_copied(role, copy) for role, copy in sent),
        complete,
    )


def _copied(role: Role, copy: Copy) -> CopyEvents:
    name = event_name(role, copy)
    return CopyEvents(role, copy, name, f"{name} completes")


def _is_remote_producer(role: Role, number: int) -> bool:
    """Whether the role fills another ring, and only copies into this one."""
    own = any(isinstance(op, WaitEmpty) and op.ring != number for op in role.body)
    return own and all(isinstance(op, WaitGroups | NamedBarrierOp | Copy) or op.ring != number for op in role.body)


def _drainer(role: Role, number: int) -> Consumer | None:
    waits, reads, releases = _ops(role, number, WaitFull), _ops(role, number, Read), _ops(role, number, Release)
    if max(len(waits), len(reads), len(releases)) > 1 or _ops(role, number, ArriveFull):
        return None
    read = ReadEvents(reads[0], event_name(role, reads[0]), f"{event_name(role, reads[0])} is over") if reads else None
    return Consumer(role, waits[0] if waits else None, read, releases[0] if releases else None)


def _consumes(role: Role, number: int) -> list[bool]:
    return [bool(_ops(role, number, kind)) for kind in (WaitFull, Read, Release)]


def _uses_ring(role: Role, number: int) -> bool:
    return any(not isinstance(op, WaitGroups | NamedBarrierOp) and op.ring == number for op in role.body)


def _ops(role: Role, number: int, kind: type[OpT]) -> list[OpT]:
    return [op for op in role.body if isinstance(op, kind) and op.ring == number]
