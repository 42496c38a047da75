"""A kernel's roles read as a ring protocol: nothing is believed of where a statement came from.

Each operation on a ring stands in the loop over uses at a fixed distance `ahead` of the trip; what stands before and
after the loop must be just the trips that the loop lacks. Whatever does not fit is refused, with its line.
Source: proof-methods 3.2, 3.3 (scope).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.index import Cond, Const, Index
from argus.core.ir import Buffer, Kernel, Stmt, static
from argus.core.proof.roles.clusters import of_cluster, reached
from argus.core.proof.roles.events import Arrived, Drained, Event, Filled, Looked, Met, Multiplied, Turned, Waited
from argus.core.proof.roles.ledger import Ledger, refuse
from argus.core.proof.roles.parsed import Parsed, Storage, arrivals, bytes_of
from argus.core.proof.roles.placed import Placed
from argus.core.protocol.ring import (
    ArriveFull,
    Copy,
    Meet,
    Op,
    Protocol,
    Read,
    Release,
    Ring,
    Role,
    WaitEmpty,
    WaitFull,
    WaitGroups,
)


@frozen(eq=False)
class Spoken:
    """A protocol, with the statements that its roles' operations are. placed: by role, as in the protocol."""

    protocol: Protocol
    placed: tuple[tuple[Placed, ...], ...]

    def stmt_of(self, *kinds: type[Op]) -> Stmt:
        """The first statement that is an operation of such a kind, or else of any."""
        every = [each for role in self.placed for each in role]
        return next((each.stmt for each in every if isinstance(each.op, kinds)), every[0].stmt)


def spoken(
    kernel: Kernel, roles: Sequence[Parsed], rings: Sequence[Storage], turned: frozenset[Parsed], ledger: Ledger
) -> Spoken:
    """The protocol of all roles. turned: roles whose agents are known to take turns. Raises RefusedError."""
    made: list[Role] = []
    placed: list[tuple[Placed, ...]] = []
    for role in roles:
        ops = _ops(role, rings)
        _judge_trips(role, ops, rings, ledger)
        body = tuple(each.op for each in ops)
        for agent in range(role.role.agents):
            made.append(_role(role, agent, body, rings, turn=role in turned, ledger=ledger))
            placed.append(ops)
    least = 1 if ledger.holds(roles[0].facts, algebra.le(1, roles[0].uses)) else 0
    persistent = roles[0].laps.tiles is not None
    sizes = tuple(_ring(kernel, ring) for ring in rings)
    if kernel.peers > 1:
        sizes, made, placed = of_cluster(kernel, rings, sizes, made, placed)
    return Spoken(Protocol(sizes, tuple(made), least=least, persistent=persistent), tuple(placed))


def _ring(kernel: Kernel, ring: Storage) -> Ring:
    parts = tuple(bytes_of(copy) for copy in ring.copies)
    return Ring(ring.stages, parts, arrivals(kernel, ring.full), arrivals(kernel, ring.empty))


def _role(
    role: Parsed, agent: int, body: tuple[Op, ...], rings: Sequence[Storage], *, turn: bool, ledger: Ledger
) -> Role:
    finishes = _finishes(role, rings, ledger)
    return Role(name_of(role, agent), body, share=_share(role, agent), turn=turn, finishes=finishes)


def name_of(role: Parsed, agent: int) -> str:
    """How the protocol calls an agent."""
    own = role.role
    return f"role {own.name}" if own.agents == 1 else f"role {own.name}[{agent}]"


def _share(role: Parsed, agent: int) -> tuple[int, int]:
    """Which tiles an agent takes: all, or each n-th from its number on."""
    tiles, own = role.laps.tiles, role.role
    if tiles is None or (tiles.start is algebra.const(0) and tiles.step == 1):
        return 0, 1
    if tiles.start is algebra.sym(own.number) and tiles.step == own.agents:
        return agent, own.agents
    refuse(tiles, f"the agents of `{own.name}` take neither all tiles nor each its share of them")


# -- operations of the loop ----------------------------------------------------------------------------------


def _ops(role: Parsed, rings: Sequence[Storage]) -> tuple[Placed, ...]:
    made: list[Placed] = []
    ahead: dict[int, int] = {}
    for event in role.during:
        happening = event.happening
        if isinstance(happening, Met):
            continue
        late = isinstance(happening, Multiplied)
        if isinstance(happening, Multiplied | Looked) and (last := _same_use(role, made, event, rings)) is not None:
            found = made[last]
            made[last] = evolve(found, op=_later(found.op, late=late), groups=found.groups + late)
            continue
        made.append(evolve(_placed(role, event, rings, ahead), groups=int(late)))
    _judge_looks(role, rings)
    counts = {each.groups for each in made if isinstance(each.op, Read) and each.op.late}
    if len(counts) > 1:
        refuse(made[0].stmt, "uses that are read by different numbers of products")
    groups = next(iter(counts), 1)
    return tuple(_by_use(each, groups) for each in made)


def _later(op: Op, *, late: bool) -> Op:
    return evolve(op, late=op.late or late) if isinstance(op, Read) else op


def _judge_looks(role: Parsed, rings: Sequence[Storage]) -> None:
    """Trap T4: one thread's arrival releases its own ordinary reads; those of the others need a meeting before it."""
    if role.role.agent == 1:
        return
    loose: set[Buffer] = set()
    for event in (*role.during, *role.during, *role.behind):
        match event.happening:
            case Looked(buffer=buffer):
                loose.add(buffer)
            case Met() if event.guard is algebra.TRUE:
                loose.clear()
            case Arrived(barrier=barrier):
                ring = next((each for each in rings if each.empty is barrier), None)
                if ring is not None and loose & ring.buffers:
                    refuse(event.stmt, "a slot is given back by one thread while others may still read it: trap T4")
            case _:
                pass


def _by_use(each: Placed, groups: int) -> Placed:
    """Groups left, as uses that may still be read: each use is read by so many groups."""
    if isinstance(each.op, WaitGroups) and groups > 1:
        return evolve(each, op=WaitGroups(-(-each.op.pending // groups), each.op.ahead))
    return each


def _same_use(role: Parsed, made: list[Placed], event: Event, rings: Sequence[Storage]) -> int | None:
    """The read already listed of the very use that is read here; None if there is none, or if the use has been given
    back since. Of products, none of another use and no wait may lie between: groups are counted by uses.

    Raises RefusedError where the two are made under different conditions.
    """
    happening = event.happening
    assert isinstance(happening, Multiplied | Looked)
    ring = _of_buffers(happening, rings)
    late = isinstance(happening, Multiplied)
    released: list[int] = []
    for place in range(len(made) - 1, -1, -1):
        op = made[place].op
        if late and isinstance(op, WaitGroups):
            return None
        if isinstance(op, Release) and op.ring == ring.number:
            released.append(op.ahead)
        if not isinstance(op, Read):
            continue
        if op.ring == ring.number:
            same = _ahead(role, happening.use, ring, happening.stmt, op.ahead) == op.ahead
            if not same or any(ahead >= op.ahead for ahead in released):
                return None
            if event.guard is not made[place].guard:
                refuse(happening.stmt, "a use that is read once more under a condition")
            return place
        if late and op.late:
            return None
    return None


def _placed(role: Parsed, event: Event, rings: Sequence[Storage], ahead: dict[int, int]) -> Placed:
    happening, stmt = event.happening, event.stmt
    match happening:
        case Waited(barrier=barrier):
            ring, empty = _of_barrier(barrier, rings, stmt)
            at = _named(role, happening, ring, -1 if empty else 0)
            ahead[ring.number] = at
            op: Op = WaitEmpty(ring.number, at) if empty else WaitFull(ring.number, at)
            return Placed(op, stmt, barrier, event.guard)
        case Arrived(barrier=barrier, count=count, size=size):
            ring, empty = _of_barrier(barrier, rings, stmt)
            at = _ahead(role, happening.use, ring, stmt, ahead.get(ring.number, 0))
            if empty:
                if size:
                    refuse(stmt, "bytes announced where slots are given back")
                return Placed(Release(ring.number, at, count=count), stmt, barrier, event.guard)
            return Placed(ArriveFull(size, ring.number, at, count=count), stmt, barrier, event.guard)
        case Filled(barrier=barrier, buffer=buffer):
            ring, _ = _of_barrier(barrier, rings, stmt)
            at = _ahead(role, happening.use, ring, stmt, ahead.get(ring.number, 0))
            if _ahead(role, happening.signal, ring, stmt, at) != at:
                refuse(stmt, "a copy into one slot that lands on the barrier of another")
            part = next(place for place, copy in enumerate(ring.copies) if copy is stmt)
            return Placed(Copy(bytes_of(happening.stmt), part, ring.number, at), stmt, buffer, event.guard)
        case Multiplied() | Looked():
            ring = _of_buffers(happening, rings)
            at = _ahead(role, happening.use, ring, stmt, ahead.get(ring.number, 0))
            return Placed(Read(ring.number, at, late=isinstance(happening, Multiplied)), stmt, None, event.guard)
        case Drained(stmt=wait):
            return Placed(WaitGroups(wait.pending), stmt, None, event.guard)
        case Turned() | Met():
            refuse(stmt, "a barrier of turns inside the loop over uses")
        case _:
            assert_never(happening)


def _of_barrier(barrier: Buffer, rings: Sequence[Storage], stmt: Stmt) -> tuple[Storage, bool]:
    """The ring that a barrier belongs to, and whether it is the one of empty slots."""
    for ring in rings:
        if barrier in (ring.full, ring.empty):
            return ring, barrier is ring.empty
    refuse(stmt, f"`{barrier.name}` belongs to no ring")


def _of_buffers(happening: Multiplied | Looked, rings: Sequence[Storage]) -> Storage:
    if happening.use is None:
        refuse(happening.stmt, "a product that reads no slot of a ring")
    read = {happening.buffer} if isinstance(happening, Looked) else set(happening.buffers)
    found = [ring for ring in rings if read <= ring.buffers]
    if len(found) != 1:
        refuse(happening.stmt, "operands in different rings, or in slots of none")
    return found[0]


def _offset(role: Parsed, use: Index | None, stmt: Stmt) -> int:
    """use - (base + k), a number."""
    assert use is not None
    k = algebra.sub(algebra.sym(role.loop.symbol), role.loop.start)
    found = algebra.sub(use, algebra.add(role.base, k))
    if not isinstance(found, Const):
        refuse(stmt, "a slot that is not at a fixed distance of the loop's trip")
    return found.value


def _ahead(role: Parsed, use: Index | None, ring: Storage, stmt: Stmt, near: int) -> int:
    """The distance of a use known modulo the stages: the one not beyond `near` and less than a round before it."""
    offset = _offset(role, use, stmt)
    return near - (near - offset) % ring.stages


def _named(role: Parsed, waited: Waited, ring: Storage, plus: int) -> int:
    """The distance of the use whose phase is waited for: phase `use // stages + plus`."""
    offset, stages = _offset(role, waited.use, waited.stmt), ring.stages
    for rounds in range(-_ROUNDS, _ROUNDS + 1):
        if phase_of(algebra.add(waited.use, rounds * stages), stages, plus) is waited.phase:
            return offset + rounds * stages
    refuse(waited.stmt, "the phase waited for is not that of the slot's use")


_ROUNDS = 3


def phase_of(use: Index, stages: int, plus: int) -> Index:
    return algebra.add(algebra.floordiv(use, stages), plus)


# -- the trips that the loop lacks -----------------------------------------------------------------------------


def _judge_trips(role: Parsed, ops: tuple[Placed, ...], rings: Sequence[Storage], ledger: Ledger) -> None:
    """Raises RefusedError unless loop, prologue and epilogue together make every operation once a use of a tile."""
    k = algebra.sub(algebra.sym(role.loop.symbol), role.loop.start)
    for each in ops:
        wanted = _within(algebra.add(k, each.op.ahead), role.uses)
        if not ledger.equivalent(role.inside, each.guard, wanted):
            refuse(each.stmt, "an operation on a ring under a condition that does not leave out just the uses beyond")
    on_ring = [each for each in ops if not isinstance(each.op, WaitGroups)]
    most = max((each.op.ahead for each in on_ring), default=0)
    least = min((each.op.ahead for each in on_ring), default=0)
    before = [
        (each, algebra.const(trip + each.op.ahead))
        for trip in range(-most, 0)
        for each in on_ring
        if trip + each.op.ahead >= 0
    ]
    behind = [
        (each, algebra.add(role.uses, trip + each.op.ahead))
        for trip in range(-least)
        for each in on_ring
        if trip + each.op.ahead < 0
    ]
    late = _left_over(ops)
    _compare(role, before, [e for e in role.ahead if not isinstance(e.happening, Turned | Met)], rings, ledger)
    actual = [e for e in role.behind if not isinstance(e.happening, Turned | Met)]
    if late:
        first = actual[0].happening if actual else None
        if not isinstance(first, Drained) or first.stmt.pending != 0 or actual[0].guard is not algebra.TRUE:
            refuse(role.loop, "groups may be left when the loop ends: the first thing after it is no `wgmma.wait(0)`")
    left = [e for e in actual if not isinstance(e.happening, Drained)]
    # Of one tile, what ends it stands behind the loop too.
    most = len(behind) if role.laps.tiles is None else len(left)
    _compare(role, behind, left[:most], rings, ledger)


def _left_over(ops: tuple[Placed, ...]) -> bool:
    """Whether groups of products may be left when the loop ends: no trip waits for all after its last product."""
    left = False
    for each in ops:
        if isinstance(each.op, Read) and each.op.late:
            left = True
        elif isinstance(each.op, WaitGroups) and each.op.pending == 0 and each.guard is algebra.TRUE:
            left = False
    return left


def _within(use: Index, uses: Index) -> Cond:
    return algebra.all_of((algebra.le(0, use), algebra.lt(use, uses)))


def _compare(
    role: Parsed, wanted: Sequence[tuple[Placed, Index]], actual: list[Event], rings: Sequence[Storage], ledger: Ledger
) -> None:
    if len(wanted) != len(actual):
        stmt = actual[0].stmt if actual else role.loop
        refuse(stmt, f"{len(actual)} operations on rings stand beside the loop, its trips lack {len(wanted)}")
    for (each, use), event in zip(wanted, actual, strict=True):
        if not _is(role, each, use, event, rings):
            refuse(event.stmt, "an operation beside the loop over uses that is not the one its trips lack")
        if not ledger.equivalent(role.facts, event.guard, _within(use, role.uses)):
            refuse(event.stmt, "an operation beside the loop over uses, under a condition that its use does not have")


def _is(role: Parsed, each: Placed, use: Index, event: Event, rings: Sequence[Storage]) -> bool:
    """Whether an event beside the loop is the operation `each` of that use of the tile."""
    happening = event.happening
    at = algebra.add(role.base, use)
    if isinstance(each.op, WaitGroups | Meet):
        return False
    ring = rings[each.op.ring]
    slot = algebra.mod(at, ring.stages)
    match each.op, happening:
        case (WaitEmpty(), Waited(barrier=barrier)) | (WaitFull(), Waited(barrier=barrier)):
            plus = -1 if isinstance(each.op, WaitEmpty) else 0
            same = happening.phase is phase_of(at, ring.stages, plus)
            return barrier is each.on and same and algebra.mod(happening.use, ring.stages) is slot
        case (Release(count=count), Arrived(barrier=barrier)) | (ArriveFull(count=count), Arrived(barrier=barrier)):
            size = each.op.size if isinstance(each.op, ArriveFull) else 0
            fits = happening.count == count and happening.size == size
            same = fits and reached(event.stmt) is reached(each.stmt)
            return barrier is each.on and same and algebra.mod(happening.use, ring.stages) is slot
        case _:
            return False


def _finishes(role: Parsed, rings: Sequence[Storage], ledger: Ledger) -> bool:
    """Whether the role waits at its end until the last uses of all slots of its rings have been given back."""
    end = _end(role, rings)
    if not end:
        return False
    wanted: list[tuple[Buffer, Index, Index]] = []
    for ring in (each for each in rings if each.filler is role):
        total = role.uses if role.laps.tiles is None else ledger.total(role.uses)
        for slot in range(ring.stages):
            use = algebra.add(total, slot)
            wanted.append((ring.empty, algebra.mod(use, ring.stages), phase_of(use, ring.stages, -1)))
    found = [
        (e.happening.barrier, algebra.mod(e.happening.use, static(e.happening.barrier.shape[0])), e.happening.phase)
        for e in end
        if isinstance(e.happening, Waited) and e.guard is algebra.TRUE
    ]
    if found != wanted or len(found) != len(end):
        refuse(end[0].stmt, "what stands after the last tile is not the wait for every slot in turn")
    return True


def _end(role: Parsed, rings: Sequence[Storage]) -> tuple[Event, ...]:
    """What comes after all tiles; of one tile, after the trips that its loop lacks."""
    if role.laps.tiles is not None:
        return role.end
    lacking = sum(max(0, -each.op.ahead) for each in _ops(role, rings) if not isinstance(each.op, WaitGroups))
    quiet = Turned | Met | Drained
    return tuple(event for event in role.behind if not isinstance(event.happening, quiet))[lacking:]
