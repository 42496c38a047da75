"""The operations that a ring's roles owe, found by kind; what is missing is a failure, what is repeated out of scope.

Part of the obligations' meaning.
"""

from __future__ import annotations

from typing import TypeVar

from attrs import evolve, frozen

from argus.core.protocol.outcome import Fails, Unknown
from argus.core.protocol.ring import (
    ArriveFull,
    Copy,
    Meet,
    OnRing,
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
class Agent:
    """A role that drains the ring. draining: its steps on one slot, in order, as the lemma spells them."""

    role: Role
    wait: WaitFull
    read: Read | None
    release: Release
    draining: tuple[tuple[str, int], ...]


@frozen
class Guest:
    """A filler of another ring that copies into this one: what it waits for there, and the copy."""

    role: Role
    wait: WaitEmpty
    copy: Copy


@frozen
class Giver:
    """A drainer of another ring that gives back this one's slots too."""

    role: Role
    release: Release


@frozen
class Duties:
    """One ring. agents: those that drain every use; of roles that share out the tiles, the first stands for all.

    guests, givers: of rings that fill each other.
    """

    number: int
    ring: Ring
    role: Role
    wait: WaitEmpty
    arrive: ArriveFull
    copies: tuple[Copy, ...]
    agents: tuple[Agent, ...]
    filling: tuple[tuple[str, int], ...]
    guests: tuple[Guest, ...] = ()
    givers: tuple[Giver, ...] = ()


def duties(protocol: Protocol) -> tuple[Duties, ...] | Fails | Unknown:
    """Each ring's."""
    if any(isinstance(op, Meet) for role in protocol.roles for op in role.body) or protocol.meetings:
        return Unknown("named barriers are beyond role-local obligations")
    if any(isinstance(op, Read) and op.late and protocol.rings[op.ring].fewer for r in protocol.roles for op in r.body):
        return Unknown("groups in trips that are more than the uses of a ring")
    roles = _distinct(protocol)
    if isinstance(roles, Unknown):
        return roles
    found: list[Duties] = []
    for number, ring in enumerate(protocol.rings):
        if ring.once:
            continue
        duty = _duties(roles, number, ring)
        if isinstance(duty, Fails) and duty.claim == "WAR" and sum(not each.once for each in protocol.rings) > 1:
            return Unknown(f"{duty.what}, unless another ring does what this one leaves out")
        if isinstance(duty, Fails | Unknown):
            return duty
        found.append(duty)
    return tuple(found)


def _distinct(protocol: Protocol) -> list[Role] | Unknown:
    if not protocol.persistent and any(role.share[1] > 1 for role in protocol.roles):
        return Unknown("tiles are shared out among roles, and there is one tile")
    kept: list[Role] = []
    for role in protocol.roles:
        agent, agents = role.share
        if agents == 1 and role.turn:
            return Unknown(f"{role.name} takes turns alone")
        if agent == 0:
            kept.append(role)
        peers = [each for each in protocol.roles if each.share[1] == agents] if agents > 1 else [role]
        if sorted(each.share[0] for each in peers) != list(range(agents)):
            return Unknown(f"{role.name} shares out the tiles, and not every share is taken")
        if any(evolve(peer, name=role.name, share=role.share) != role for peer in peers):
            return Unknown("roles that share out the tiles do different things")
    return kept


def _duties(roles: list[Role], number: int, ring: Ring) -> Duties | Fails | Unknown:
    fillers = [role for role in roles if any(_of(role, number, kind) for kind in (WaitEmpty, ArriveFull, Copy))]
    drains = [role for role in roles if any(_of(role, number, kind) for kind in (WaitFull, Read, Release))]
    guests = [each for role in fillers for each in _guests(role, number)]
    fillers = [role for role in fillers if all(each.role is not role for each in guests)]
    givers = [each for role in drains for each in _givers(role, number)]
    drains = [role for role in drains if all(each.role is not role for each in givers)]
    if len(fillers) != 1 or fillers[0] in drains or not drains or fillers[0].share[1] > 1:
        return Unknown(f"ring {number} is not filled by one role and drained by others")
    role = fillers[0]
    wait, arrive = _one(role, number, WaitEmpty), _one(role, number, ArriveFull)
    copies = _of(role, number, Copy)
    if isinstance(wait, Fails):
        # Nothing keeps use S of the ring from overwriting use 0 in the same slot.
        return evolve(wait, model=(("u", ring.stages), ("v", 0)))
    for missing in (wait, arrive):
        if isinstance(missing, Fails | Unknown):
            return missing
    assert isinstance(wait, WaitEmpty)
    assert isinstance(arrive, ArriveFull)
    parts = [copy.part for copy in (*copies, *(guest.copy for guest in guests))]
    if sorted(parts) != list(range(len(ring.parts))):
        lacks = len(set(parts)) < len(ring.parts)
        return Fails("bytes", "a part is never copied") if lacks else Unknown("a part is copied twice")
    agents = [_agent(each, number, data=bool(ring.parts)) for each in drains]
    for agent in agents:
        if not isinstance(agent, Agent):
            return agent
    held = tuple(agent for agent in agents if isinstance(agent, Agent))
    filling = _filling(role, number)
    return Duties(number, ring, role, wait, arrive, tuple(copies), held, filling, tuple(guests), tuple(givers))


def _guests(role: Role, number: int) -> list[Guest]:
    """The role's copies into a ring that is not its own; none if it does more to that ring."""
    own = [op for op in role.body if isinstance(op, WaitEmpty) and op.ring != number]
    if len(own) != 1 or _of(role, number, WaitEmpty) or _of(role, number, ArriveFull):
        return []
    return [Guest(role, own[0], copy) for copy in _of(role, number, Copy)]


def _givers(role: Role, number: int) -> list[Giver]:
    """The role's releases of a ring that it does not drain; none if it drains none at all."""
    reads = any(isinstance(op, WaitFull | Read) and op.ring != number for op in role.body)
    if not reads or _of(role, number, WaitFull) or _of(role, number, Read):
        return []
    return [Giver(role, release) for release in _of(role, number, Release)]


def _agent(role: Role, number: int, *, data: bool) -> Agent | Fails | Unknown:
    """data: the ring has any; otherwise it only orders, and nothing is read."""
    if not data and _of(role, number, Read):
        return Unknown(f"{role.name} reads ring {number}, which has no data")
    wait, release = _one(role, number, WaitFull), _one(role, number, Release)
    read = _one(role, number, Read) if data else None
    for each in (wait, read, release):
        if isinstance(each, Fails | Unknown):
            return each
    assert isinstance(wait, WaitFull)
    assert isinstance(release, Release)
    assert not isinstance(read, Fails | Unknown)
    return Agent(role, wait, read, release, _draining(role, number))


def _of(role: Role, number: int, kind: type[OpT]) -> list[OpT]:
    return [op for op in role.body if isinstance(op, kind) and op.ring == number]


def _one(role: Role, number: int, kind: type[OpT]) -> OpT | Fails | Unknown:
    found = _of(role, number, kind)
    if len(found) > 1:
        return Unknown(f"{role.name} has {len(found)} operations {kind.__name__} on ring {number}")
    if not found and kind is Read:
        return Unknown(f"{role.name} reads nothing of ring {number}")
    name = "WAR" if kind in {WaitEmpty, Release} else "RAW"
    return found[0] if found else Fails(name, f"{role.name} has no {kind.__name__} on ring {number}")


def in_order(role: Role, number: int) -> list[OnRing]:
    """The operations on one use of the ring, in the order in which the role makes them."""
    ops = [(op, place) for place, op in enumerate(role.body) if not isinstance(op, WaitGroups | Meet)]
    return [op for op, _ in sorted(ops, key=lambda each: (-each[0].ahead, each[1])) if op.ring == number]


def _filling(role: Role, number: int) -> tuple[tuple[str, int], ...]:
    spelt: list[tuple[str, int]] = []
    for op in in_order(role, number):
        match op:
            case WaitEmpty():
                spelt.append(("wait", 0))
            case ArriveFull(size=size):
                spelt.append(("announce", size))
            case Copy(size=size):
                spelt.append(("copy", size))
            case _:
                pass
    return tuple(spelt)


def _draining(role: Role, number: int) -> tuple[tuple[str, int], ...]:
    """The end of a read is put where the claim `release` has it: just before the release."""
    spelt: list[tuple[str, int]] = []
    for op in in_order(role, number):
        match op:
            case WaitFull():
                spelt.append(("wait", 0))
            case Read():
                spelt.append(("read", 0))
            case Release(count=count):
                if any(name == "read" for name, _ in spelt):
                    spelt.append(("over", 0))
                spelt.append(("release", count))
            case _:
                pass
    return tuple(spelt)
