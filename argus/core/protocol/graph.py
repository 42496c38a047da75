"""Event-graph semantics: checks safety and deadlock freedom by shortest distances in uses, for all sizes at once.

Nodes are the events of one use; an edge of weight w from a to b means that a(u) happens before b(u + w). A wait for a
parity is modelled as a wait for the intended phase, which the windows justify: while a role waits, the barrier is
neither a phase behind nor two phases ahead. There are two graphs: order that also holds across tiles, for safety; and
order within a tile, for deadlock, since every role processes tiles in sequence. Source: proof-methods 3.3.
"""

from __future__ import annotations

from attrs import evolve

from argus.core.protocol.building import EventGraph, build_event_graph
from argus.core.protocol.distances import Distances, distances
from argus.core.protocol.outcome import Fails, Holds, Outcome, Unknown
from argus.core.protocol.producers_consumers import RingParties, for_single_tile, ring_parties
from argus.core.protocol.ring import (
    ArriveFull,
    Copy,
    Cursor,
    NamedBarrierOp,
    Op,
    Protocol,
    Read,
    Release,
    Role,
    WaitEmpty,
    WaitFull,
    WaitGroups,
    tile_rings,
    trip_rings,
)
from argus.core.protocol.statics import static_failure


def check_event_graph(protocol: Protocol) -> Outcome:
    """Checks a protocol for every size that satisfies the assumptions; Unknown if it is not periodic in its uses.

    Rings with one use per tile are checked separately: see `_check_tile_rings`.
    """
    tiles = tile_rings(protocol)
    if tiles is None:
        return _check_periodic(protocol)
    for outcome in (_check_tile_rings(protocol, tiles), _check_periodic(trip_rings(protocol))):
        if not isinstance(outcome, Holds):
            return outcome
    return Holds("every size")


def _check_tile_rings(protocol: Protocol, tiles: Protocol) -> Outcome:
    """Checks the rings with one use per tile.

    Consumers wait and producers fill before all trips of the tile. So each wait, on either kind of ring, is for an
    event earlier in its own tile or in an earlier tile, and there is no deadlock unless there is one among the trips or
    among the tiles alone.
    """
    for role in protocol.roles:
        late = any(isinstance(op, WaitEmpty | WaitFull | ArriveFull | Copy) for op in role.after)
        if late or role.share[1] > 1 or role.seeds:
            return Unknown(
                f"{role.name} fills or awaits a ring after the trips of a tile, or takes only every n-th tile"
            )
        if any(cursor.restarts for op in role.tile_ops for cursor in _cursors(op)):
            return Unknown("a cursor that restarts, on a ring with one use per tile")
    outcome = _check_periodic(tiles)
    if isinstance(outcome, Fails) and not (protocol.persistent and outcome.claim in _RING_LOCAL):
        return Unknown(f"{outcome.what}, unless there is only one tile, or the operations of the trips prevent it")
    return outcome


_RING_LOCAL = frozenset({"bytes", "deadlock", "slot", "cursor"})
"""Claims whose failure does not depend on other rings."""


def _cursors(op: Op) -> tuple[Cursor, ...]:
    match op:
        case WaitEmpty() | WaitFull():
            return op.slot, op.phase.cursor
        case Copy():
            return op.slot, op.signal
        case ArriveFull() | Read() | Release():
            return (op.slot,)
        case WaitGroups() | NamedBarrierOp():
            return ()


def _check_periodic(protocol: Protocol) -> Outcome:
    protocol = for_single_tile(protocol)
    found = ring_parties(protocol)
    if isinstance(found, Unknown):
        return found
    static = static_failure(protocol, found)
    if static is not None:
        return static
    built = build_event_graph(protocol, found)
    if isinstance(built, Fails | Unknown):
        return built
    live = distances(built.period, built.events, built.waiting)
    if cycle := live.cycle():
        return Fails("deadlock", "cyclic wait: " + " -> ".join(cycle), cycle=cycle)
    fewer = {protocol.rings[party.number].fewer for party in found}
    late = any(isinstance(op, Read) and op.late for role in protocol.roles for op in role.body)
    if any(fewer) and (late or any(isinstance(op, NamedBarrierOp) for role in protocol.roles for op in role.body)):
        return Unknown("`wgmma` groups or named barriers, with more trips than uses of a ring")
    if len(fewer) > 1:
        return _check_ring_by_ring(protocol, built, found)
    return _check_safety(built, found)


def _check_safety(built: EventGraph, found: tuple[RingParties, ...]) -> Outcome:
    safe = distances(built.period, built.events, built.always)
    faults = (_window_failure(built, safe), _data_failure(built, found, safe))
    return next((fault for fault in faults if fault is not None), Holds("every size"))


def _check_ring_by_ring(protocol: Protocol, built: EventGraph, found: tuple[RingParties, ...]) -> Outcome:
    """Checks each ring by its own operations, where the rings have different numbers of uses per tile.

    Across tiles, uses of two such rings have no constant distance.
    """
    if built.period != 1:
        return Unknown("rings with different numbers of uses per tile, whose graph has several residues")
    for party in found:
        alone = evolve(
            protocol,
            rings=tuple(evolve(r, per_tile=n != party.number) for n, r in enumerate(protocol.rings)),
            roles=tuple(own for role in protocol.roles if (own := _restricted_to(role, party.number)).body),
        )
        parts = ring_parties(alone)
        if isinstance(parts, Unknown):
            return parts
        own = build_event_graph(alone, parts)
        outcome = own if isinstance(own, Fails | Unknown) else _check_safety(own, parts)
        if isinstance(outcome, Fails):
            return Unknown(f"{outcome.what}, unless the operations on another ring prevent it")
        if isinstance(outcome, Unknown):
            return outcome
    return Holds("every size")


def _restricted_to(role: Role, ring: int) -> Role:
    return evolve(
        role, body=tuple(op for op in role.body if not isinstance(op, WaitGroups | NamedBarrierOp) and op.ring == ring)
    )


def _window_failure(built: EventGraph, safe: Distances) -> Fails | None:
    """At a wait the barrier is at the awaited phase or the next; arrivals come after the previous phase completes."""
    for window in built.windows:
        low, high = window.awaited - window.between, window.awaited + window.between
        if not _is_complete_before(built, safe, (window.phase, low), (window.begin, window.use)):
            return Fails(
                "window", f"{window.begin} may find the barrier a phase behind, and pass at once by its parity"
            )
        if not safe.ordered(window.end, window.use, window.phase, high):
            return Fails("window", f"{window.end}: the next phase may complete first, and flip the parity back")
    for part in built.contributions:
        following = part.use + part.between
        if not _is_complete_before(built, safe, (part.phase, part.number), (part.source, following)):
            return Fails("arrivals", f"{part.source} may come before the previous phase of {part.phase} is complete")
    return None


def _is_complete_before(built: EventGraph, safe: Distances, phase: tuple[str, int], then: tuple[str, int]) -> bool:
    """Whether a phase is complete before an event: it is complete once all its contributions have happened."""
    if safe.ordered(*phase, *then):
        return True
    parts = [part for part in built.contributions if part.phase == phase[0]]
    aligned = [part for part in parts if (phase[1] - part.number) % built.period == 0]
    return bool(aligned) and all(
        safe.ordered(part.effect, part.use + phase[1] - part.number, *then) for part in aligned
    )


def _data_failure(built: EventGraph, found: tuple[RingParties, ...], safe: Distances) -> Fails | None:
    for party in found:
        for use in range(built.period):
            for read in party.reads:
                for copy in party.copies:
                    if not safe.ordered(copy.completed, use, read.read, use):
                        return Fails("RAW", f"{read.read} of a use may come before {copy.completed} in that use")
                    if not _read_ends_before(built, safe, (read.over, use), (copy.issued, use + party.stages)):
                        return Fails("WAR", f"{copy.issued} may overwrite the slot before {read.over}")
            for copy in party.copies:
                if not safe.ordered(copy.completed, use, copy.issued, use + party.stages):
                    return Fails("WAW", f"{copy.issued} may start before {copy.completed} in the slot's previous use")
    return None


def _read_ends_before(built: EventGraph, safe: Distances, over: tuple[str, int], then: tuple[str, int]) -> bool:
    """Whether a read ends before an event: if every event of some cover, one of which it precedes, is before it."""
    if safe.ordered(*over, *then):
        return True
    return any(
        all(safe.ordered(cover.event, over[1] + later, *then) for later in range(cover.span + 1))
        for cover in built.covers
        if cover.over == over[0]
    )
