"""The nodes and edges of a protocol's event graph, and the windows to be checked on it.

Part of the event graph's meaning.
"""

from __future__ import annotations

from math import lcm

from attrs import Factory, define, frozen

from argus.core.protocol.distances import Edge
from argus.core.protocol.events import event, happenings, lags_of_cover, ordered_pairs
from argus.core.protocol.offsets import matching, named, slot_offset
from argus.core.protocol.outcome import Fails, Unknown
from argus.core.protocol.producers_consumers import Drainer, Party, loses, representatives
from argus.core.protocol.ring import Meet, Protocol, Role, WaitEmpty, WaitFull


@frozen
class Window:
    """A wait at `use` for the phase that use `named` completes; the phases beside it are `between` uses away."""

    begin: str
    end: str
    use: int
    phase: str
    named: int
    between: int


@frozen
class Contribution:
    """effect(use), which nothing but source(use) brings about, counts towards the phase that use `number` completes."""

    source: str
    effect: str
    use: int
    phase: str
    number: int
    between: int


@frozen
class Cover:
    """over(u) comes before the event of one of the uses u to u + span, which one depends on where the tile ends."""

    over: str
    event: str
    span: int


@define
class Built:
    """waiting: edges that hold within a tile, for deadlock. always: edges that hold across tiles too."""

    period: int
    events: list[str] = Factory(list[str])
    waiting: list[Edge] = Factory(list[Edge])
    always: list[Edge] = Factory(list[Edge])
    windows: list[Window] = Factory(list[Window])
    contributions: list[Contribution] = Factory(list[Contribution])
    covers: list[Cover] = Factory(list[Cover])

    def both(self, source: str, use: int, target: str, later: int) -> None:
        edge = (source, use % self.period, target, later - use)
        self.waiting.append(edge)
        # A path that goes back in uses may pass before the first use, where nothing happens.
        if later >= use:
            self.always.append(edge)


def build(protocol: Protocol, found: tuple[Party, ...]) -> Built | Fails | Unknown:
    """The graph, as few residues as its edges allow; or a cursor that no constant distance describes."""
    built = Built(lcm(*(ring.stages for ring in protocol.rings)))
    roles = representatives(protocol)
    assert not isinstance(roles, Unknown)
    for role in roles:
        _programme(built, role)
    for party in found:
        for part in (_full, _empty):
            fault = part(built, party)
            if fault is not None:
                return fault
        for drainer in party.drainers:
            _over(built, drainer)
    for number in range(len(protocol.meetings)):
        fault = _meeting(built, protocol, number)
        if fault is not None:
            return fault
    return _collapsed(built)


def _collapsed(built: Built) -> Built:
    """With one residue, if all look alike."""
    if not all(_alike(edges, built.period) for edges in (built.waiting, built.always)):
        return built
    first = [[edge for edge in edges if edge[1] == 0] for edges in (built.waiting, built.always)]
    windows = [window for window in built.windows if window.use == 0]
    parts = [part for part in built.contributions if part.use == 0]
    return Built(1, built.events, first[0], first[1], windows, parts, built.covers)


def _alike(edges: list[Edge], period: int) -> bool:
    shapes = [{(a, b, w) for a, r, b, w in edges if r == residue} for residue in range(period)]
    return all(shape == shapes[0] for shape in shapes)


def _programme(built: Built, role: Role) -> None:
    """Program order. Across tiles, and from the first use on, a(u) is before b(v) for v >= u only. Agents that share
    out the tiles keep the order of what precedes the turn's end, and without turns of nothing but one use.
    """
    built.events.extend(each.event for each in happenings(role))
    shared = role.share[1] > 1
    for a, b, weight in ordered_pairs(role):
        across = max(weight, 0)
        kept = not shared or across == 0 or (role.turn and not a.late)
        for residue in range(built.period):
            built.waiting.append((a.event, residue, b.event, weight))
            if kept:
                built.always.append((a.event, residue, b.event, across))


def _full(built: Built, party: Party) -> Fails | None:
    stages, role = party.stages, party.filler
    built.events.append(party.full)
    built.events.extend(copy.landed for copy in party.copies)
    if party.arrive is None:
        return Fails("deadlock", f"nobody arrives at the full barriers of ring {party.number}")
    target = slot_offset(party.arrive.slot, stages, loses=loses(role))
    if target is None:
        return _restarted(event(role, party.arrive))
    for use in range(built.period):
        _counts(built, event(role, party.arrive), None, use, (party.full, use, stages))
        for copy in party.copies:
            source = slot_offset(copy.op.signal, stages, loses=loses(copy.role))
            if source is None:
                return _restarted(copy.issued)
            built.both(copy.issued, use, copy.landed, use)
            number = matching(use, source, target, stages)
            _counts(built, copy.issued, copy.landed, use, (party.full, number, stages))
    for drainer in party.drainers:
        if drainer.wait is not None:
            fault = _wait(built, drainer.role, drainer.wait, (party.full, target, stages), -stages)
            if fault is not None:
                return fault
    return None


def _counts(built: Built, source: str, effect: str | None, use: int, to: tuple[str, int, int]) -> None:
    """An arrival or landing towards the phase `to`: its event, the use that completes it, uses between phases."""
    phase, number, stages = to
    built.both(effect or source, use, phase, number)
    built.contributions.append(Contribution(source, effect or source, use, phase, number, stages))


def _empty(built: Built, party: Party) -> Fails | None:
    stages = party.stages
    built.events.append(party.empty)
    releases = [(drainer.role, drainer.release) for drainer in party.drainers if drainer.release is not None]
    if not releases:
        return None
    offsets = [slot_offset(release.slot, stages, loses=loses(role)) for role, release in releases]
    target = offsets[0]
    # What nobody waits for may complete as it likes: a slot that another ring's barriers hand over.
    watched = party.wait is not None or party.filler.finishes
    for (role, release), source in zip(releases, offsets, strict=True):
        if source is None or target is None:
            return _restarted(event(role, release))
        for use in range(built.period):
            number = matching(use, source, target, stages)
            if watched:
                _counts(built, event(role, release), None, use, (party.empty, number, stages))
    if party.wait is None or target is None:
        return None
    return _wait(built, party.filler, party.wait, (party.empty, target, stages), -2 * stages)


def _wait(built: Built, role: Role, op: WaitEmpty | WaitFull, on: tuple[str, int, int], least: int) -> Fails | None:
    """Edges from the phase waited for. on: its event, the slot offset of what completes it, uses between phases."""
    phase, target, stages = on
    lost = loses(role)
    slot = slot_offset(op.slot, stages, loses=lost)
    begin, end = event(role, op, "begin"), event(role, op, "end")
    if slot is None:
        return _restarted(end)
    for use in range(built.period):
        ahead = named(slot, op.phase, use, target, stages, loses=lost, least=least)
        if ahead is None:
            return _restarted(end)
        if role.finishes and isinstance(op, WaitEmpty) and ahead > -stages:
            return Fails("deadlock", f"{end}: after the last tile it waits for a release that never comes")
        if isinstance(op, WaitFull) and ahead > 0:
            return Fails("exists", f"{end} of the last use waits for one that is never filled")
        built.both(phase, use + ahead, end, use)
        built.windows.append(Window(begin, end, use, phase, use + ahead, stages))
    return None


def _restarted(name: str) -> Fails:
    return Fails("cursor", f"the slot or parity of {name} depends on where the tile begins")


def _over(built: Built, drainer: Drainer) -> None:
    """A read is over before whatever follows a wait that covers its group; the next agent's tile may not follow.

    Where a tile ends before the wait, what an epilogue makes of its last use comes after all its reads, if those are
    made in its trips.
    """
    if drainer.look is None:
        return
    built.events.append(drainer.look.over)
    for use in range(built.period):
        built.both(drainer.look.read, use, drainer.look.over, use)
    for op, lag in lags_of_cover(drainer.role, drainer.look.op):
        begins = event(drainer.role, op, "begin" if isinstance(op, WaitEmpty | WaitFull) else "at")
        if lag == 0 or drainer.role.share[1] == 1:
            built.always.extend((drainer.look.over, use, begins, lag) for use in range(built.period))
        elif op.ahead < 0 <= drainer.look.op.ahead:
            built.covers.append(Cover(drainer.look.over, begins, lag))


def _meeting(built: Built, protocol: Protocol, number: int) -> Fails | Unknown | None:
    """A generation is complete once each participant's arrival of that ordinal is; a seed is an arrival before all."""
    phase = f"named barrier {number}"
    built.events.append(phase)
    for role in protocol.roles:
        ops = [op for op in role.body if isinstance(op, Meet) and op.barrier == number]
        seeds = role.seeds.count(number)
        if len(ops) > 1 or (seeds and not ops) or seeds > 1:
            return Unknown(f"{role.name} arrives at named barrier {number} more than once a trip, or only at first")
        for op in ops:
            for use in range(built.period):
                _counts(built, event(role, op), None, use, (phase, use + seeds, 1))
                if op.waits:
                    built.both(phase, use + seeds, event(role, op, "left"), use)
    return None
