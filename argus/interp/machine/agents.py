"""State of blocks with roles: agents with their own registers, units of threads in lockstep, common shared memory."""

from __future__ import annotations

from collections import Counter
from typing import cast

from attrs import define, field

from argus.core.ir import Buffer, Role, Stmt
from argus.interp.compiled_kernel import Scalars
from argus.interp.machine.asynchrony import AsyncOp, Engine, Groups
from argus.interp.machine.barriers import Barriers, TrackedMbarrier, TrackedNamedBarrier
from argus.interp.machine.clocks import Clock, Mark, Strands
from argus.interp.machine.waves import Wave
from argus.interp.memory.cells import Cells
from argus.interp.memory.shadow import ShadowMemory
from argus.interp.search.schedule import Actor
from argus.interp.state import Block, Launch, coordinates
from argus.interp.violation import Event


@define(eq=False)
class TensorMapState:
    """A tensor map in memory. tensor: the buffer it describes and the offset in it, None along axes of the map.

    edited, released: timestamps of the editing strands; released is None before the release. acquired: the strands
    that have acquired the edit. ops: copies issued through the map.
    """

    tensor: tuple[Buffer, tuple[int | None, ...]]
    event: Event
    edited: tuple[Mark, ...]
    released: tuple[Mark, ...] | None = None
    acquired: set[int] = field(factory=set[int])
    ops: list[AsyncOp] = field(factory=list[AsyncOp])


@define(eq=False)
class Machine:
    """The state that the agents of one block share.

    rank: in its cluster. strands, engine: of the whole cluster, in which this block's threads begin at `first`.
    remote_accesses: accesses by other blocks to this block's memory and barriers. ended: all of its threads have ended.
    """

    launch: Launch
    index: tuple[int, ...]
    cluster: Cluster
    rank: int
    first: int
    strands: Strands
    barriers: Barriers
    shadow: ShadowMemory
    engine: Engine
    remote_accesses: list[RemoteAccess] = field(factory=lambda: list[RemoteAccess]())  # noqa: PLW0108 reason: `RemoteAccess` is below
    ended: bool = False
    named_barriers: dict[tuple[str, int], TrackedNamedBarrier] = field(
        factory=dict[tuple[str, int], TrackedNamedBarrier]
    )
    shared: dict[Buffer, Cells] = field(factory=dict[Buffer, Cells])
    groups: dict[tuple[str, int], Groups] = field(factory=dict[tuple[str, int], Groups])
    maps: dict[Buffer, TensorMapState] = field(factory=dict[Buffer, TensorMapState])
    units: list[Unit] = field(factory=lambda: list[Unit]())  # noqa: PLW0108 reason: `Unit` is below

    def queue_of(self, queue: str, strand: int) -> Groups:
        """The pending groups of one owner, identified by its first strand."""
        return self.groups.setdefault((queue, strand), Groups())

    @property
    def suffix(self) -> str:
        """A suffix for names that identifies the block in a cluster; empty without clusters."""
        return f" of rank {self.rank}" if len(self.cluster.machines) > 1 else ""


@define(eq=False)
class RemoteAccess:
    """An access by another block to this block's memory or barriers.

    Its completion happens before a thread whose clock contains `mark` (a release of the strand) or `bit` (of an
    asynchronous operation).
    """

    agent: Agent
    event: Event
    thread: int
    mark: Mark | None = None
    bit: int | None = None

    def known(self, clock: Clock) -> bool:
        """Whether the access is complete for a thread with this clock."""
        if self.mark is not None:
            return clock.knows((self.mark,))
        return self.bit is None or bool(clock.done >> self.bit & 1)


@define(eq=False)
class Multicast:
    """One multicast. place: the tensor coordinates of the first element of the whole shared tile; mask: receivers."""

    event: Event
    rank: int
    place: tuple[int, ...]
    mask: int


@define(eq=False)
class Cluster:
    """The blocks of a cluster, by rank; a single block without clusters. named_barriers: barriers of the whole cluster.

    multicasts: what the first block sent, by multicast statement, agent number and execution count. times: the number
    of executions, by multicast statement, rank and agent number.
    """

    launch: Launch
    strands: Strands
    engine: Engine = field(factory=Engine)
    machines: list[Machine] = field(factory=list[Machine])
    named_barriers: dict[tuple[str, int], TrackedNamedBarrier] = field(
        factory=dict[tuple[str, int], TrackedNamedBarrier]
    )
    multicasts: dict[tuple[Stmt, int, int], Multicast] = field(factory=dict[tuple[Stmt, int, int], Multicast])
    times: Counter[tuple[Stmt, int, int]] = field(factory=Counter[tuple[Stmt, int, int]])

    @property
    def units(self) -> list[Unit]:
        """The units of all blocks."""
        return [unit for machine in self.machines for unit in machine.units]


@define(eq=False)
class Waiting:
    """What blocks a unit: an incomplete phase of an mbarrier, or an incomplete generation of a named barrier."""

    event: Event
    on: TrackedMbarrier | TrackedNamedBarrier
    phase: int

    def over(self) -> bool:
        """Whether the wait returns."""
        if isinstance(self.on, TrackedMbarrier):
            return self.on.passes(self.phase)
        return self.on.state.generation > self.phase

    @property
    def missed(self) -> bool:
        """Whether a later phase is complete too, so that the parity no longer identifies the phase waited for."""
        return isinstance(self.on, TrackedMbarrier) and self.on.state.phases > self.phase + 1

    def describe(self) -> str:
        """What is waited for and what is missing: phase 3 of `full[0]` (in phase 3, 1 of 1 arrivals missing)."""
        if isinstance(self.on, TrackedMbarrier) and self.missed:
            return f"phase {self.phase} of {self.on.name}, although phase {self.on.state.phases - 1} is complete"
        if isinstance(self.on, TrackedMbarrier):
            return f"phase {self.phase} of {self.on.name} ({self.on.missing()})"
        return f"the barrier `{self.on.name}` ({self.on.missing()})"


@define(eq=False)
class Agent(Block):
    """One agent of a role, or all threads of the block outside of roles.

    name: for messages. role: None for the block. threads: of the agent; width: threads that execute in lockstep.
    """

    machine: Machine = field(kw_only=True)
    name: str = field(kw_only=True)
    role: Role | None = field(kw_only=True)
    number: int = field(kw_only=True)
    threads: int = field(kw_only=True)
    width: int = field(kw_only=True)
    actor: Actor = field(kw_only=True)
    own_scalars: Scalars = field(kw_only=True)

    @property
    def scalars(self) -> Scalars:
        """The evaluator of uniform expressions for the agent's threads."""
        return self.own_scalars

    def cells(self, buffer: Buffer) -> Cells:
        """The storage of a buffer; shared memory is common to the agents of a block."""
        if buffer.space != "shared":
            return super().cells(buffer)
        found = self.machine.shared.get(buffer)
        if found is None:
            found = self.machine.shared[buffer] = super().cells(buffer)
        return found

    def check_in_flight(self, wave: Wave, buffer: Buffer, event: Event, use: str) -> bool:
        """Report a use of registers of a pending asynchronous operation (I11); returns whether there is one."""
        ops = cast(Unit, wave).pending_registers.get(buffer)
        if not ops:
            return False
        self.report(
            "I11",
            f"`{buffer.name}` is {use} while an operation on it is in flight",
            event,
            thread=wave.first,
            value=0,
            element=coordinates(buffer, wave.first, 0),
            buffer=buffer.name,
            other=ops[0].event,
            other_thread=wave.first,
            facts=(("queue", ops[0].kind),),
        )
        return True


@define(eq=False)
class Unit(Wave):
    """Threads of an agent that execute in lockstep.

    after: units that must end before it begins. counters: the values of its counters. pending_registers: registers of
    pending operations. touched: registers used by generic code since the last `wgmma.fence`. waited: the last phase
    waited for on each mbarrier. skipped_waits: per mbarrier, the last wait that was not for the phase after the
    previous one, and its phase. arrived: the generation of a cluster barrier at which it has arrived.
    """

    agent: Agent = field(kw_only=True)
    after: tuple[Unit, ...] = field(kw_only=True, default=())
    begun: bool = False
    waiting: Waiting | None = None
    arrived: int | None = None
    counters: dict[Buffer, int] = field(factory=dict[Buffer, int])
    pending_registers: dict[Buffer, list[AsyncOp]] = field(factory=dict[Buffer, list[AsyncOp]])
    touched: dict[Buffer, Event] = field(factory=dict[Buffer, Event])
    waited: dict[tuple[Buffer, int], int] = field(factory=dict[tuple[Buffer, int], int])
    skipped_waits: dict[tuple[Buffer, int], tuple[Event, int]] = field(
        factory=dict[tuple[Buffer, int], tuple[Event, int]]
    )

    @property
    def active_strands(self) -> tuple[int, ...]:
        """The strands that execute the current statement; a single one inside `One`."""
        base = self.agent.machine.first + self.agent.base
        return self.agent.machine.strands.within(base + self.first, base + self.last)

    def begin(self) -> None:
        """Start the unit with the symbols and counters of the code that its threads executed before."""
        self.begun = True
        if self.after:
            self.env = {**self.after[0].env, **self.env}
            self.counters = dict(self.after[0].counters)

    def execution_event(self, stmt: Stmt) -> Event:
        """The event of this execution of a statement; its iteration includes the agent's number."""
        event = self.event(stmt, self.agent.index)
        role = self.agent.role
        if role is None or role.agents == 1:
            return event
        iteration = ((role.number.name, self.agent.number), *event.iteration)
        return Event(stmt, event.block, event.wave, event.path, iteration, event.epoch)

    def follows_last_wait(self, barrier: TrackedMbarrier, phase: int) -> bool:
        """Whether a wait is for the phase after the previous wait's; the first must be for phase 0 or -1."""
        before = self.waited.get((barrier.buffer, barrier.index))
        return phase in (-1, 0) if before is None else phase == before + 1

    def launch(self, op: AsyncOp) -> None:
        """Issue an operation to the engine; under an early schedule it completes at once."""
        machine = self.agent.machine
        machine.engine.issue(op)
        schedule = machine.launch.adversary.schedule
        if schedule.style == "early" and not schedule.priority:
            machine.engine.complete(op)
