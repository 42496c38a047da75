"""Mutations of ring protocols: every single edit, and the seeded bugs of proof-methods 5."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve

from argus.core.protocol.ring import (
    ArriveFull,
    Copy,
    Cursor,
    NamedBarrierOp,
    Op,
    Phase,
    Protocol,
    Read,
    Release,
    Role,
    WaitEmpty,
    WaitFull,
    WaitGroups,
    plain,
)

Edit = tuple[str, Protocol]


def edits(protocol: Protocol) -> tuple[Edit, ...]:
    """Every single edit, with its name; some leave the protocol correct."""
    return (*_of_rings(protocol), *_of_roles(protocol), *_of_all(protocol))


def apply_edits(protocol: Protocol, picks: Sequence[int]) -> Edit:
    """The protocol after some edits, each chosen by number among the edits of the protocol so far."""
    names: list[str] = []
    for pick in picks:
        every = edits(protocol)
        name, protocol = every[pick % len(every)]
        protocol = with_equal_consumers(protocol)
        names.append(name)
    return "; ".join(names), protocol


def with_equal_consumers(protocol: Protocol) -> Protocol:
    """Make all roles that divide the tiles among them do what the first one does."""
    first = next((role for role in protocol.roles if role.share[1] > 1), None)
    if first is None:
        return protocol
    roles = tuple(
        evolve(first, name=role.name, share=role.share) if role.share[1] > 1 else role for role in protocol.roles
    )
    return evolve(protocol, roles=roles)


def _of_rings(protocol: Protocol) -> Iterator[Edit]:
    for number, ring in enumerate(protocol.rings):
        for changed in (evolve(ring, full=ring.full + 1), evolve(ring, empty=ring.empty + 1), evolve(ring, empty=1)):
            if changed != ring:
                rings = (*protocol.rings[:number], changed, *protocol.rings[number + 1 :])
                yield f"ring {number}: counts {changed.full}, {changed.empty}", evolve(protocol, rings=rings)


def _of_roles(protocol: Protocol) -> Iterator[Edit]:
    for number, role in enumerate(protocol.roles):
        for name, changed in _role_edits(role):
            roles = (*protocol.roles[:number], changed, *protocol.roles[number + 1 :])
            yield f"{role.name}: {name}", evolve(protocol, roles=roles)


def _of_all(protocol: Protocol) -> Iterator[Edit]:
    """The same edit of every role, which often yields an equivalent protocol."""
    for by in (-1, 1):
        roles = tuple(evolve(role, trips=role.trips + by) for role in protocol.roles)
        yield f"all: trips {by:+}", evolve(protocol, roles=roles)
    kinds: tuple[tuple[str, tuple[type[Op], ...]], ...] = (
        ("data slots", (Copy, Read)),
        ("empty barriers", (WaitEmpty, Release)),
        ("cursors", (WaitEmpty, ArriveFull, Copy, WaitFull, Read, Release)),
    )
    for name, chosen in kinds:
        roles = tuple(
            evolve(role, body=tuple(_shifted(op) if isinstance(op, chosen) else op for op in role.body))
            for role in protocol.roles
        )
        yield f"all: {name} one on", evolve(protocol, roles=roles)
    roles = tuple(evolve(role, body=tuple(_restarted(op) for op in role.body)) for role in protocol.roles)
    yield "all: restarted", evolve(protocol, roles=roles)


def _role_edits(role: Role) -> Iterator[tuple[str, Role]]:
    for by in (-1, 1):
        yield f"trips {by:+}", evolve(role, trips=role.trips + by)
    if any(isinstance(op, WaitEmpty) for op in role.body):
        yield "finishes", evolve(role, finishes=True)
    for part in ("body", "before", "after"):
        ops: tuple[Op, ...] = getattr(role, part)
        for name, changed in _edits_of(ops, once=part != "body"):
            yield name, evolve(role, **{part: changed})
    if role.after:
        yield "after its trips: all before them", evolve(role, before=role.tile_ops, after=())
    if role.before:
        yield "before its trips: all after them", evolve(role, before=(), after=role.tile_ops)


def _edits_of(ops: tuple[Op, ...], *, once: bool) -> Iterator[tuple[str, tuple[Op, ...]]]:
    for place, op in enumerate(ops):
        before, after = ops[:place], ops[place + 1 :]
        for name, changed in _op_edits(op):
            if not (once and changed.ahead):
                yield f"{type(op).__name__} {name}", (*before, changed, *after)
        if len(ops) > 1 or once:
            yield f"no {type(op).__name__}", (*before, *after)
        if after:
            swapped = (*before, after[0], op, *after[1:])
            yield f"{type(after[0]).__name__} before {type(op).__name__}", swapped


def _shifted(op: Op) -> Op:
    """Use the next use's slot with an unchanged phase."""
    if isinstance(op, WaitGroups | NamedBarrierOp):
        return op
    return evolve(op, slot=evolve(op.slot, offset=op.slot.offset + 1))


def _restarted(op: Op) -> Op:
    """Restart cursors at each tile."""
    if isinstance(op, WaitGroups | NamedBarrierOp):
        return op
    op = evolve(op, slot=evolve(op.slot, restarts=True))
    match op:
        case WaitEmpty() | WaitFull():
            return evolve(op, phase=evolve(op.phase, cursor=evolve(op.phase.cursor, restarts=True)))
        case Copy():
            return evolve(op, signal=evolve(op.signal, restarts=True))
        case _:
            return op


def _op_edits(op: Op) -> Iterator[tuple[str, Op]]:
    match op:
        case WaitEmpty() | WaitFull():
            yield from _wait_edits(op)
        case ArriveFull(size=size):
            for other in sorted({size // 2, 2 * size} - {size}):
                yield f"of {other} bytes", evolve(op, size=other)
            yield "twice", evolve(op, count=2)
        case Copy(signal=signal):
            yield "signals the next barrier", evolve(op, signal=evolve(signal, offset=signal.offset + 1))
            yield "of twice the bytes", evolve(op, size=2 * op.size)
        case WaitGroups(pending=pending):
            yield f"pending {pending + 1}", evolve(op, pending=pending + 1)
        case Release(count=count, ahead=ahead):
            yield f"count {count + 1}", evolve(op, count=count + 1)
            yield "later", evolve(op, ahead=ahead - 1)
            if ahead < 0:
                yield "earlier", evolve(op, ahead=ahead + 1)
        case Read(late=late):
            yield "sync" if late else "late", evolve(op, late=not late)
        case NamedBarrierOp():
            pass
    if not isinstance(op, WaitGroups | NamedBarrierOp):
        yield "of the next slot", _shifted(op)
        yield "of a restarted slot", evolve(op, slot=evolve(op.slot, restarts=True))


def _wait_edits(op: WaitEmpty | WaitFull) -> Iterator[tuple[str, Op]]:
    phase = op.phase
    for by in (-1, 1, 2):
        yield f"phase {by:+}", evolve(op, phase=evolve(phase, plus=phase.plus + by))
    later = Phase(Cursor(phase.cursor.offset + 1, phase.cursor.restarts), phase.plus)
    yield "of the next use's phase", evolve(op, phase=later)
    yield "of the next use", evolve(op, phase=later, slot=evolve(op.slot, offset=op.slot.offset + 1))
    yield "of a restarted phase", evolve(op, phase=evolve(phase, cursor=evolve(phase.cursor, restarts=True)))
    yield "restarted", _restarted(op)


def _with(protocol: Protocol, name: str, **changes: object) -> Protocol:
    """The protocol with some fields of one role changed."""
    roles = tuple(evolve(role, **changes) if role.name == name else role for role in protocol.roles)
    return evolve(protocol, roles=roles)


def _replace_op(protocol: Protocol, name: str, place: int, op: Op) -> Protocol:
    """The protocol with one operation of one role's body replaced."""
    role = next(role for role in protocol.roles if role.name == name)
    return _with(protocol, name, body=(*role.body[:place], op, *role.body[place + 1 :]))


def seeded(stages: int = 3) -> tuple[Edit, ...]:
    """Seeded bugs of a ring with two consumers and one wgmma group in flight."""
    good = plain(stages, consumers=2, lag=1)
    halves = plain(stages, consumers=2, lag=1, parts=(1, 1))
    restarted = tuple(_restarted(op) for op in good.roles[1].body)
    return (
        ("stale parity", _replace_op(good, "C0", 0, WaitFull(phase=Phase(plus=-1)))),
        ("wrong stage", _replace_op(good, "C0", 0, WaitFull(slot=Cursor(1)))),
        ("missing empty wait", _with(good, "P", body=good.roles[0].body[1:])),
        ("release before wgmma wait", _replace_op(good, "C0", 3, Release())),
        ("off-by-one trip (P: K-1)", _with(good, "P", trips=-1)),
        ("off-by-one trip (P: K+1)", _with(good, "P", trips=1)),
        ("phase not carried", _with(good, "C0", body=restarted)),
        ("expect_tx half", _replace_op(halves, "P", 1, ArriveFull(1))),
        ("empty init 1 for 2 consumers", evolve(good, rings=(evolve(good.rings[0], empty=1),))),
        ("consumer exits early", _with(good, "C1", trips=-1)),
        ("lag not below the stages", plain(stages, consumers=2, lag=stages)),
    )
