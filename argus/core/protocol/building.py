"""Builds the event graph of a protocol: events, happens-before edges, and the parity windows to check.

Part of the event-graph semantics.
"""

from __future__ import annotations

from math import lcm

from attrs import Factory, define, frozen

from argus.core.protocol.distances import Edge
from argus.core.protocol.events import event_name, ordered_pairs, read_cover_lags, role_events
from argus.core.protocol.offsets import awaited_use, matching_use, slot_offset
from argus.core.protocol.outcome import Fails, Unknown
from argus.core.protocol.producers_consumers import Consumer, RingParties, loses_uses, representatives
from argus.core.protocol.ring import NamedBarrierOp, Protocol, Role, WaitEmpty, WaitFull


@frozen
class WaitWindow:
    """A wait of use `use` for the phase that use `awaited` completes; adjacent phases are `between` uses apart."""

    begin: str
    end: str
    use: int
    phase: str
    awaited: int
    between: int


@frozen
class PhaseContribution:
    """effect(use), caused only by source(use), counts towards the phase that use `number` completes."""

    source: str
    effect: str
    use: int
    phase: str
    number: int
    between: int


@frozen
class ReadCover:
    """over(u) happens before the event of one of the uses u to u + span; which one depends on where the tile ends."""

    over: str
    event: str
    span: int


@define
class EventGraph:
    """waiting: edges within a tile, to detect deadlock. always: edges that also hold across tiles, for safety."""

    period: int
    events: list[str] = Factory(list[str])
    waiting: list[Edge] = Factory(list[Edge])
    always: list[Edge] = Factory(list[Edge])
    windows: list[WaitWindow] = Factory(list[WaitWindow])
    contributions: list[PhaseContribution] = Factory(list[PhaseContribution])
    covers: list[ReadCover] = Factory(list[ReadCover])

    def add_edge(self, source: str, use: int, target: str, later: int) -> None:
        edge = (source, use % self.period, target, later - use)
        self.waiting.append(edge)
        # A path that goes back in uses may lead before the first use, where there are no events.
        if later >= use:
            self.always.append(edge)


def build_event_graph(protocol: Protocol, found: tuple[RingParties, ...]) -> EventGraph | Fails | Unknown:
    """The event graph, with one residue if possible; or a failure for a cursor without constant distance."""
    built = EventGraph(lcm(*(ring.stages for ring in protocol.rings)))
    roles = representatives(protocol)
    assert not isinstance(roles, Unknown)
    for role in roles:
        _add_program_order(built, role)
    for party in found:
        for part in (_add_full_barrier, _add_empty_barrier):
            fault = part(built, party)
            if fault is not None:
                return fault
        for consumer in party.consumers:
            _add_read_end(built, consumer)
    for number in range(len(protocol.named_barriers)):
        fault = _add_named_barrier(built, protocol, number)
        if fault is not None:
            return fault
    return _collapsed(built)


def _collapsed(built: EventGraph) -> EventGraph:
    """The graph with one residue, if the edges of all residues are equal."""
    if not all(_same_for_all_residues(edges, built.period) for edges in (built.waiting, built.always)):
        return built
    first = [[edge for edge in edges if edge[1] == 0] for edges in (built.waiting, built.always)]
    windows = [window for window in built.windows if window.use == 0]
    parts = [part for part in built.contributions if part.use == 0]
    return EventGraph(1, built.events, first[0], first[1], windows, parts, built.covers)


def _same_for_all_residues(edges: list[Edge], period: int) -> bool:
    shapes = [{(a, b, w) for a, r, b, w in edges if r == residue} for residue in range(period)]
    return all(shape == shapes[0] for shape in shapes)


def _add_program_order(built: EventGraph, role: Role) -> None:
    """Adds program order. Across tiles, and from the first use on, a(u) is before b(v) only for v >= u.

    Agents that divide the tiles preserve the order of events before the end of the turn; without turns, only the order
    within one use.
    """
    built.events.extend(each.event for each in role_events(role))
    shared = role.share[1] > 1
    for a, b, weight in ordered_pairs(role):
        across = max(weight, 0)
        across_tiles = not shared or across == 0 or (role.turn and not a.late)
        for residue in range(built.period):
            built.waiting.append((a.event, residue, b.event, weight))
            if across_tiles:
                built.always.append((a.event, residue, b.event, across))


def _add_full_barrier(built: EventGraph, party: RingParties) -> Fails | None:
    stages, role = party.stages, party.producer
    built.events.append(party.full)
    built.events.extend(copy.completed for copy in party.copies)
    if party.arrive is None:
        return Fails("deadlock", f"no role arrives at the full barriers of ring {party.number}")
    target = slot_offset(party.arrive.slot, stages, loses_uses=loses_uses(role))
    if target is None:
        return _restart_failure(event_name(role, party.arrive))
    for use in range(built.period):
        _add_contribution(built, event_name(role, party.arrive), None, use, (party.full, use, stages))
        for copy in party.copies:
            source = slot_offset(copy.op.signal, stages, loses_uses=loses_uses(copy.role))
            if source is None:
                return _restart_failure(copy.issued)
            built.add_edge(copy.issued, use, copy.completed, use)
            number = matching_use(use, source, target, stages)
            _add_contribution(built, copy.issued, copy.completed, use, (party.full, number, stages))
    for consumer in party.consumers:
        if consumer.wait is not None:
            fault = _add_wait(built, consumer.role, consumer.wait, (party.full, target, stages), -stages)
            if fault is not None:
                return fault
    return None


def _add_contribution(built: EventGraph, source: str, effect: str | None, use: int, to: tuple[str, int, int]) -> None:
    """Adds an arrival or copy completion towards the phase `to`: (event, completing use, uses between phases)."""
    phase, number, stages = to
    built.add_edge(effect or source, use, phase, number)
    built.contributions.append(PhaseContribution(source, effect or source, use, phase, number, stages))


def _add_empty_barrier(built: EventGraph, party: RingParties) -> Fails | None:
    stages = party.stages
    built.events.append(party.empty)
    releases = [(consumer.role, consumer.release) for consumer in party.consumers if consumer.release is not None]
    if not releases:
        return None
    offsets = [slot_offset(release.slot, stages, loses_uses=loses_uses(role)) for role, release in releases]
    target = offsets[0]
    # A phase for which no role waits is unconstrained: another ring's barriers hand over the slot.
    watched = party.wait is not None or party.producer.finishes
    for (role, release), source in zip(releases, offsets, strict=True):
        if source is None or target is None:
            return _restart_failure(event_name(role, release))
        for use in range(built.period):
            number = matching_use(use, source, target, stages)
            if watched:
                _add_contribution(built, event_name(role, release), None, use, (party.empty, number, stages))
    if party.wait is None or target is None:
        return None
    return _add_wait(built, party.producer, party.wait, (party.empty, target, stages), -2 * stages)


def _add_wait(
    built: EventGraph, role: Role, op: WaitEmpty | WaitFull, on: tuple[str, int, int], least: int
) -> Fails | None:
    """Adds the edge from the awaited phase. on: (its event, slot offset of the completing use, uses between phases)."""
    phase, target, stages = on
    lost = loses_uses(role)
    slot = slot_offset(op.slot, stages, loses_uses=lost)
    begin, end = event_name(role, op, "begin"), event_name(role, op, "end")
    if slot is None:
        return _restart_failure(end)
    for use in range(built.period):
        ahead = awaited_use(slot, op.phase, use, target, stages, loses_uses=lost, least=least)
        if ahead is None:
            return _restart_failure(end)
        if role.finishes and isinstance(op, WaitEmpty) and ahead > -stages:
            return Fails("deadlock", f"{end}: after the last tile it waits for a release that never happens")
        if isinstance(op, WaitFull) and ahead > 0:
            return Fails("exists", f"{end} of the last use waits for one that is never filled")
        built.add_edge(phase, use + ahead, end, use)
        built.windows.append(WaitWindow(begin, end, use, phase, use + ahead, stages))
    return None


def _restart_failure(name: str) -> Fails:
    return Fails("cursor", f"the slot or parity of {name} depends on where the tile begins")


def _add_read_end(built: EventGraph, consumer: Consumer) -> None:
    """A read ends before every operation after a wait that covers its group, except those of the next agent's tile.

    Where a tile ends before the wait, the epilogue's operations on its last uses come after all reads that are issued
    in its trips.
    """
    if consumer.read is None:
        return
    built.events.append(consumer.read.over)
    for use in range(built.period):
        built.add_edge(consumer.read.read, use, consumer.read.over, use)
    for op, lag in read_cover_lags(consumer.role, consumer.read.op):
        begins = event_name(consumer.role, op, "begin" if isinstance(op, WaitEmpty | WaitFull) else "at")
        if lag == 0 or consumer.role.share[1] == 1:
            built.always.extend((consumer.read.over, use, begins, lag) for use in range(built.period))
        elif op.ahead < 0 <= consumer.read.op.ahead:
            built.covers.append(ReadCover(consumer.read.over, begins, lag))


def _add_named_barrier(built: EventGraph, protocol: Protocol, number: int) -> Fails | Unknown | None:
    """A generation completes with the arrival of that ordinal of each participant; a seed is an extra first arrival."""
    phase = f"named barrier {number}"
    built.events.append(phase)
    for role in protocol.roles:
        ops = [op for op in role.body if isinstance(op, NamedBarrierOp) and op.barrier == number]
        seeds = role.seeds.count(number)
        if len(ops) > 1 or (seeds and not ops) or seeds > 1:
            return Unknown(f"{role.name} arrives at named barrier {number} more than once per trip, or only initially")
        for op in ops:
            for use in range(built.period):
                _add_contribution(built, event_name(role, op), None, use, (phase, use + seeds, 1))
                if op.waits:
                    built.add_edge(phase, use + seeds, event_name(role, op, "left"), use)
    return None
