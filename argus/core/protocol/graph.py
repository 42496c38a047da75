"""The event graph's meaning: happens-before as shortest distances in uses, for all sizes at once.

Nodes are the events of one use, an edge of weight w from a to b says that a(u) happens before b(u + w). Waits are
read as waits for the phase they name, which the windows license: the barrier is neither a phase short of that nor
two past it while somebody waits. Two graphs: what always holds, across tiles too, for safety; what a role waits for
inside a tile, for deadlock, since tiles follow each other in every role. Source: proof-methods 3.3.
"""

from __future__ import annotations

from attrs import evolve

from argus.core.protocol.building import Built, build
from argus.core.protocol.distances import Distances, distances
from argus.core.protocol.outcome import Fails, Holds, Outcome, Unknown
from argus.core.protocol.producers_consumers import Party, of_one_tile, parties
from argus.core.protocol.ring import (
    ArriveFull,
    Copy,
    Cursor,
    Meet,
    Op,
    Protocol,
    Read,
    Release,
    Role,
    WaitEmpty,
    WaitFull,
    WaitGroups,
    of_tiles,
    of_trips,
)
from argus.core.protocol.statics import static_fault


def graph(protocol: Protocol) -> Outcome:
    """For every size that satisfies the assumptions; Unknown for a protocol that is not periodic in its uses.

    Rings of which a tile is one use are judged apart, tile by tile: see `_apart`.
    """
    tiles = of_tiles(protocol)
    if tiles is None:
        return _periodic(protocol)
    for outcome in (_apart(protocol, tiles), _periodic(of_trips(protocol))):
        if not isinstance(outcome, Holds):
            return outcome
    return Holds("every size")


def _apart(protocol: Protocol, tiles: Protocol) -> Outcome:
    """Rings of which a tile is one use. Who waits for them does so before all trips of the tile, and who fills them
    fills before all trips: so each wait, of either kind of ring, is for what comes earlier in its own tile or in an
    earlier tile, and nobody waits in a circle unless the trips or the tiles alone do.
    """
    for role in protocol.roles:
        late = any(isinstance(op, WaitEmpty | WaitFull | ArriveFull | Copy) for op in role.after)
        if late or role.share[1] > 1 or role.seeds:
            return Unknown(f"{role.name} fills a ring or waits for it after the trips of a tile, or shares tiles out")
        if any(cursor.restarts for op in role.once for cursor in _cursors(op)):
            return Unknown("a cursor that restarts, of a ring of which a tile is one use")
    outcome = _periodic(tiles)
    if isinstance(outcome, Fails) and not (protocol.persistent and outcome.claim in _ALONE):
        return Unknown(f"{outcome.what}, unless there is one tile alone, or the trips do what this ring leaves out")
    return outcome


_ALONE = frozenset({"bytes", "deadlock", "slot", "cursor"})
"""What fails of a ring, whatever others do."""


def _cursors(op: Op) -> tuple[Cursor, ...]:
    match op:
        case WaitEmpty() | WaitFull():
            return op.slot, op.phase.cursor
        case Copy():
            return op.slot, op.signal
        case ArriveFull() | Read() | Release():
            return (op.slot,)
        case WaitGroups() | Meet():
            return ()


def _periodic(protocol: Protocol) -> Outcome:
    protocol = of_one_tile(protocol)
    found = parties(protocol)
    if isinstance(found, Unknown):
        return found
    static = static_fault(protocol, found)
    if static is not None:
        return static
    built = build(protocol, found)
    if isinstance(built, Fails | Unknown):
        return built
    live = distances(built.period, built.events, built.waiting)
    if cycle := live.cycle():
        return Fails("deadlock", "each waits for the one before, in no time: " + " -> ".join(cycle), cycle=cycle)
    fewer = {protocol.rings[party.number].fewer for party in found}
    late = any(isinstance(op, Read) and op.late for role in protocol.roles for op in role.body)
    if any(fewer) and (late or any(isinstance(op, Meet) for role in protocol.roles for op in role.body)):
        return Unknown("groups, or named barriers, in trips that are more than the uses of a ring")
    if len(fewer) > 1:
        return _each(protocol, built, found)
    return _safe(built, found)


def _safe(built: Built, found: tuple[Party, ...]) -> Outcome:
    safe = distances(built.period, built.events, built.always)
    faults = (_windows(built, safe), _data(built, found, safe))
    return next((fault for fault in faults if fault is not None), Holds("every size"))


def _each(protocol: Protocol, built: Built, found: tuple[Party, ...]) -> Outcome:
    """Rings whose uses of a tile are not equally many: over tiles, a use of one has no fixed distance from one of
    another, so what orders a ring's operations is sought among its own alone.
    """
    if built.period != 1:
        return Unknown("rings with unlike uses of a tile, of slots that are not followed ring by ring")
    for party in found:
        alone = evolve(
            protocol,
            rings=tuple(evolve(r, once=n != party.number) for n, r in enumerate(protocol.rings)),
            roles=tuple(own for role in protocol.roles if (own := _only(role, party.number)).body),
        )
        parts = parties(alone)
        if isinstance(parts, Unknown):
            return parts
        own = build(alone, parts)
        outcome = own if isinstance(own, Fails | Unknown) else _safe(own, parts)
        if isinstance(outcome, Fails):
            return Unknown(f"{outcome.what}, unless another ring does what this one leaves out")
        if isinstance(outcome, Unknown):
            return outcome
    return Holds("every size")


def _only(role: Role, ring: int) -> Role:
    return evolve(role, body=tuple(op for op in role.body if not isinstance(op, WaitGroups | Meet) and op.ring == ring))


def _windows(built: Built, safe: Distances) -> Fails | None:
    """Every wait meets its phase or the next, every phase is complete before anything of the next arrives."""
    for window in built.windows:
        low, high = window.named - window.between, window.named + window.between
        if not _complete(built, safe, (window.phase, low), (window.begin, window.use)):
            return Fails("window", f"{window.begin} may find the barrier a phase short, its parity past already")
        if not safe.ordered(window.end, window.use, window.phase, high):
            return Fails("window", f"{window.end}: the phase after may complete first, and turn the parity back")
    for part in built.contributions:
        following = part.use + part.between
        if not _complete(built, safe, (part.phase, part.number), (part.source, following)):
            return Fails("arrivals", f"{part.source} may come while the phase before of {part.phase} is not complete")
    return None


def _complete(built: Built, safe: Distances, phase: tuple[str, int], then: tuple[str, int]) -> bool:
    """Whether the phase is complete before an event: it is once all that counts towards it has come."""
    if safe.ordered(*phase, *then):
        return True
    parts = [part for part in built.contributions if part.phase == phase[0]]
    aligned = [part for part in parts if (phase[1] - part.number) % built.period == 0]
    return bool(aligned) and all(
        safe.ordered(part.effect, part.use + phase[1] - part.number, *then) for part in aligned
    )


def _data(built: Built, found: tuple[Party, ...], safe: Distances) -> Fails | None:
    for party in found:
        for use in range(built.period):
            for look in party.looks:
                for copy in party.copies:
                    if not safe.ordered(copy.landed, use, look.read, use):
                        return Fails("RAW", f"{look.read} of a use may come before {copy.landed} of that use")
                    if not _over(built, safe, (look.over, use), (copy.issued, use + party.stages)):
                        return Fails("WAR", f"{copy.issued} may overwrite the slot before {look.over}")
            for copy in party.copies:
                if not safe.ordered(copy.landed, use, copy.issued, use + party.stages):
                    return Fails("WAW", f"{copy.issued} may start before the {copy.landed} of the slot's last use")
    return None


def _over(built: Built, safe: Distances, over: tuple[str, int], then: tuple[str, int]) -> bool:
    """Whether a read is over before an event: it is if all that it may be over before comes before that."""
    if safe.ordered(*over, *then):
        return True
    return any(
        all(safe.ordered(cover.event, over[1] + later, *then) for later in range(cover.span + 1))
        for cover in built.covers
        if cover.over == over[0]
    )
