"""What the proof reads a kernel of roles as, and what its agents do when it runs: events on barriers, in order.

From a kernel's protocol, as the proof has it, the events of each agent of the first block follow for given sizes; a run
of the interpreter, which knows nothing of rings, records its own. Both are lists of the same words.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from unittest.mock import patch

from attrs import frozen

from argus.core.algebra import TRUE
from argus.core.index import Index, Symbol
from argus.core.ir import Assume, Buffer, Kernel
from argus.core.proof.sync.roles.agent_order import turned
from argus.core.proof.sync.roles.context import Ledger, RefusedError
from argus.core.proof.sync.roles.extract_protocol import Spoken, spoken
from argus.core.proof.sync.roles.parsed import Parsed, Storage, parsed, storages
from argus.core.protocol.ring import ArriveFull, Copy, Meet, Read, Release, Role, WaitEmpty, WaitFull, WaitGroups
from argus.core.query import Budget
from argus.core.walk import evaluate, symbols
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
"""What, at which barrier, of which slot; and the phase waited for, or the bytes announced."""
Who = tuple[str, int]
"""A role and the number of its agent."""


@frozen(eq=False)
class Reading:
    """A kernel of roles as the proof has it."""

    roles: tuple[Parsed, ...]
    rings: tuple[Storage, ...]
    spoken: Spoken


def compared(kernel: Kernel) -> bool:
    """Whether the events of a kernel, read as a protocol, follow from its sizes as `expected` has them: one block, a
    number of uses that sizes decide and is one for all rings and tiles, each use of a ring by a trip of one loop.
    """
    found = reading(kernel)
    if found is None or any(extent != 1 for extent in kernel.cluster):
        return False
    protocol = found.spoken.protocol
    known = {*kernel.sizes, *kernel.blocks}
    whole = all(symbols(role.uses) <= known and role.worked is TRUE for role in found.roles)
    plain = not any(ring.once or ring.fewer for ring in protocol.rings) and len(protocol.rings) == len(found.rings)
    return whole and plain and not any(role.before or role.after for role in protocol.roles)


def reading(kernel: Kernel) -> Reading | None:
    """The protocol that the proof reads; None where it refuses."""
    assert kernel.roles is not None
    facts = tuple(stmt.cond for stmt in kernel.prologue if isinstance(stmt, Assume))
    ledger = Ledger(Session(Z3(), Budget.about(2.0)), facts)
    try:
        roles = tuple(parsed(role, ledger) for role in kernel.roles.roles)
        rings = storages(roles)
        turning = frozenset(role for role in roles if turned(kernel, role, ledger))
        return Reading(roles, rings, spoken(kernel, roles, rings, turning, ledger))
    except RefusedError:
        return None


# -- as read -------------------------------------------------------------------------------------------------


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


def _tiles(roles: Sequence[Parsed], env: Mapping[Symbol, int]) -> int:
    """Tiles of the block: where the loops over them end. Each runs up from 0 or from its agent's number."""
    loops = [role.laps.tiles for role in roles if role.laps.tiles is not None]
    return 1 if not loops else max(_number(loop.stop, env) for loop in loops)


def _number(index: Index, env: Mapping[Symbol, int]) -> int:
    found = evaluate(index, env)
    assert isinstance(found, int)
    return found


def _of_agent(role: Role, rings: Sequence[Storage], uses: int, tiles: int) -> Iterator[Happened]:
    ahead = [0, *(op.ahead for op in role.body)]
    for tile in range(role.share[0], tiles, role.share[1]):
        for trip in range(-max(ahead), uses - min(ahead)):
            for op in role.body:
                if 0 <= trip + op.ahead < uses and not isinstance(op, Read | WaitGroups | Meet):
                    yield _event(op, rings[op.ring], tile * uses + trip + op.ahead)
    if role.finishes:
        for ring in rings:
            for use in range(tiles * uses, tiles * uses + ring.stages):
                yield "wait", ring.empty.name, use % ring.stages, use // ring.stages - 1


def _event(op: WaitEmpty | WaitFull | ArriveFull | Release | Copy, ring: Storage, use: int) -> Happened:
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


# -- as run --------------------------------------------------------------------------------------------------


def recorded(
    kernel: Kernel, rings: Sequence[Storage], sizes: Mapping[str, int], schedule: Schedule
) -> tuple[dict[Who, list[Happened]], bool]:
    """What the first thread of each agent of the first block does to the rings' barriers; whether all went well.

    Landings are listed with the agent that issued them, in the order in which they happen.
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
    """Where a run departs from what was read; empty if nowhere.

    A run that goes wrong may stop anywhere: what its agents did until then must be the beginning of what was read.
    Landings are compared as what lands in all, since their order is the machine's.
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
