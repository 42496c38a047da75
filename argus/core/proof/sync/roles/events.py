"""The synchronisation events of a role in program order: its operations on barriers, rings and matrix instructions.

A role consists of statements before its tiles; for each tile a prologue, the loops over uses, and an epilogue; and
statements after all tiles. An event of use V is on stage V % S; in the loop, V is base + k + ahead.
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
class WaitEvent:
    """A wait until the barrier of use `use` has completed `phase`. use: None if there is a single barrier."""

    stmt: Await
    barrier: Buffer
    use: Index | None
    phase: Index


@frozen(eq=False)
class ArriveEvent:
    """`count` arrivals of the agent at the barrier of use `use`, announcing `size` bytes.

    by_each: every thread of the agent arrives, so that the phase cannot complete before each has reached the statement.
    """

    stmt: Arrive
    barrier: Buffer
    use: Index | None
    count: int
    size: int
    by_each: bool


@frozen(eq=False)
class FillEvent:
    """A copy into the stage of use `use` of a ring's buffer, completing on the barrier of use `signal`."""

    stmt: Copy
    buffer: Buffer
    use: Index | None
    barrier: Buffer
    signal: Index | None


@frozen(eq=False)
class MmaEvent:
    """A `wgmma`. views: the shared memory that it reads."""

    stmt: Mma
    views: tuple[View, ...]


@frozen(eq=False)
class ReadEvent:
    """An ordinary read of the stage of use `use` by all threads of the agent."""

    stmt: Copy
    buffer: Buffer
    use: Index | None


@frozen(eq=False)
class SyncEvent:
    """A barrier of all threads of the agent."""

    stmt: Sync


@frozen(eq=False)
class MmaWaitEvent:
    """A `wgmma` wait until at most `pending` groups are in flight."""

    stmt: Wait


@frozen(eq=False)
class OrderEvent:
    """A wait or arrivals at a barrier indexed by the agent instead of a use: the order of agents."""

    stmt: Await | Arrive
    count: int


Action = WaitEvent | ArriveEvent | FillEvent | MmaEvent | ReadEvent | SyncEvent | MmaWaitEvent | OrderEvent


def arrival_peer(stmt: Stmt) -> Index | None:
    """The rank of the block at whose barrier a statement arrives; None for its own block."""
    return stmt.event.peer if isinstance(stmt, Arrive) else None


@frozen(eq=False)
class Event:
    action: Action
    guard: Cond

    @property
    def stmt(self) -> Stmt:
        return self.action.stmt


@frozen(eq=False)
class TileLoop:
    """A role's body without counters, split at its loop over tiles.

    tiles: the loop; None if there is one tile, when `before` and `after` are empty. tile: the statements of one tile.
    """

    before: tuple[Stmt, ...]
    tiles: For | None
    tile: tuple[Stmt, ...]
    after: tuple[Stmt, ...]


def split_tile_loop(body: tuple[Stmt, ...], tiles: For | None) -> TileLoop:
    if tiles is None:
        return TileLoop((), None, body, ())
    at = next(place for place, stmt in enumerate(body) if isinstance(stmt, For) and stmt.symbol == tiles.symbol)
    found = body[at]
    assert isinstance(found, For)
    return TileLoop(body[:at], found, found.body, body[at + 1 :])


def tile_loop_of(role: Role) -> For | None:
    """The loop over this block's tiles: the top-level loop of the role that contains a loop over uses.

    Raises RefusedError if there are two.
    """
    found = [stmt for stmt in role.body if isinstance(stmt, For) and _has_use_loop(stmt)]
    if len(found) > 1:
        refuse(found[1], f"`{role.name}` has two loops over tiles")
    return found[0] if found else None


def _has_use_loop(loop: For) -> bool:
    return any(isinstance(stmt, For) and any(map(_uses_barrier, walk(stmt.body))) for stmt in walk(loop.body))


def use_loops(tile: tuple[Stmt, ...]) -> tuple[For, ...]:
    """The loops of a tile that use barriers, in order. Raises RefusedError if one is inside another or a branch."""
    found = tuple(stmt for stmt in walk(tile) if isinstance(stmt, For) and any(map(_uses_barrier, walk(stmt.body))))
    for loop in found:
        if not any(stmt is loop for stmt in tile):
            refuse(loop, "a loop that uses barriers, inside another loop or a branch")
        if loop.step not in (1, -1):
            refuse(loop, "a loop over uses with a step other than 1 or -1")
    return found


def conditional_tile(tile: tuple[Stmt, ...]) -> If | None:
    """The one branch of a tile that contains its loops over uses; None if there is no such branch."""
    found = [
        stmt
        for stmt in tile
        if isinstance(stmt, If)
        and any(isinstance(s, For) and any(map(_uses_barrier, walk(s.body))) for s in walk(stmt.then))
    ]
    return found[0] if len(found) == 1 else None


def _uses_barrier(stmt: Stmt) -> bool:
    return isinstance(stmt, Await | Arrive) or (isinstance(stmt, Copy) and stmt.signal is not None)


def events_of(
    body: tuple[Stmt, ...], agent: int, guard: Cond = algebra.TRUE, *, alone: bool = False
) -> Iterator[Event]:
    """The events of a body outside loops, in program order.

    agent: its number of threads; alone: only one of them executes the body. Raises RefusedError.
    """
    for stmt in body:
        match stmt:
            case If(cond=cond, then=then, otherwise=otherwise):
                yield from events_of(then, agent, algebra.all_of((guard, cond)), alone=alone)
                yield from events_of(otherwise, agent, algebra.all_of((guard, algebra.negate(cond))), alone=alone)
            case One(body=inner):
                yield from events_of(inner, agent, guard, alone=True)
            case Await() if alone and agent > 1:
                refuse(stmt, "only one of several threads waits: the others continue without the barrier")
            case For():
                if any(_uses_barrier(s) or isinstance(s, Mma) or _is_mma_wait(s) for s in walk(stmt.body)):
                    refuse(stmt, "a nested loop that uses barriers or `wgmma`")
            case _:
                action = _action(stmt, agent, alone=alone)
                if action is not None:
                    yield Event(action, guard)
                elif bodies(stmt):
                    refuse(stmt, f"`{type(stmt).__name__}` is not supported by the verifier yet")


def _is_mma_wait(stmt: Stmt) -> bool:
    return isinstance(stmt, Wait) and stmt.queue == "wgmma"


def _action(stmt: Stmt, agent: int, *, alone: bool) -> Action | None:
    threads = 1 if alone else agent
    match stmt:
        case Await(event=event) if is_agent_indexed(event):
            return OrderEvent(stmt, 0)
        case Arrive(event=event, count=count, bytes=size) if is_agent_indexed(event):
            if size is not algebra.const(0):
                refuse(stmt, "bytes announced on a barrier that is not indexed by a use")
            return OrderEvent(stmt, count * threads)
        case Await(event=event, phase=phase):
            return WaitEvent(stmt, event.buffer, use_of(stmt, event), phase)
        case Arrive(event=event, count=count, bytes=size):
            if not isinstance(size, Const) or (size.value and threads != 1):
                refuse(stmt, "bytes that are announced by several threads, or are not constant")
            return ArriveEvent(stmt, event.buffer, use_of(stmt, event), count * threads, size.value, by_each=not alone)
        case Copy(signal=View() as signal, target=target):
            return FillEvent(stmt, target.buffer, slot_of(stmt, target), signal.buffer, use_of(stmt, signal))
        case Copy(source=source, target=target) if stmt.atom.proxy == "generic" and _is_staged(source):
            if target.buffer.space != "register" and source.buffer.shape[0] is algebra.const(1):
                return None
            if target.buffer.space != "register":
                refuse(stmt, "a slot of a ring that is copied to another target than registers")
            return ReadEvent(stmt, source.buffer, slot_of(stmt, source))
        case Sync(how="meet"):
            return SyncEvent(stmt)
        case Mma() if stmt.atom.completion.queue == "wgmma":
            return _mma_event(stmt)
        case Wait() if stmt.queue == "wgmma":
            return MmaWaitEvent(stmt)
        case _:
            return None


def _is_staged(view: View) -> bool:
    """Whether a shared-memory tile is in a stage indexed by a use, or in a buffer that may be a ring of one stage."""
    if view.buffer.space != "shared":
        return False
    if view.buffer.shape[0] is algebra.const(1):
        return True
    return isinstance(view.at[0], Bin) and any(symbol.kind != "agent" for symbol in symbols(view.at[0]))


def is_agent_indexed(event: View) -> bool:
    """Whether a barrier is indexed by the agent's number alone, as those of turns are."""
    several = event.buffer.shape[0] is not algebra.const(1)
    return several and all(symbol.kind == "agent" for symbol in symbols(event.at[0]))


def _mma_event(stmt: Mma) -> MmaEvent:
    return MmaEvent(stmt, tuple(view for view in (stmt.a, stmt.b) if view.buffer.space == "shared"))


def use_of(stmt: Stmt, event: View) -> Index | None:
    """The use V of a barrier `b[V % S]`; None if S is 1."""
    return _use_modulo_stages(stmt, event.at[0], static(event.buffer.shape[0]), event.buffer.name)


def slot_of(stmt: Stmt, view: View) -> Index | None:
    """The use V of a tile whose first index is V % S; None if S is 1."""
    return _use_modulo_stages(stmt, view.at[0], static(view.buffer.shape[0]), view.buffer.name)


def _use_modulo_stages(stmt: Stmt, at: Index, stages: int, name: str) -> Index | None:
    if stages == 1 and at is algebra.const(0):
        return None
    if isinstance(at, Bin) and at.op == "%" and at.right is algebra.const(stages):
        return at.left
    refuse(stmt, f"the index of `{name}` is not a use modulo its {stages} stages")
