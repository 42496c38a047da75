"""Compares the barrier events of a kernel with roles as extracted by the proof and as recorded in a run.

The protocol that the proof extracts determines the events of each agent of the first block at given sizes. A run of the
interpreter, which knows nothing of rings, records its own. Both are lists of the same records, in order.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from unittest.mock import patch

from attrs import frozen

from argus.core.algebra import TRUE
from argus.core.index import Index, Symbol
from argus.core.index import Read as ReadElement
from argus.core.ir import Assume, Buffer, Kernel
from argus.core.proof.sync.roles.agent_order import check_agent_order
from argus.core.proof.sync.roles.context import ProofContext, RefusedError
from argus.core.proof.sync.roles.extract_protocol import ExtractedProtocol, extract_protocol
from argus.core.proof.sync.roles.parsed import ParsedRole, RingStorage, find_rings, parse_role
from argus.core.protocol.ring import (
    ArriveFull,
    Copy,
    NamedBarrierOp,
    Read,
    Release,
    Role,
    WaitEmpty,
    WaitFull,
    WaitGroups,
)
from argus.core.query import Budget
from argus.core.walk import evaluate, mentions, symbols
from argus.interp.compiled_kernel import Prepared
from argus.interp.machine.agents import Agent
from argus.interp.machine.barriers import TrackedMbarrier
from argus.interp.run import run_prepared
from argus.interp.search.schedule import Schedule
from argus.interp.state import Block
from argus.interp.violation import Event
from argus.solvers.session.session import Session
from argus.solvers.z3_backend import Z3

Happened = tuple[str, str, int, int]
"""An event: kind, barrier, slot, and the awaited phase or the expected bytes."""
Who = tuple[str, int]
"""A role and the number of its agent."""


@frozen(eq=False)
class Reading:
    """A kernel with roles as the proof parses it."""

    roles: tuple[ParsedRole, ...]
    rings: tuple[RingStorage, ...]
    spoken: ExtractedProtocol


def compared(kernel: Kernel) -> bool:
    """Whether `expected` can compute the events of a kernel: one block per cluster, a number of uses that depends on
    sizes only and is equal for all rings and tiles, and one loop iteration per use of a ring.
    """
    found = reading(kernel)
    if found is None or any(extent != 1 for extent in kernel.cluster):
        return False
    protocol = found.spoken.protocol
    known = {*kernel.sizes, *kernel.blocks}
    counts = [role.uses for role in found.roles]
    whole = all(symbols(each) <= known and not mentions(each, (ReadElement,)) for each in counts)
    whole &= all(role.active is TRUE for role in found.roles)
    plain = not any(ring.per_tile or ring.fewer for ring in protocol.rings) and len(protocol.rings) == len(found.rings)
    return whole and plain and not any(role.before or role.after for role in protocol.roles)


def reading(kernel: Kernel) -> Reading | None:
    """The protocol that the proof extracts; None if it refuses."""
    assert kernel.roles is not None
    facts = tuple(stmt.cond for stmt in kernel.prologue if isinstance(stmt, Assume))
    ledger = ProofContext(Session(Z3(), Budget.about(2.0)), facts)
    try:
        roles = tuple(parse_role(role, ledger) for role in kernel.roles.roles)
        rings = find_rings(roles)
        turning = frozenset(role for role in roles if check_agent_order(kernel, role, ledger))
        return Reading(roles, rings, extract_protocol(kernel, roles, rings, turning, ledger))
    except RefusedError:
        return None


# -- extracted events ----------------------------------------------------------------------------------------


def expected(found: Reading, kernel: Kernel, sizes: Mapping[str, int]) -> dict[Who, list[Happened]]:
    """The events on rings of each agent of the first block."""
    env: dict[Symbol, int] = {symbol: sizes[symbol.name] for symbol in kernel.sizes}
    env |= dict.fromkeys(kernel.blocks, 0)
    whose = [(role, agent) for role in found.roles for agent in range(role.role.agents)]
    made: dict[Who, list[Happened]] = {}
    for (role, agent), said in zip(whose, found.spoken.protocol.roles, strict=True):
        uses, tiles = _number(role.uses, env), _tiles(found.roles, env)
        made[role.role.name, agent] = list(_of_agent(said, found.rings, uses, tiles))
    return made


def _tiles(roles: Sequence[ParsedRole], env: Mapping[Symbol, int]) -> int:
    """Number of tiles of the block: the bound of the loops over them, which start at 0 or at the agent's number."""
    loops = [role.tile_loop.tiles for role in roles if role.tile_loop.tiles is not None]
    return 1 if not loops else max(_number(loop.stop, env) for loop in loops)


def _number(index: Index, env: Mapping[Symbol, int]) -> int:
    found = evaluate(index, env)
    assert isinstance(found, int)
    return found


def _of_agent(role: Role, rings: Sequence[RingStorage], uses: int, tiles: int) -> Iterator[Happened]:
    ahead = [0, *(op.ahead for op in role.body)]
    for tile in range(role.share[0], tiles, role.share[1]):
        for trip in range(-max(ahead), uses - min(ahead)):
            for op in role.body:
                if 0 <= trip + op.ahead < uses and not isinstance(op, Read | WaitGroups | NamedBarrierOp):
                    yield _event(op, rings[op.ring], tile * uses + trip + op.ahead)
    if role.finishes:
        for ring in rings:
            for use in range(tiles * uses, tiles * uses + ring.stages):
                yield "wait", ring.empty.name, use % ring.stages, use // ring.stages - 1


def _event(op: WaitEmpty | WaitFull | ArriveFull | Release | Copy, ring: RingStorage, use: int) -> Happened:
    slot, phase = use % ring.stages, use // ring.stages
    match op:
        case WaitEmpty():
            return "wait", ring.empty.name, slot, phase - 1
        case WaitFull():
            return "wait", ring.full.name, slot, phase
        case ArriveFull(size=size):
            return "arrive", ring.full.name, slot, size
        case Release():
            return "arrive", ring.empty.name, slot, 0
        case Copy(size=size):
            return "land", ring.full.name, slot, size


# -- recorded events -----------------------------------------------------------------------------------------


def recorded(
    kernel: Kernel, rings: Sequence[RingStorage], sizes: Mapping[str, int], schedule: Schedule
) -> tuple[dict[Who, list[Happened]], bool]:
    """The events on the rings' barriers by the first thread of each agent of the first block; and whether the run is
    free of violations.

    Completions of copies are listed with the agent that issued them, in their order.
    """
    mine = {barrier for ring in rings for barrier in (ring.full, ring.empty)}
    events: dict[Who, list[Happened]] = {}
    with _noted(mine, events):
        first = tuple(0 for _ in kernel.grid)
        outcome = run_prepared(Prepared(kernel), sizes, None, schedule, tags=True, values=False, blocks=[first])
    return events, not outcome.violations


@contextmanager
def _noted(mine: set[Buffer], events: dict[Who, list[Happened]]) -> Generator[None]:
    arrive, wait, land = TrackedMbarrier.arrive, TrackedMbarrier.check_wait, TrackedMbarrier.land

    def note(block: Block, thread: int, barrier: TrackedMbarrier, what: str, number: int) -> None:
        if isinstance(block, Agent) and block.role is not None and thread == 0 and barrier.buffer in mine:
            who = block.role.name, block.number
            events.setdefault(who, []).append((what, barrier.buffer.name, barrier.index, number))

    def arriving(self: TrackedMbarrier, block: Block, event: Event, thread: int, count: int, expected: int) -> None:
        note(block, thread, self, "arrive", expected)
        arrive(self, block, event, thread, count, expected)

    def waiting(self: TrackedMbarrier, block: Block, event: Event, thread: int, phase: int) -> None:
        note(block, thread, self, "wait", phase)
        wait(self, block, event, thread, phase)

    def landing(
        self: TrackedMbarrier, block: Block, event: Event, thread: int, flight: int, bits: int, count: int
    ) -> None:
        note(block, 0, self, "land", count)
        land(self, block, event, thread, flight, bits, count)

    with (
        patch.object(TrackedMbarrier, "arrive", arriving),
        patch.object(TrackedMbarrier, "check_wait", waiting),
        patch.object(TrackedMbarrier, "land", landing),
    ):
        yield


def difference(kernel: Kernel, found: Reading, sizes: Mapping[str, int], schedule: Schedule) -> str:
    """The first difference between a run and the extracted events; empty if there is none.

    A run with a violation may stop anywhere: the events until then must be a prefix of the extracted ones. Completions
    of copies are compared as a multiset, since their order depends on the schedule.
    """
    wanted = expected(found, kernel, sizes)
    made, well = recorded(kernel, found.rings, sizes, schedule)
    for who, events in wanted.items():
        did = made.get(who, [])
        in_order = [event for event in did if event[0] != "land"]
        listed = [event for event in events if event[0] != "land"]
        if in_order != (listed if well else listed[: len(in_order)]):
            place = next((i for i, (a, b) in enumerate(zip(in_order, listed, strict=False)) if a != b), len(in_order))
            return f"{who}: event {place} is {in_order[place : place + 1]}, read as {listed[place : place + 1]}"
        landed = sorted(event for event in did if event[0] == "land")
        if well and landed != sorted(event for event in events if event[0] == "land"):
            return f"{who}: {len(landed)} landings, not as read"
    return ""
