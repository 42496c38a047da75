"""Claims of one role at a time, in linear integer arithmetic over an arbitrary use.

u: a use of the ring, over all tiles. lost: uses that a cursor does not count, since it restarts or passes over the
tiles of others. T: trips of a tile, k: a use within it. Part of the obligations' meaning.
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
from argus.core.protocol.ring import Cursor, OnRing, Phase, Protocol, Read, Release, Role, WaitGroups
from argus.core.protocol.role_ops import Agent, Duties

_USE = sym(Symbol("u", "fresh", 0, None))
_LOST = sym(Symbol("lost", "fresh", 0, None))
_TRIPS = sym(Symbol("T", "size", 0, None))
_TRIP = sym(Symbol("k", "loop", 0, None))


@frozen
class Claim:
    """`goal` must follow from `hypotheses`; `what` is said where it does not."""

    name: str
    what: str
    goal: Cond
    hypotheses: tuple[Cond, ...] = ()


def empty_ahead(duty: Duties) -> int:
    """How many uses later than its own the slot is that the producer waits for: 0 in the intended protocol."""
    return (duty.wait.slot.offset - duty.agents[0].release.slot.offset) % duty.ring.stages


def ring_claims(protocol: Protocol, duty: Duties) -> Iterator[Claim]:
    """Slots and parities are those of the use, bytes and arrivals add up."""
    yield from _slots(protocol, duty)
    yield from _parities(protocol, duty)
    copied = sum(copy.size for copy in (*duty.copies, *(guest.copy for guest in duty.guests)))
    yield Claim("bytes", f"{duty.arrive.size} bytes announced a use, {copied} land", eq(duty.arrive.size, copied))
    releases = sum(each.release.count for each in (*duty.agents, *duty.givers))
    for what, arrivals, count in (
        ("releases", releases, duty.ring.empty),
        ("announcements", duty.arrive.count, duty.ring.full),
    ):
        yield Claim("arrivals", f"{arrivals} {what} a use for a count of {count}", eq(arrivals, count))
    if duty.role.finishes:
        last = sym(Symbol("j", "fresh", 0, duty.ring.stages - 1))
        released = lt(add(last, empty_ahead(duty) - duty.ring.stages), 0)
        yield Claim("exists", f"{duty.role.name} waits at the end for a release that never comes", released)


def _counted(protocol: Protocol, role: Role, cursor: Cursor) -> tuple[Index, tuple[Cond, ...]]:
    """The cursor's integer at use u, and what is known of the uses it has lost."""
    value = add(_USE, cursor.offset)
    if not protocol.persistent or not (cursor.restarts or (role.share[1] > 1 and not role.skips)):
        return value, ()
    return sub(value, _LOST), (le(_LOST, _USE),)


def _slots(protocol: Protocol, duty: Duties) -> Iterator[Claim]:
    """Every operation on one array of slots or barriers takes the same one for the same use, whatever its number is."""
    data = duty.copies[0].slot.offset if duty.copies else 0
    full, empty = duty.arrive.slot.offset, duty.agents[0].release.slot.offset
    owed: list[tuple[str, Role, Cursor, int]] = [("announcement", duty.role, duty.arrive.slot, full)]
    for copy in duty.copies:
        owed += [("copy", duty.role, copy.slot, data), ("signal of the copy", duty.role, copy.signal, full)]
    for guest in duty.guests:
        owed += [
            ("copy", guest.role, guest.copy.slot, data),
            ("signal of the copy", guest.role, guest.copy.signal, full),
        ]
    owed += [("release", giver.role, giver.release.slot, empty) for giver in duty.givers]
    owed.append(("wait for the empty slot", duty.role, duty.wait.slot, empty + empty_ahead(duty)))
    for agent in duty.agents:
        owed.append(("wait for the full slot", agent.role, agent.wait.slot, full))
        if agent.read is not None:
            owed.append(("read", agent.role, agent.read.slot, data))
        owed.append(("release", agent.role, agent.release.slot, empty))
    for what, role, cursor, offset in owed:
        value, known = _counted(protocol, role, cursor)
        stages = duty.ring.stages
        goal = eq(mod(value, stages), mod(add(_USE, offset), stages))
        yield Claim("slot", f"the slot of the {what} of {role.name} is another use's", goal, known)


def _parities(protocol: Protocol, duty: Duties) -> Iterator[Claim]:
    owed = [("empty", duty.role, duty.wait.phase, empty_ahead(duty), -1)]
    owed.extend(("full", agent.role, agent.wait.phase, 0, 0) for agent in duty.agents)
    for which, role, phase, ahead, plus in owed:
        written, known = _phase(protocol, role, phase, duty.ring.stages)
        meant = add(floordiv(add(_USE, ahead), duty.ring.stages), plus)
        goal = eq(mod(written, 2), mod(meant, 2))
        yield Claim("parity", f"{role.name} waits for another phase of the {which} barrier", goal, known)


def _phase(protocol: Protocol, role: Role, phase: Phase, stages: int) -> tuple[Index, tuple[Cond, ...]]:
    value, known = _counted(protocol, role, phase.cursor)
    return add(floordiv(value, stages), phase.plus), known


def trip_claims(protocol: Protocol, found: tuple[Duties, ...]) -> Iterator[Claim]:
    """Use k of a tile is filled if it is drained, and drained if it is filled."""
    nominal = sym(Symbol("K", "size", protocol.least, None))
    for duty in found:
        for agent in duty.agents:
            filled = lt(_TRIP, add(nominal, duty.role.trips))
            drained = lt(_TRIP, add(nominal, agent.role.trips))
            yield Claim("exists", f"{agent.role.name} drains a use that is never filled", filled, (drained,))
            yield Claim("exists", f"a use is filled that {agent.role.name} never drains", drained, (filled,))


def slot_claims(duty: Duties) -> Iterator[Claim]:
    """Order within a use, reads over at their release, the reuse of a slot, and waits at most a phase off."""
    for later in (duty.arrive, *duty.copies):
        yield _order("WAR", duty.role, duty.wait, later)
    earlier = sym(Symbol("v", "fresh", 0, None))
    stages = duty.ring.stages
    same = (lt(earlier, _USE), eq(mod(earlier, stages), mod(_USE, stages)))
    yield Claim("WAR", "the slot's last use is not the one waited for", le(earlier, sub(_USE, stages)), same)
    for agent in duty.agents:
        if agent.read is None:
            yield _order("release", agent.role, agent.wait, agent.release)
        else:
            yield _order("RAW", agent.role, agent.wait, agent.read)
            yield _order("release", agent.role, agent.read, agent.release)
            if agent.read.late:
                yield _covered(agent.role, agent.read, agent.release)
        if agent.role.share[1] > 1:
            yield _unambiguous(agent, duty)


def guest_claims(duty: Duties) -> Iterator[Claim]:
    """Rings that fill each other: a copy from elsewhere comes after its filler's own wait, for which every reader of
    the slot has given it back.
    """
    for guest in duty.guests:
        yield _order("WAR", guest.role, guest.wait, guest.copy)
        for agent in duty.agents:
            if agent.read is None:
                continue
            given = [op for op in agent.role.body if isinstance(op, Release) and op.ring == guest.wait.ring]
            what = f"{agent.role.name} never tells {guest.role.name} that it has read what that one copies"
            yield Claim("WAR", what, TRUE if len(given) == 1 else FALSE)
            for release in given:
                yield _order("release", agent.role, agent.read, release)
                if agent.read.late:
                    yield _covered(agent.role, agent.read, release)


def _order(name: str, role: Role, first: OnRing, second: OnRing) -> Claim:
    def when(op: OnRing) -> Index:
        return add(mul(sub(_TRIP, op.ahead), len(role.body)), _place(role, op))

    what = f"{role.name}: {type(second).__name__} of a use comes before its {type(first).__name__}"
    return Claim(name, what, lt(when(first), when(second)))


def _place(role: Role, op: OnRing | WaitGroups) -> int:
    return next(place for place, each in enumerate(role.body) if each is op)


def _covered(role: Role, read: Read, release: Release) -> Claim:
    """When use k is released, some wait for groups has been made that left fewer pending than were issued since."""
    trip = sub(_TRIP, release.ahead)
    ordinal = _issued(role, sub(_TRIP, read.ahead), _place(role, read))
    drained = all_of((le(_TRIPS, trip), lt(sub(_TRIP, read.ahead), _TRIPS)))
    ways = [drained]
    for op in role.body:
        if isinstance(op, WaitGroups):
            place = _place(role, op)
            last = trip if place < _place(role, release) else sub(trip, 1)
            last = minimum(last, sub(_TRIPS, 1 + op.ahead))
            done = sub(_issued(role, last, place), op.pending)
            ways.append(all_of((le(-op.ahead, last), lt(ordinal, done))))
    what = f"{role.name} releases a slot that a wgmma group may still read"
    return Claim("release", what, any_of(ways), (lt(_TRIP, _TRIPS),))


def _issued(role: Role, trip: Index, place: int) -> Index:
    """Groups issued in the tile before that place of that trip."""
    total: Index = const(0)
    for op in role.body:
        if isinstance(op, Read) and op.late:
            uses = add(trip, op.ahead + (_place(role, op) < place))
            total = add(total, maximum(0, minimum(uses, _TRIPS)))
    return total


def _unambiguous(agent: Agent, duty: Duties) -> Claim:
    """T1: before an agent that shares out the tiles waits for use u, the slot's last use is known to have landed.

    Known are its own uses: of this tile, which begins at `base`, and of those before the `gap` of others; with
    turns, all before the tile.
    """
    base, gap = (sym(Symbol(name, "fresh", 0, None)) for name in ("base", "gap"))
    last = sub(_USE, duty.ring.stages)
    known = [lt(last, 0), le(base, last), lt(last, sub(base, gap))]
    if agent.role.turn:
        known.append(lt(last, base))
    given = (le(base, _USE), le(gap, base))
    return Claim("window", f"{agent.role.name} may meet a parity two phases off", any_of(known), given)
