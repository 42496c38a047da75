"""Random protocols of small clusters: rings that fill each other, right ones after a few edits."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from attrs import evolve

from argus.core.protocol.mistakes import edits
from argus.core.protocol.ring import ArriveFull, Copy, Op, Protocol, Release, Role, WaitGroups, clustered

BLOCKS = 2


def cluster(random: Random, most: int = 3) -> tuple[str, Protocol]:
    """Two blocks, one to three slots, one or two consumers, and as many edits as are drawn, by name."""
    lag = random.choice([0, 0, 1])
    consumers, stages = random.choice([1, 1, 2]), random.choice([1, 1, 2, 2, 3])
    pending = random.choice([lag, lag, 0, 1])
    protocol = clustered(stages, blocks=BLOCKS, consumers=consumers, lag=lag, pending=pending)
    if random.random() < 0.4:
        protocol = _in_more_parts(protocol)
    if random.random() < 0.3:
        protocol = evolve(protocol, persistent=False)
    names: list[str] = []
    for _ in range(random.choice(range(most + 1))):
        every = [*_of_clusters(protocol), *edits(protocol)] if random.random() < 0.5 else list(_of_clusters(protocol))
        name, protocol = random.choice(every)
        names.append(name)
    return "; ".join(names), protocol


def _in_more_parts(protocol: Protocol) -> Protocol:
    """Each multicast in two copies, one after the other."""
    parts = len(protocol.rings[0].parts)
    rings = tuple(evolve(ring, parts=(*ring.parts, *(1,) * BLOCKS)) for ring in protocol.rings)
    roles = tuple(evolve(role, body=tuple(_split(role, parts))) for role in protocol.roles)
    return evolve(protocol, rings=rings, roles=roles)


def _split(role: Role, parts: int) -> Iterator[Op]:
    """Part 1 + i is block i's multicast, and so is part `parts` + i."""
    for op in role.body:
        match op:
            case Copy(part=part) if part > 0:
                yield from (op, evolve(op, part=part - 1 + parts))
            case ArriveFull(size=size):
                yield evolve(op, size=size + BLOCKS)
            case _:
                yield op


def _of_clusters(protocol: Protocol) -> Iterator[tuple[str, Protocol]]:
    """Edits that a single ring does not have."""
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
        if isinstance(op, WaitGroups):
            continue
        for ring in range(rings):
            if ring != op.ring:
                yield f"{type(op).__name__} on ring {ring}", (*before, evolve(op, ring=ring), *after)
        if isinstance(op, Copy | Release):
            yield f"{type(op).__name__} twice", (*before, op, op, *after)
        for by in (-1, 1):
            yield f"{type(op).__name__} {by} trips on", (*before, evolve(op, ahead=op.ahead + by), *after)
