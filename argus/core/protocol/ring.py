"""Data types for ring protocols: the waits, announcements, copies, reads and releases of each role, with cursors.

A *use* of a ring is one fill and consumption of one slot. Every ring has one use per trip of a tile; use `u` counts
them over all tiles, `k` within the tile. The semantics of the operations is defined elsewhere. The standard protocol
has `slot = u % stages`, full-barrier phase `u // stages`, and empty-barrier phase `u // stages - 1`.
"""

from __future__ import annotations

from attrs import evolve, field, frozen

from argus.core.diagnostic import InternalError


@frozen
class Cursor:
    """The integer `n = u + offset`, or `k + offset` where the cursor restarts at each tile."""

    offset: int = 0
    restarts: bool = False


@frozen
class Phase:
    """The phase `n // stages + plus`, of which hardware compares the parity."""

    cursor: Cursor = field(factory=Cursor)
    plus: int = 0


@frozen
class WaitEmpty:
    """A wait until the slot's empty barrier has completed the phase. ahead: as in `Role`."""

    ring: int = 0
    ahead: int = 0
    slot: Cursor = field(factory=Cursor)
    phase: Phase = field(factory=lambda: Phase(plus=-1))


@frozen
class ArriveFull:
    """`count` arrivals at the slot's full barrier, which first announce `size` bytes in total."""

    size: int
    ring: int = 0
    ahead: int = 0
    slot: Cursor = field(factory=Cursor)
    count: int = 1


@frozen
class Copy:
    """An asynchronous copy of `size` bytes into one part of the slot; it completes on the full barrier of `signal`."""

    size: int
    part: int = 0
    ring: int = 0
    ahead: int = 0
    slot: Cursor = field(factory=Cursor)
    signal: Cursor = field(factory=Cursor)


@frozen
class WaitFull:
    """A wait until the slot's full barrier has completed the phase."""

    ring: int = 0
    ahead: int = 0
    slot: Cursor = field(factory=Cursor)
    phase: Phase = field(factory=Phase)


@frozen
class Read:
    """A read of all parts of the slot; if `late`, by one wgmma group, which lasts until a wait covers it."""

    ring: int = 0
    ahead: int = 0
    slot: Cursor = field(factory=Cursor)
    late: bool = True


@frozen
class WaitGroups:
    """A wait until at most `pending` wgmma groups of this role are in flight. `ahead` selects its trips."""

    pending: int = 0
    ahead: int = 0


@frozen
class Release:
    """`count` arrivals at the slot's empty barrier. `ahead` is the negated lag."""

    ring: int = 0
    ahead: int = 0
    slot: Cursor = field(factory=Cursor)
    count: int = 1


@frozen
class NamedBarrierOp:
    """An arrival at a named barrier and, if `waits`, a wait until all participants have arrived. Once per trip."""

    barrier: int
    waits: bool = True

    @property
    def ahead(self) -> int:
        return 0


Op = WaitEmpty | ArriveFull | Copy | WaitFull | Read | WaitGroups | Release | NamedBarrierOp
RingOp = WaitEmpty | ArriveFull | Copy | WaitFull | Read | Release


@frozen
class Role:
    """The operations of one agent, tile by tile.

    A tile of T trips runs the body for i = -max(ahead), ..., T - 1 - min(ahead); an operation is on use
    `k = i + ahead` of the tile and is skipped unless 0 <= k < T, which yields prologue and epilogue. Before trip
    T, the role waits for all its wgmma groups.

    trips: the difference of T from the nominal count. share: (i, n) takes only the tiles i, i + n, ...
    skips: its cursors advance over the tiles of others. turn: in the order of shares, an agent enters a tile
    once the one before has left its body. seeds: arrivals at named barriers before the first tile. finishes:
    after the last tile, it waits for the empty barriers of all slots in order. before, after: the operations once per
    tile, on rings with one use per tile, before the first trip and after the last.
    """

    name: str
    body: tuple[Op, ...]
    trips: int = 0
    share: tuple[int, int] = (0, 1)
    skips: bool = True
    turn: bool = False
    seeds: tuple[int, ...] = ()
    finishes: bool = False
    before: tuple[Op, ...] = ()
    after: tuple[Op, ...] = ()

    @property
    def tile_ops(self) -> tuple[Op, ...]:
        return (*self.before, *self.after)


@frozen
class Ring:
    """stages: the number of slots. parts: the bytes of each part of a slot; a ring without parts only orders its roles.

    full, empty: the arrival counts of the barriers. per_tile: one use per tile, instead of one per trip. fewer: the
    number of trips of a tile minus its number of uses.
    """

    stages: int
    parts: tuple[int, ...] = (1,)
    full: int = 1
    empty: int = 1
    per_tile: bool = False
    fewer: int = 0


def _valid_roles(instance: Protocol, _attribute: object, roles: tuple[Role, ...]) -> None:
    names = [role.name for role in roles]
    if len(set(names)) != len(names) or not all(names) or "engine" in names:
        raise InternalError(f"roles need distinct names other than 'engine': {names}")
    for role in roles:
        for op in (*role.body, *role.tile_ops):
            _valid(instance, op)
        for op in role.body:
            if not isinstance(op, WaitGroups | NamedBarrierOp) and instance.rings[op.ring].per_tile:
                raise InternalError(f"a ring with one use per tile, in a trip: {op}")
        for op in role.tile_ops:
            if isinstance(op, WaitGroups | NamedBarrierOp) or not instance.rings[op.ring].per_tile or op.ahead:
                raise InternalError(f"not an operation on a ring with one use per tile: {op}")


def _valid(protocol: Protocol, op: Op) -> None:
    if isinstance(op, NamedBarrierOp):
        good = 0 <= op.barrier < len(protocol.named_barriers)
    elif isinstance(op, WaitGroups):
        good = op.pending >= 0
    else:
        good = 0 <= op.ring < len(protocol.rings)
        if good and isinstance(op, Copy):
            good = 0 <= op.part < len(protocol.rings[op.ring].parts) and op.size >= 1
        if good and isinstance(op, Release | ArriveFull):
            good = op.count >= 1
    if not good:
        raise InternalError(f"no such ring, part or barrier, or a count below one: {op}")


@frozen
class Protocol:
    """Rings and the roles that use them.

    named_barriers: the number of participants of each. min_trips: the least nominal trip count of a tile. persistent:
    any number of tiles, with any trip counts; otherwise one tile.
    Raises InternalError if an operation refers to a ring, part or barrier that does not exist.
    """

    rings: tuple[Ring, ...]
    named_barriers: tuple[int, ...] = field(default=(), kw_only=True)
    roles: tuple[Role, ...] = field(validator=_valid_roles)
    min_trips: int = 1
    persistent: bool = True


def trip_rings(protocol: Protocol) -> Protocol:
    """The protocol restricted to rings with one use per trip."""
    roles = tuple(evolve(role, before=(), after=()) for role in protocol.roles)
    return evolve(protocol, roles=roles)


def tile_rings(protocol: Protocol) -> Protocol | None:
    """The protocol restricted to rings with one use per tile, with tiles as the trips of one tile; None without any."""
    if not any(role.tile_ops for role in protocol.roles):
        return None
    roles = tuple(
        evolve(role, body=role.tile_ops, before=(), after=(), trips=0, turn=False, seeds=()) for role in protocol.roles
    )
    rings = tuple(evolve(ring, per_tile=not ring.per_tile, fewer=0) for ring in protocol.rings)
    return evolve(protocol, rings=rings, roles=tuple(r for r in roles if r.body), named_barriers=(), persistent=False)


def producer(*, parts: tuple[int, ...] = (1,), name: str = "P") -> Role:
    """A producer: waits for the slot, announces all bytes, copies each part."""
    copies = tuple(Copy(size, part) for part, size in enumerate(parts))
    return Role(name, (WaitEmpty(), ArriveFull(sum(parts)), *copies))


def consumer(name: str, *, lag: int = 0, pending: int = 0, late: bool = True) -> Role:
    """A consumer: waits for data, reads, waits for all but `pending` groups, releases the slot of `lag` uses ago."""
    wait = (WaitGroups(pending),) if late else ()
    return Role(name, (WaitFull(), Read(late=late), *wait, Release(ahead=-lag)))


def plain(
    stages: int, *, consumers: int = 1, lag: int = 0, pending: int | None = None, parts: tuple[int, ...] = (1,)
) -> Protocol:
    """The ring of a Hopper GEMM: one producer, and all consumers consume every use. pending: by default the lag."""
    pending = lag if pending is None else pending
    consumer_roles = tuple(consumer(f"C{i}", lag=lag, pending=pending) for i in range(consumers))
    return Protocol((Ring(stages, parts, empty=consumers),), (producer(parts=parts), *consumer_roles))


def pingpong(stages: int, *, lag: int = 1, turns: bool = True, skips: bool = True) -> Protocol:
    """Two consumers that alternate between tiles, and skip each other's uses."""
    consumer_roles = tuple(
        evolve(consumer(f"C{i}", lag=lag, pending=lag), share=(i, 2), turn=turns, skips=skips) for i in range(2)
    )
    return Protocol((Ring(stages),), (producer(), *consumer_roles))


def clustered(
    stages: int, *, blocks: int = 2, consumers: int = 1, lag: int = 0, pending: int | None = None
) -> Protocol:
    """The rings of a cluster, one per block: part 0 of a slot is from its own producer, part 1 + i is multicast by i.

    Every consumer releases its slot to every producer.
    """
    pending = lag if pending is None else pending
    roles: list[Role] = []
    for own in range(blocks):
        sent = tuple(Copy(1, 1 + own, ring) for ring in range(blocks))
        fill = (WaitEmpty(own), ArriveFull(1 + blocks, own), Copy(1, 0, own), *sent)
        roles.append(Role(f"P{own}", fill, finishes=True))
        gives = tuple(Release(ring, -lag) for ring in range(blocks))
        consume = (WaitFull(own), Read(own), WaitGroups(pending), *gives)
        roles.extend(Role(f"C{own}.{i}", consume) for i in range(consumers))
    rings = (Ring(stages, (1,) * (1 + blocks), empty=consumers * blocks),) * blocks
    return Protocol(rings, tuple(roles))


def _fill(ring: int, ahead: int) -> tuple[Op, ...]:
    return WaitEmpty(ring, ahead), ArriveFull(1, ring, ahead), Copy(1, 0, ring, ahead)


def attention(k_stages: int, v_stages: int, *, order: str = "K(i+1) V(i)", persistent: bool = False) -> Protocol:
    """A K and a V ring; the consumer uses the next K before it uses V.

    order: of the producer's fills, "K(i+1) V(i)", "K(i) V(i)" or "V(i) K(i)".
    """
    fills = {
        "K(i+1) V(i)": (*_fill(0, 1), *_fill(1, 0)),
        "K(i) V(i)": (*_fill(0, 0), *_fill(1, 0)),
        "V(i) K(i)": (*_fill(1, 0), *_fill(0, 0)),
    }
    consume = (
        *(WaitFull(0, 1), Read(0, 1), WaitGroups(0, 1), Release(0, 1)),
        *(WaitFull(1, 0), Read(1, 0), WaitGroups(0, 0), Release(1, 0)),
    )
    rings = (Ring(k_stages), Ring(v_stages))
    return Protocol(rings, (Role("P", fills[order]), Role("C", consume)), persistent=persistent)


def flash(
    k_stages: int, v_stages: int, *, q_stages: int = 1, turns: bool = True, late: bool = True, persistent: bool = True
) -> Protocol:
    """Attention with queries held for a tile: K(i + 1) is used together with V(i), by two consumers that take turns.

    late: the queries are released at the end of a tile, after all trips. Reads end at the release of their slots.
    """
    fill = (WaitEmpty(2), ArriveFull(1, 2), Copy(1, 0, 2))
    producer = Role("P", (*_fill(0, 0), *_fill(1, 0)), before=fill)
    consumer_roles: list[Role] = []
    for agent in range(2):
        enter, leave = ((WaitEmpty(3), ArriveFull(0, 3)), (WaitFull(3), Release(3)))[agent] if turns else (None, None)
        body = (
            *(() if enter is None else (enter,)),
            *(WaitFull(0, 1), Read(0, 1, late=False), WaitFull(1), Read(1, late=False)),
            *(() if leave is None else (leave,)),
            *(Release(0, 1), Release(1)),
        )
        held = (Read(2, late=False), Release(2))
        consumer_roles.append(Role(f"C{agent}", body, before=(WaitFull(2),), after=held))
    if not late:
        consumer_roles = [evolve(role, before=(*role.before, *role.after), after=()) for role in consumer_roles]
    rings = (Ring(k_stages, empty=2), Ring(v_stages, empty=2), Ring(q_stages, empty=2, per_tile=True))
    order = (Ring(1, (), fewer=1),) if turns else ()
    return Protocol((*rings, *order), (producer, *consumer_roles), persistent=persistent)


def held_per_tile(
    stages: int, held_stages: int = 1, *, consumers: int = 1, lag: int = 0, persistent: bool = True
) -> Protocol:
    """The ring of a GEMM, together with a ring with one use per tile."""
    base = plain(stages, consumers=consumers, lag=lag)
    producer = evolve(base.roles[0], before=(WaitEmpty(1), ArriveFull(1, 1), Copy(1, 0, 1)))
    consumer_roles = tuple(
        evolve(role, before=(WaitFull(1),), after=(Read(1, late=False), Release(1))) for role in base.roles[1:]
    )
    rings = (*base.rings, Ring(held_stages, empty=consumers, per_tile=True))
    return evolve(base, rings=rings, roles=(producer, *consumer_roles), persistent=persistent)


def alternating(*, seeded: bool = True) -> Protocol:
    """Two groups that alternate by two named barriers of two participants; the first turn is an initial arrival."""
    first = Role("A", (NamedBarrierOp(0), NamedBarrierOp(1, waits=False)))
    second = Role("B", (NamedBarrierOp(1), NamedBarrierOp(0, waits=False)), seeds=(0,) if seeded else ())
    return Protocol((), (first, second), named_barriers=(2, 2))
