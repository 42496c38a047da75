"""Random protocols of small clusters: correct rings across two blocks, after a few edits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from attrs import evolve

from argus.core.protocol.ring import (
    ArriveFull,
    Copy,
    NamedBarrierOp,
    Op,
    Protocol,
    Read,
    Release,
    Ring,
    Role,
    WaitEmpty,
    WaitFull,
    WaitGroups,
    clustered,
)
from argus.testing.protocol.mutations import edits

BLOCKS = 2


def cluster(random: Random, most: int = 3) -> tuple[str, Protocol]:
    """A protocol of two blocks, one to three slots and one or two consumers, with the names of its edits.

    Usually every block copies to all and releases to all; otherwise as drawn, so that a block may release slots whose
    uses it never waits for.
    """
    lag = random.choice([0, 0, 1])
    consumers, stages = random.choice([1, 1, 2]), random.choice([1, 1, 2, 2, 3])
    pending = random.choice([lag, lag, 0, 1])
    if random.random() < 0.4:
        copied, given = (tuple(random.random() < 0.6 for _ in range(BLOCKS)) for _ in range(2))
        first = random.choice([0, 1])
        protocol = wired(stages, copied, given, consumers=consumers, lag=lag, pending=pending, first=first)
    else:
        protocol = clustered(stages, blocks=BLOCKS, consumers=consumers, lag=lag, pending=pending)
        protocol = _in_more_parts(protocol) if random.random() < 0.4 else protocol
    if random.random() < 0.3:
        protocol = evolve(protocol, persistent=False)
    names: list[str] = []
    for _ in range(random.choice(range(most + 1))):
        every = [*_of_clusters(protocol), *edits(protocol)] if random.random() < 0.5 else list(_of_clusters(protocol))
        name, protocol = random.choice(every)
        names.append(name)
    return "; ".join(names), protocol


def wired(
    stages: int,
    copied: Sequence[bool],
    given: Sequence[bool],
    *,
    consumers: int = 1,
    lag: int = 0,
    pending: int = 0,
    first: int = 0,
) -> Protocol:
    """copied, given: whether block i copies into the other's slots, and releases slots to it. first: the ring whose
    slots are released first.
    """
    roles: list[Role] = []
    for own in range(BLOCKS):
        size = 1 + copied[1 - own]
        sent = (Copy(1, 0, own), *((Copy(1, 1, 1 - own),) if copied[own] else ()))
        roles.append(Role(f"P{own}", (WaitEmpty(own), ArriveFull(size, own), *sent), finishes=True))
        to = [ring for ring in (first, 1 - first) if ring == own or given[own]]
        gives = tuple(Release(ring, -lag) for ring in to)
        drain = (WaitFull(own), Read(own), WaitGroups(pending), *gives)
        roles.extend(Role(f"C{own}.{i}", drain) for i in range(consumers))
    rings = tuple(
        Ring(stages, (1,) * (1 + copied[1 - own]), empty=consumers * (1 + given[1 - own])) for own in range(BLOCKS)
    )
    return Protocol(rings, tuple(roles))


def _in_more_parts(protocol: Protocol) -> Protocol:
    """Split each multicast into two consecutive copies."""
    parts = len(protocol.rings[0].parts)
    rings = tuple(evolve(ring, parts=(*ring.parts, *(1,) * BLOCKS)) for ring in protocol.rings)
    roles = tuple(evolve(role, body=tuple(_split(role, parts))) for role in protocol.roles)
    return evolve(protocol, rings=rings, roles=roles)


def _split(role: Role, parts: int) -> Iterator[Op]:
    """Part 1 + i is block i's multicast; part `parts` + i is its second half."""
    for op in role.body:
        match op:
            case Copy(part=part) if part > 0:
                yield from (op, evolve(op, part=part - 1 + parts))
            case ArriveFull(size=size):
                yield evolve(op, size=size + BLOCKS)
            case _:
                yield op


def _of_clusters(protocol: Protocol) -> Iterator[tuple[str, Protocol]]:
    """Edits that do not exist for a single ring."""
    for number, role in enumerate(protocol.roles):
        for name, body in _bodies(role, len(protocol.rings)):
            roles = (*protocol.roles[:number], evolve(role, body=body), *protocol.roles[number + 1 :])
            yield f"{role.name}: {name}", evolve(protocol, roles=roles)


def _bodies(role: Role, rings: int) -> Iterator[tuple[str, tuple[Op, ...]]]:
    body = role.body
    for place, op in enumerate(body):
        before, after = body[:place], body[place + 1 :]
        for further in range(place + 1, len(body)):
            moved = (*before, *body[place + 1 : further + 1], op, *body[further + 1 :])
            yield f"{type(op).__name__} to place {further}", moved
        if isinstance(op, WaitGroups | NamedBarrierOp):
            continue
        for ring in range(rings):
            if ring != op.ring:
                yield f"{type(op).__name__} on ring {ring}", (*before, evolve(op, ring=ring), *after)
        if isinstance(op, Copy | Release):
            yield f"{type(op).__name__} twice", (*before, op, op, *after)
        for by in (-1, 1):
            yield f"{type(op).__name__} {by} trips on", (*before, evolve(op, ahead=op.ahead + by), *after)
