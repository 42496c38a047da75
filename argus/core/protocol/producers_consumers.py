"""Who fills and who drains each ring, where that is regular enough for a periodic graph.

Part of the event graph's meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from attrs import evolve, frozen

from argus.core.protocol.events import event
from argus.core.protocol.outcome import Unknown
from argus.core.protocol.ring import (
    ArriveFull,
    Copy,
    Meet,
    OnRing,
    Op,
    Protocol,
    Read,
    Release,
    Ring,
    Role,
    WaitEmpty,
    WaitFull,
    WaitGroups,
)

OpT = TypeVar("OpT", bound=OnRing)


@frozen
class Copied:
    """role: the ring's filler, or another's that copies into this ring too."""

    role: Role
    op: Copy
    issued: str
    landed: str


@frozen
class Looked:
    """over: the event from which on the read is known to be over."""

    op: Read
    read: str
    over: str


@frozen
class Drainer:
    """A role that drains every use of the ring, or several that take its tiles in turn."""

    role: Role
    wait: WaitFull | None
    look: Looked | None
    release: Release | None


@frozen
class Party:
    """One ring and its roles. full, empty: the events that a phase of the barriers is complete."""

    number: int
    ring: Ring
    filler: Role
    wait: WaitEmpty | None
    arrive: ArriveFull | None
    copies: tuple[Copied, ...]
    drainers: tuple[Drainer, ...]

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
    def looks(self) -> tuple[Looked, ...]:
        return tuple(drainer.look for drainer in self.drainers if drainer.look is not None)


def loses(role: Role) -> bool:
    """Whether the role does not count the uses of the tiles that it leaves to others."""
    return role.share[1] > 1 and not role.skips


def of_one_tile(protocol: Protocol) -> Protocol:
    """Where there is one tile, a cursor that restarts at each is one that is carried."""
    if protocol.persistent:
        return protocol
    return evolve(protocol, roles=tuple(evolve(r, body=tuple(_carried(op) for op in r.body)) for r in protocol.roles))


def _carried(op: Op) -> Op:
    if isinstance(op, WaitGroups | Meet):
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
    """The roles, one for each set that shares out the tiles."""
    shared = [role for role in protocol.roles if role.share[1] > 1]
    alone = tuple(role for role in protocol.roles if role.share[1] == 1)
    if any(role.turn for role in alone):
        return Unknown("a role takes turns, but shares its tiles with nobody")
    if not shared:
        return alone
    if not protocol.persistent:
        return Unknown("tiles are shared out, and there is only one")
    first = shared[0]
    same = all((r.body, r.trips, r.turn, r.skips) == (first.body, first.trips, first.turn, first.skips) for r in shared)
    if not same or [role.share for role in shared] != [(i, len(shared)) for i in range(len(shared))]:
        return Unknown("roles that share out the tiles differ, or leave some out")
    if any(role.seeds or any(isinstance(op, Meet) for op in role.body) for role in shared):
        return Unknown("roles that share out the tiles meet at named barriers")
    if any(isinstance(op, WaitEmpty | ArriveFull | Copy) for op in first.body):
        return Unknown("the filling of a ring is shared out by tiles")
    return (*alone, first)


def parties(protocol: Protocol) -> tuple[Party, ...] | Unknown:
    """Each ring's, or why the protocol is out of scope."""
    roles = representatives(protocol)
    if isinstance(roles, Unknown):
        return roles
    found: list[Party] = []
    for number, ring in enumerate(protocol.rings):
        if ring.once:
            continue
        party = _party(roles, number, ring)
        if isinstance(party, Unknown):
            return party
        found.append(party)
    return tuple(found)


def _party(roles: Sequence[Role], number: int, ring: Ring) -> Party | Unknown:
    fillers = [role for role in roles if _ops(role, number, WaitEmpty) or _ops(role, number, Copy)]
    fillers = fillers or [role for role in roles if _ops(role, number, ArriveFull)]
    guests = [role for role in fillers if _is_guest(role, number)] if len(fillers) > 1 else []
    fillers = [role for role in fillers if role not in guests]
    if len(fillers) != 1:
        return Unknown(f"ring {number} is filled by {len(fillers)} roles")
    filler = fillers[0]
    others = [role for role in roles if role is not filler and role not in guests]
    drainers = [_drainer(role, number) for role in others if _touches(role, number)]
    sent = [(role, copy) for role in (filler, *guests) for copy in _ops(role, number, Copy)]
    copies = [copy for _, copy in sent]
    waits, arrives = _ops(filler, number, WaitEmpty), _ops(filler, number, ArriveFull)
    single = len(waits) <= 1 and len(arrives) <= 1 and len({copy.part for copy in copies}) == len(copies)
    drains = tuple(each for each in drainers if each is not None)
    if ring.parts and all(each.look is None for each in drains):
        return Unknown(f"nobody reads ring {number}")
    if not single or len(drains) != len(drainers) or any(_drains(filler, number)):
        return Unknown(f"a role repeats an operation on ring {number}, or both fills and drains it")
    return Party(
        number,
        ring,
        filler,
        waits[0] if waits else None,
        arrives[0] if arrives else None,
        tuple(_copied(role, copy) for role, copy in sent),
        drains,
    )


def _copied(role: Role, copy: Copy) -> Copied:
    name = event(role, copy)
    return Copied(role, copy, name, f"{name} lands")


def _is_guest(role: Role, number: int) -> bool:
    """Whether the role fills another ring, and of this one does no more than copy into it."""
    own = any(isinstance(op, WaitEmpty) and op.ring != number for op in role.body)
    return own and all(isinstance(op, WaitGroups | Meet | Copy) or op.ring != number for op in role.body)


def _drainer(role: Role, number: int) -> Drainer | None:
    waits, reads, releases = _ops(role, number, WaitFull), _ops(role, number, Read), _ops(role, number, Release)
    if max(len(waits), len(reads), len(releases)) > 1 or _ops(role, number, ArriveFull):
        return None
    look = Looked(reads[0], event(role, reads[0]), f"{event(role, reads[0])} is over") if reads else None
    return Drainer(role, waits[0] if waits else None, look, releases[0] if releases else None)


def _drains(role: Role, number: int) -> list[bool]:
    return [bool(_ops(role, number, kind)) for kind in (WaitFull, Read, Release)]


def _touches(role: Role, number: int) -> bool:
    return any(not isinstance(op, WaitGroups | Meet) and op.ring == number for op in role.body)


def _ops(role: Role, number: int, kind: type[OpT]) -> list[OpT]:
    return [op for op in role.body if isinstance(op, kind) and op.ring == number]
