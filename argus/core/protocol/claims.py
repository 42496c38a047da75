"""Role-local claims in linear integer arithmetic over an arbitrary use.

u: a use of the ring, over all tiles. lost: uses that a cursor does not count, since it restarts or skips the tiles of
others. T: trips of a tile, k: a use within it. Part of the obligation semantics.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from argus.core.algebra import (
    FALSE,
    TRUE,
    add,
    all_of,
    any_of,
    const,
    eq,
    floordiv,
    le,
    lt,
    maximum,
    minimum,
    mod,
    mul,
    sub,
    sym,
)
from argus.core.index import Cond, Index, Symbol
from argus.core.protocol.ring import Cursor, Phase, Protocol, Read, Release, RingOp, Role, WaitGroups
from argus.core.protocol.role_ops import ConsumerOps, RingOps

_USE = sym(Symbol("u", "fresh", 0, None))
_LOST = sym(Symbol("lost", "fresh", 0, None))
_TRIPS = sym(Symbol("T", "size", 0, None))
_TRIP = sym(Symbol("k", "loop", 0, None))


@frozen
class Claim:
    """`goal` must follow from `hypotheses`. what: the failure as a sentence."""

    name: str
    what: str
    goal: Cond
    hypotheses: tuple[Cond, ...] = ()


def empty_slot_offset(ring_ops: RingOps) -> int:
    """By how many uses the slot for which the producer waits is later than its own: 0 in the standard protocol."""
    return (ring_ops.wait.slot.offset - ring_ops.agents[0].release.slot.offset) % ring_ops.ring.stages


def ring_claims(protocol: Protocol, ring_ops: RingOps) -> Iterator[Claim]:
    """Slots and parities are those of the use; bytes and arrivals match the counts."""
    yield from _slot_claims(protocol, ring_ops)
    yield from _parity_claims(protocol, ring_ops)
    copied = sum(copy.size for copy in (*ring_ops.copies, *(remote.copy for remote in ring_ops.remote_copies)))
    yield Claim(
        "bytes", f"{ring_ops.arrive.size} bytes announced per use, {copied} copied", eq(ring_ops.arrive.size, copied)
    )
    releases = sum(each.release.count for each in (*ring_ops.agents, *ring_ops.remote_releases))
    for what, arrivals, count in (
        ("releases", releases, ring_ops.ring.empty),
        ("announcements", ring_ops.arrive.count, ring_ops.ring.full),
    ):
        yield Claim("arrivals", f"{arrivals} {what} per use for a count of {count}", eq(arrivals, count))
    if ring_ops.role.finishes:
        last = sym(Symbol("j", "fresh", 0, ring_ops.ring.stages - 1))
        released = lt(add(last, empty_slot_offset(ring_ops) - ring_ops.ring.stages), 0)
        yield Claim("exists", f"{ring_ops.role.name} waits at the end for a release that never happens", released)


def _cursor_value(protocol: Protocol, role: Role, cursor: Cursor) -> tuple[Index, tuple[Cond, ...]]:
    """The cursor's integer at use u, and the facts about the uses that it does not count."""
    value = add(_USE, cursor.offset)
    if not protocol.persistent or not (cursor.restarts or (role.share[1] > 1 and not role.skips)):
        return value, ()
    return sub(value, _LOST), (le(_LOST, _USE),)


def _slot_claims(protocol: Protocol, ring_ops: RingOps) -> Iterator[Claim]:
    """All operations of one use on one array of slots or barriers take the same element."""
    data = ring_ops.copies[0].slot.offset if ring_ops.copies else 0
    full, empty = ring_ops.arrive.slot.offset, ring_ops.agents[0].release.slot.offset
    cursors: list[tuple[str, Role, Cursor, int]] = [("announcement", ring_ops.role, ring_ops.arrive.slot, full)]
    for copy in ring_ops.copies:
        cursors += [("copy", ring_ops.role, copy.slot, data), ("signal of the copy", ring_ops.role, copy.signal, full)]
    for remote in ring_ops.remote_copies:
        cursors += [
            ("copy", remote.role, remote.copy.slot, data),
            ("signal of the copy", remote.role, remote.copy.signal, full),
        ]
    cursors += [("release", remote.role, remote.release.slot, empty) for remote in ring_ops.remote_releases]
    cursors.append(("wait for the empty slot", ring_ops.role, ring_ops.wait.slot, empty + empty_slot_offset(ring_ops)))
    for agent in ring_ops.agents:
        cursors.append(("wait for the full slot", agent.role, agent.wait.slot, full))
        if agent.read is not None:
            cursors.append(("read", agent.role, agent.read.slot, data))
        cursors.append(("release", agent.role, agent.release.slot, empty))
    for what, role, cursor, offset in cursors:
        value, known = _cursor_value(protocol, role, cursor)
        stages = ring_ops.ring.stages
        goal = eq(mod(value, stages), mod(add(_USE, offset), stages))
        yield Claim("slot", f"the slot of the {what} of {role.name} is that of another use", goal, known)


def _parity_claims(protocol: Protocol, ring_ops: RingOps) -> Iterator[Claim]:
    waits = [("empty", ring_ops.role, ring_ops.wait.phase, empty_slot_offset(ring_ops), -1)]
    waits.extend(("full", agent.role, agent.wait.phase, 0, 0) for agent in ring_ops.agents)
    for which, role, phase, ahead, plus in waits:
        written, known = _phase(protocol, role, phase, ring_ops.ring.stages)
        meant = add(floordiv(add(_USE, ahead), ring_ops.ring.stages), plus)
        goal = eq(mod(written, 2), mod(meant, 2))
        yield Claim("parity", f"{role.name} waits for another phase of the {which} barrier", goal, known)


def _phase(protocol: Protocol, role: Role, phase: Phase, stages: int) -> tuple[Index, tuple[Cond, ...]]:
    value, known = _cursor_value(protocol, role, phase.cursor)
    return add(floordiv(value, stages), phase.plus), known


def trip_claims(protocol: Protocol, found: tuple[RingOps, ...]) -> Iterator[Claim]:
    """Use k of a tile is filled if and only if it is consumed."""
    nominal = sym(Symbol("K", "size", protocol.min_trips, None))
    for ring_ops in found:
        for agent in ring_ops.agents:
            filled = lt(_TRIP, add(nominal, ring_ops.role.trips))
            drained = lt(_TRIP, add(nominal, agent.role.trips))
            yield Claim("exists", f"{agent.role.name} consumes a use that is never filled", filled, (drained,))
            yield Claim("exists", f"a use is filled that {agent.role.name} never consumes", drained, (filled,))


def slot_claims(ring_ops: RingOps) -> Iterator[Claim]:
    """Order within a use, completion of reads before the release, reuse of slots, and waits at most one phase off."""
    for later in (ring_ops.arrive, *ring_ops.copies):
        yield _order_claim("WAR", ring_ops.role, ring_ops.wait, later)
    earlier = sym(Symbol("v", "fresh", 0, None))
    stages = ring_ops.ring.stages
    same = (lt(earlier, _USE), eq(mod(earlier, stages), mod(_USE, stages)))
    yield Claim("WAR", "the slot's previous use is not the awaited one", le(earlier, sub(_USE, stages)), same)
    for agent in ring_ops.agents:
        if agent.read is None:
            yield _order_claim("release", agent.role, agent.wait, agent.release)
        else:
            yield _order_claim("RAW", agent.role, agent.wait, agent.read)
            yield _order_claim("release", agent.role, agent.read, agent.release)
            if agent.read.late:
                yield _release_claim(agent.role, agent.read, agent.release)
        if agent.role.share[1] > 1:
            yield _window_claim(agent, ring_ops)


def guest_claims(ring_ops: RingOps) -> Iterator[Claim]:
    """Rings of a cluster: a remote copy follows its producer's wait, for which every reader releases the slot."""
    for remote in ring_ops.remote_copies:
        yield _order_claim("WAR", remote.role, remote.wait, remote.copy)
        for agent in ring_ops.agents:
            if agent.read is None:
                continue
            given = [op for op in agent.role.body if isinstance(op, Release) and op.ring == remote.wait.ring]
            what = f"{agent.role.name} never releases to {remote.role.name} the slot into which it copies"
            yield Claim("WAR", what, TRUE if len(given) == 1 else FALSE)
            for release in given:
                yield _order_claim("release", agent.role, agent.read, release)
                if agent.read.late:
                    yield _release_claim(agent.role, agent.read, release)


def _order_claim(name: str, role: Role, first: RingOp, second: RingOp) -> Claim:
    def when(op: RingOp) -> Index:
        return add(mul(sub(_TRIP, op.ahead), len(role.body)), _place(role, op))

    what = f"{role.name}: {type(second).__name__} of a use comes before its {type(first).__name__}"
    return Claim(name, what, lt(when(first), when(second)))


def _place(role: Role, op: RingOp | WaitGroups) -> int:
    return next(place for place, each in enumerate(role.body) if each is op)


def _release_claim(role: Role, read: Read, release: Release) -> Claim:
    """Before use k is released, some wait left fewer groups pending than were issued after the read."""
    trip = sub(_TRIP, release.ahead)
    ordinal = _issued_groups(role, sub(_TRIP, read.ahead), _place(role, read))
    drained = all_of((le(_TRIPS, trip), lt(sub(_TRIP, read.ahead), _TRIPS)))
    ways = [drained]
    for op in role.body:
        if isinstance(op, WaitGroups):
            place = _place(role, op)
            last = trip if place < _place(role, release) else sub(trip, 1)
            last = minimum(last, sub(_TRIPS, 1 + op.ahead))
            done = sub(_issued_groups(role, last, place), op.pending)
            ways.append(all_of((le(-op.ahead, last), lt(ordinal, done))))
    what = f"{role.name} releases a slot that a wgmma group may still read"
    return Claim("release", what, any_of(ways), (lt(_TRIP, _TRIPS),))


def _issued_groups(role: Role, trip: Index, place: int) -> Index:
    """The number of groups issued in the tile before that position of that trip."""
    total: Index = const(0)
    for op in role.body:
        if isinstance(op, Read) and op.late:
            uses = add(trip, op.ahead + (_place(role, op) < place))
            total = add(total, maximum(0, minimum(uses, _TRIPS)))
    return total


def _window_claim(agent: ConsumerOps, ring_ops: RingOps) -> Claim:
    """T1: before an agent that takes every n-th tile waits for use u, the slot's previous use is known to be complete.

    Known are its own uses: of this tile, which begins at `base`, and of those before the `gap` of other agents' uses;
    with turns, all uses before the tile.
    """
    base, gap = (sym(Symbol(name, "fresh", 0, None)) for name in ("base", "gap"))
    last = sub(_USE, ring_ops.ring.stages)
    known = [lt(last, 0), le(base, last), lt(last, sub(base, gap))]
    if agent.role.turn:
        known.append(lt(last, base))
    given = (le(base, _USE), le(gap, base))
    return Claim("window", f"a barrier may be two phases ahead of a wait of {agent.role.name}", any_of(known), given)
