"""What a role does to barriers and rings, in order: the statements that others can notice, by use.

A role is: what comes before its tiles; of each tile, what comes before the loop over uses, the loop, what comes after;
what comes after all tiles. An event of use V stands on slot V % S; in the loop V is base + k + ahead.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from argus.core import algebra
from argus.core.index import Bin, Cond, Const, Index
from argus.core.ir import (
    Arrive,
    Await,
    Buffer,
    Copy,
    For,
    If,
    Mma,
    One,
    Role,
    Stmt,
    Sync,
    View,
    Wait,
    bodies,
    static,
    walk,
)
from argus.core.proof.sync.roles.context import refuse
from argus.core.walk import symbols


@frozen(eq=False)
class Waited:
    """Until the barrier of use `use` has completed `phase`. use: None on one barrier, where the phase alone tells."""

    stmt: Await
    barrier: Buffer
    use: Index | None
    phase: Index


@frozen(eq=False)
class Arrived:
    """`count` arrivals of the agent at the barrier of use `use`, which announce `size` bytes."""

    stmt: Arrive
    barrier: Buffer
    use: Index | None
    count: int
    size: int


@frozen(eq=False)
class Filled:
    """A copy into the slot of use `use` of a ring's buffer, which lands on the barrier of use `signal`."""

    stmt: Copy
    buffer: Buffer
    use: Index | None
    barrier: Buffer
    signal: Index | None


@frozen(eq=False)
class Multiplied:
    """One group of the warpgroup's queue. views: of shared memory, that it reads."""

    stmt: Mma
    views: tuple[View, ...]


@frozen(eq=False)
class Looked:
    """An ordinary read of the slot of use `use` by all threads of the agent, each its part."""

    stmt: Copy
    buffer: Buffer
    use: Index | None


@frozen(eq=False)
class Met:
    """All threads of the agent meet."""

    stmt: Sync


@frozen(eq=False)
class Drained:
    """Until `pending` groups are left."""

    stmt: Wait


@frozen(eq=False)
class Turned:
    """A wait for, or arrivals at, a barrier that no use chooses: the order of agents."""

    stmt: Await | Arrive
    count: int


Happening = Waited | Arrived | Filled | Multiplied | Looked | Met | Drained | Turned


def reached(stmt: Stmt) -> Index | None:
    """The rank of the block at whose barrier a statement arrives; None for its own."""
    return stmt.event.peer if isinstance(stmt, Arrive) else None


@frozen(eq=False)
class Event:
    happening: Happening
    guard: Cond

    @property
    def stmt(self) -> Stmt:
        return self.happening.stmt


@frozen(eq=False)
class Laps:
    """A role's body without counters. tiles: None if there is one tile; then `before` and `after` are empty."""

    before: tuple[Stmt, ...]
    tiles: For | None
    tile: tuple[Stmt, ...]
    after: tuple[Stmt, ...]


def laps(body: tuple[Stmt, ...], tiles: For | None) -> Laps:
    if tiles is None:
        return Laps((), None, body, ())
    at = next(place for place, stmt in enumerate(body) if isinstance(stmt, For) and stmt.symbol == tiles.symbol)
    found = body[at]
    assert isinstance(found, For)
    return Laps(body[:at], found, found.body, body[at + 1 :])


def tiles_of(role: Role) -> For | None:
    """The loop over this block's tiles: the one at the level of the role that holds a loop over uses.

    Raises RefusedError if there are two.
    """
    found = [stmt for stmt in role.body if isinstance(stmt, For) and _nests(stmt)]
    if len(found) > 1:
        refuse(found[1], f"`{role.name}` has two loops over tiles")
    return found[0] if found else None


def _nests(loop: For) -> bool:
    return any(isinstance(stmt, For) and any(map(_touches, walk(stmt.body))) for stmt in walk(loop.body))


def use_loops(tile: tuple[Stmt, ...]) -> tuple[For, ...]:
    """The loops of a tile that touch barriers, in order. Raises RefusedError if one is inside another or a branch."""
    found = tuple(stmt for stmt in walk(tile) if isinstance(stmt, For) and any(map(_touches, walk(stmt.body))))
    for loop in found:
        if not any(stmt is loop for stmt in tile):
            refuse(loop, "a loop that works on barriers, inside another or a branch")
        if loop.step not in (1, -1):
            refuse(loop, "a loop over uses that does not count by one")
    return found


def under_condition(tile: tuple[Stmt, ...]) -> If | None:
    """The one branch of a tile that holds its loops over uses; None if they stand in the tile itself."""
    found = [
        stmt
        for stmt in tile
        if isinstance(stmt, If)
        and any(isinstance(s, For) and any(map(_touches, walk(s.body))) for s in walk(stmt.then))
    ]
    return found[0] if len(found) == 1 else None


def _touches(stmt: Stmt) -> bool:
    return isinstance(stmt, Await | Arrive) or (isinstance(stmt, Copy) and stmt.signal is not None)


def events(body: tuple[Stmt, ...], agent: int, guard: Cond = algebra.TRUE, *, alone: bool = False) -> Iterator[Event]:
    """The events of a body outside loops, in program order.

    agent: its threads; alone: one of them runs the body. Raises RefusedError.
    """
    for stmt in body:
        match stmt:
            case If(cond=cond, then=then, otherwise=otherwise):
                yield from events(then, agent, algebra.all_of((guard, cond)), alone=alone)
                yield from events(otherwise, agent, algebra.all_of((guard, algebra.negate(cond))), alone=alone)
            case One(body=inner):
                yield from events(inner, agent, guard, alone=True)
            case Await() if alone and agent > 1:
                refuse(stmt, "one thread of several waits: the others go on without the barrier")
            case For():
                if any(_touches(s) or isinstance(s, Mma) or _drains(s) for s in walk(stmt.body)):
                    refuse(stmt, "a loop inside a tile that works on barriers or queues of products")
            case _:
                happening = _happening(stmt, 1 if alone else agent)
                if happening is not None:
                    yield Event(happening, guard)
                elif bodies(stmt):
                    refuse(stmt, f"`{type(stmt).__name__}` is not built yet in the verifier")


def _drains(stmt: Stmt) -> bool:
    return isinstance(stmt, Wait) and stmt.queue == "wgmma"


def _happening(stmt: Stmt, threads: int) -> Happening | None:
    match stmt:
        case Await(event=event) if of_agents(event):
            return Turned(stmt, 0)
        case Arrive(event=event, count=count, bytes=size) if of_agents(event):
            if size is not algebra.const(0):
                refuse(stmt, "bytes announced on a barrier that no use chooses")
            return Turned(stmt, count * threads)
        case Await(event=event, phase=phase):
            return Waited(stmt, event.buffer, use_of(stmt, event), phase)
        case Arrive(event=event, count=count, bytes=size):
            if not isinstance(size, Const) or (size.value and threads != 1):
                refuse(stmt, "bytes that are announced by several threads, or are not a number")
            return Arrived(stmt, event.buffer, use_of(stmt, event), count * threads, size.value)
        case Copy(signal=View() as signal, target=target):
            return Filled(stmt, target.buffer, slot_of(stmt, target), signal.buffer, use_of(stmt, signal))
        case Copy(source=source, target=target) if stmt.atom.proxy == "generic" and _slotted(source):
            if target.buffer.space != "register" and source.buffer.shape[0] is algebra.const(1):
                return None
            if target.buffer.space != "register":
                refuse(stmt, "a slot of a ring that is copied elsewhere than into registers")
            return Looked(stmt, source.buffer, slot_of(stmt, source))
        case Sync(how="meet"):
            return Met(stmt)
        case Mma() if stmt.atom.completion.queue == "wgmma":
            return _multiplied(stmt)
        case Wait() if stmt.queue == "wgmma":
            return Drained(stmt)
        case _:
            return None


def _slotted(view: View) -> bool:
    """Whether a tile of shared memory lies in a slot that a use chooses, or in what may be a ring of one slot."""
    if view.buffer.space != "shared":
        return False
    if view.buffer.shape[0] is algebra.const(1):
        return True
    return isinstance(view.at[0], Bin) and any(symbol.kind != "agent" for symbol in symbols(view.at[0]))


def of_agents(event: View) -> bool:
    """Whether an agent's number alone chooses the barrier: one of turns."""
    several = event.buffer.shape[0] is not algebra.const(1)
    return several and all(symbol.kind == "agent" for symbol in symbols(event.at[0]))


def _multiplied(stmt: Mma) -> Multiplied:
    return Multiplied(stmt, tuple(view for view in (stmt.a, stmt.b) if view.buffer.space == "shared"))


def use_of(stmt: Stmt, event: View) -> Index | None:
    """V, of a barrier `b[V % S]`; None where S is 1."""
    return _modulus(stmt, event.at[0], static(event.buffer.shape[0]), event.buffer.name)


def slot_of(stmt: Stmt, view: View) -> Index | None:
    """V, of a tile whose first axis is at V % S; None where S is 1."""
    return _modulus(stmt, view.at[0], static(view.buffer.shape[0]), view.buffer.name)


def _modulus(stmt: Stmt, at: Index, stages: int, name: str) -> Index | None:
    if stages == 1 and at is algebra.const(0):
        return None
    if isinstance(at, Bin) and at.op == "%" and at.right is algebra.const(stages):
        return at.left
    refuse(stmt, f"`{name}` is indexed by something else than a use modulo its {stages} stages")
