"""Collects the operations of each ring's roles by kind; a missing one is a failure, a repeated one out of scope.

Part of the obligation semantics.
"""

from __future__ import annotations

from typing import TypeVar

from attrs import evolve, frozen

from argus.core.protocol.outcome import Fails, Unknown
from argus.core.protocol.ring import (
    ArriveFull,
    Copy,
    NamedBarrierOp,
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
class ConsumerOps:
    """A consumer of the ring. draining: its steps on one slot, in order, in the notation of the lemma."""

    role: Role
    wait: WaitFull
    read: Read | None
    release: Release
    draining: tuple[tuple[str, int], ...]


@frozen
class RemoteCopy:
    """A copy into this ring by the producer of another one, with the producer's own wait."""

    role: Role
    wait: WaitEmpty
    copy: Copy


@frozen
class RemoteRelease:
    """A release of this ring's slots by a consumer of another one."""

    role: Role
    release: Release


@frozen
class RingOps:
    """The operations on one ring. agents: the consumers; of agents that divide the tiles, the first represents all.

    remote_copies, remote_releases: those of coupled rings in a cluster.
    """

    number: int
    ring: Ring
    role: Role
    wait: WaitEmpty
    arrive: ArriveFull
    copies: tuple[Copy, ...]
    agents: tuple[ConsumerOps, ...]
    filling: tuple[tuple[str, int], ...]
    remote_copies: tuple[RemoteCopy, ...] = ()
    remote_releases: tuple[RemoteRelease, ...] = ()


def find_ring_ops(protocol: Protocol) -> tuple[RingOps, ...] | Fails | Unknown:
    """The operations on each ring."""
    if any(isinstance(op, NamedBarrierOp) for role in protocol.roles for op in role.body) or protocol.named_barriers:
        return Unknown("named barriers are beyond role-local obligations")
    if any(isinstance(op, Read) and op.late and protocol.rings[op.ring].fewer for r in protocol.roles for op in r.body):
        return Unknown("`wgmma` groups, with more trips than uses of a ring")
    roles = _representatives(protocol)
    if isinstance(roles, Unknown):
        return roles
    found: list[RingOps] = []
    for number, ring in enumerate(protocol.rings):
        if ring.per_tile:
            continue
        ring_ops = _ring_ops(roles, number, ring)
        if (
            isinstance(ring_ops, Fails)
            and ring_ops.claim == "WAR"
            and sum(not each.per_tile for each in protocol.rings) > 1
        ):
            return Unknown(f"{ring_ops.what}, unless the operations on another ring prevent it")
        if isinstance(ring_ops, Fails | Unknown):
            return ring_ops
        found.append(ring_ops)
    return tuple(found)


def _representatives(protocol: Protocol) -> list[Role] | Unknown:
    if not protocol.persistent and any(role.share[1] > 1 for role in protocol.roles):
        return Unknown("roles divide tiles among them, but there is only one tile")
    found: list[Role] = []
    for role in protocol.roles:
        agent, agents = role.share
        if agents == 1 and role.turn:
            return Unknown(f"{role.name} takes turns alone")
        if agent == 0:
            found.append(role)
        peers = [each for each in protocol.roles if each.share[1] == agents] if agents > 1 else [role]
        if sorted(each.share[0] for each in peers) != list(range(agents)):
            return Unknown(f"{role.name} takes every n-th tile, and some tiles are taken by no role")
        if any(evolve(peer, name=role.name, share=role.share) != role for peer in peers):
            return Unknown("roles that divide the tiles among them differ")
    return found


def _ring_ops(roles: list[Role], number: int, ring: Ring) -> RingOps | Fails | Unknown:
    producers = [role for role in roles if any(_of(role, number, kind) for kind in (WaitEmpty, ArriveFull, Copy))]
    consumers = [role for role in roles if any(_of(role, number, kind) for kind in (WaitFull, Read, Release))]
    remote_copies = [each for role in producers for each in _remote_copies(role, number)]
    producers = [role for role in producers if all(each.role is not role for each in remote_copies)]
    remote_releases = [each for role in consumers for each in _remote_releases(role, number)]
    consumers = [role for role in consumers if all(each.role is not role for each in remote_releases)]
    if len(producers) != 1 or producers[0] in consumers or not consumers or producers[0].share[1] > 1:
        return Unknown(f"ring {number} is not filled by one role and consumed by others")
    role = producers[0]
    wait, arrive = _one(role, number, WaitEmpty), _one(role, number, ArriveFull)
    copies = _of(role, number, Copy)
    if isinstance(wait, Fails):
        # Use S of the ring may overwrite use 0 in the same slot.
        return evolve(wait, model=(("u", ring.stages), ("v", 0)))
    for missing in (wait, arrive):
        if isinstance(missing, Fails | Unknown):
            return missing
    assert isinstance(wait, WaitEmpty)
    assert isinstance(arrive, ArriveFull)
    parts = [copy.part for copy in (*copies, *(remote.copy for remote in remote_copies))]
    if sorted(parts) != list(range(len(ring.parts))):
        missing_part = len(set(parts)) < len(ring.parts)
        return Fails("bytes", "a part is never copied") if missing_part else Unknown("a part is copied twice")
    agents = [_agent(each, number, data=bool(ring.parts)) for each in consumers]
    for agent in agents:
        if not isinstance(agent, ConsumerOps):
            return agent
    held = tuple(agent for agent in agents if isinstance(agent, ConsumerOps))
    filling = _filling(role, number)
    return RingOps(
        number, ring, role, wait, arrive, tuple(copies), held, filling, tuple(remote_copies), tuple(remote_releases)
    )


def _remote_copies(role: Role, number: int) -> list[RemoteCopy]:
    """The role's copies into another role's ring; empty if it has other operations on that ring."""
    own = [op for op in role.body if isinstance(op, WaitEmpty) and op.ring != number]
    if len(own) != 1 or _of(role, number, WaitEmpty) or _of(role, number, ArriveFull):
        return []
    return [RemoteCopy(role, own[0], copy) for copy in _of(role, number, Copy)]


def _remote_releases(role: Role, number: int) -> list[RemoteRelease]:
    """The role's releases of a ring that it does not consume; empty if it consumes none at all."""
    reads = any(isinstance(op, WaitFull | Read) and op.ring != number for op in role.body)
    if not reads or _of(role, number, WaitFull) or _of(role, number, Read):
        return []
    return [RemoteRelease(role, release) for release in _of(role, number, Release)]


def _agent(role: Role, number: int, *, data: bool) -> ConsumerOps | Fails | Unknown:
    """The operations of a consumer. data: whether the ring has data to read, or only orders its roles."""
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
    return ConsumerOps(role, wait, read, release, _draining(role, number))


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


def in_program_order(role: Role, number: int) -> list[RingOp]:
    """The operations on one use of the ring, in the role's execution order."""
    ops = [(op, place) for place, op in enumerate(role.body) if not isinstance(op, WaitGroups | NamedBarrierOp)]
    return [op for op, _ in sorted(ops, key=lambda each: (-each[0].ahead, each[1])) if op.ring == number]


def _filling(role: Role, number: int) -> tuple[tuple[str, int], ...]:
    spelt: list[tuple[str, int]] = []
    for op in in_program_order(role, number):
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
    """A consumer's steps; the end of a read is just before the release, as the claim `release` states."""
    spelt: list[tuple[str, int]] = []
    for op in in_program_order(role, number):
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
