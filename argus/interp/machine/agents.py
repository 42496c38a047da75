"""Blocks as agents: each a set of units that step together, with registers of its own and shared memory common."""

from __future__ import annotations

from collections import Counter
from typing import cast

from attrs import define, field

from argus.core.ir import Buffer, Role, Stmt
from argus.interp.compiled_kernel import Scalars
from argus.interp.machine.asynchrony import Engine, Flight, Groups
from argus.interp.machine.barriers import Barriers, Meeting, Phased
from argus.interp.machine.clocks import Clock, Mark, Strands
from argus.interp.machine.waves import Wave
from argus.interp.memory.cells import Cells
from argus.interp.memory.shadow import Shadow
from argus.interp.search.schedule import Actor
from argus.interp.state import Block, Launch, coordinates
from argus.interp.violation import Event


@define(eq=False)
class Mapped:
    """A tensor map in memory. tensor: the buffer it describes and the place in it, None along axes of its own.

    edited, released: when, by the clocks of who did it; released is None before it. acquired: by which strands since.
    flights: copies that have gone by it.
    """

    tensor: tuple[Buffer, tuple[int | None, ...]]
    event: Event
    edited: tuple[Mark, ...]
    released: tuple[Mark, ...] | None = None
    acquired: set[int] = field(factory=set[int])
    flights: list[Flight] = field(factory=list[Flight])


@define(eq=False)
class Machine:
    """What the agents of one block share.

    rank: in its cluster. strands, engine: of the whole cluster, in which this block's threads begin at `first`.
    visits: by other blocks, to this one's memory and barriers. ended: all of its threads have.
    """

    launch: Launch
    index: tuple[int, ...]
    cluster: Cluster
    rank: int
    first: int
    strands: Strands
    barriers: Barriers
    shadow: Shadow
    engine: Engine
    visits: list[Visit] = field(factory=lambda: list[Visit]())  # noqa: PLW0108 reason: `Visit` is below
    ended: bool = False
    meetings: dict[tuple[str, int], Meeting] = field(factory=dict[tuple[str, int], Meeting])
    shared: dict[Buffer, Cells] = field(factory=dict[Buffer, Cells])
    groups: dict[tuple[str, int], Groups] = field(factory=dict[tuple[str, int], Groups])
    maps: dict[Buffer, Mapped] = field(factory=dict[Buffer, Mapped])
    units: list[Unit] = field(factory=lambda: list[Unit]())  # noqa: PLW0108 reason: `Unit` is below

    def queue_of(self, queue: str, strand: int) -> Groups:
        """The groups of one owner, by its first strand."""
        return self.groups.setdefault((queue, strand), Groups())

    @property
    def told(self) -> str:
        """Which block of several this is, as a person reads it after a name."""
        return f" of rank {self.rank}" if len(self.cluster.machines) > 1 else ""


@define(eq=False)
class Visit:
    """What another block does to this one's memory or barriers. mark, bit: how those know of it who know it is over."""

    agent: Agent
    event: Event
    thread: int
    mark: Mark | None = None
    bit: int | None = None

    def known(self, clock: Clock) -> bool:
        if self.mark is not None:
            return clock.knows((self.mark,))
        return self.bit is None or bool(clock.done >> self.bit & 1)


@define(eq=False)
class Sent:
    """One multicast. place: where the tensor's element lies that comes to the slot's first; mask: of the receivers."""

    event: Event
    rank: int
    place: tuple[int, ...]
    mask: int


@define(eq=False)
class Cluster:
    """Blocks that run together, by rank: one, without clusters. meetings: of all threads of all of them.

    sent: of a multicast, an agent's number and how often it has executed it, what the first block to do so has sent.
    times: of a multicast, a rank and an agent's number.
    """

    launch: Launch
    strands: Strands
    engine: Engine = field(factory=Engine)
    machines: list[Machine] = field(factory=list[Machine])
    meetings: dict[tuple[str, int], Meeting] = field(factory=dict[tuple[str, int], Meeting])
    sent: dict[tuple[Stmt, int, int], Sent] = field(factory=dict[tuple[Stmt, int, int], Sent])
    times: Counter[tuple[Stmt, int, int]] = field(factory=Counter[tuple[Stmt, int, int]])

    @property
    def units(self) -> list[Unit]:
        return [unit for machine in self.machines for unit in machine.units]


@define(eq=False)
class Waiting:
    """Why a unit cannot move: the phase of a barrier, or the generation of a rendezvous, that is not complete."""

    event: Event
    on: Phased | Meeting
    phase: int

    def over(self) -> bool:
        if isinstance(self.on, Phased):
            return self.on.passes(self.phase)
        return self.on.state.generation > self.phase

    @property
    def missed(self) -> bool:
        """Whether the phase is complete, and a later one too, so that its parity is that of another."""
        return isinstance(self.on, Phased) and self.on.state.phases > self.phase + 1

    def told(self) -> str:
        """What is waited for, and what it lacks: phase 3 of `full[0]` (phase 3 is under way, 1 of 1 ... missing)."""
        if isinstance(self.on, Phased) and self.missed:
            return f"phase {self.phase} of {self.on.name}, when phase {self.on.state.phases - 1} is complete already"
        if isinstance(self.on, Phased):
            return f"phase {self.phase} of {self.on.name} ({self.on.missing()})"
        return f"the rendezvous `{self.on.name}` ({self.on.missing()})"


@define(eq=False)
class Agent(Block):
    """One agent of a role, or all threads of the block outside of roles.

    name: as a person reads it. role: None for the block's. threads: of the agent; width: of what steps together.
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
        return self.own_scalars

    def cells(self, buffer: Buffer) -> Cells:
        if buffer.space != "shared":
            return super().cells(buffer)
        found = self.machine.shared.get(buffer)
        if found is None:
            found = self.machine.shared[buffer] = super().cells(buffer)
        return found

    def settle(self, wave: Wave, buffer: Buffer, event: Event, use: str) -> bool:
        """Whether registers about to be used belong to an operation under way, which is reported: I11."""
        flights = cast(Unit, wave).airborne.get(buffer)
        if not flights:
            return False
        self.report(
            "I11",
            f"`{buffer.name}` is {use} while an operation on it is in flight",
            event,
            thread=wave.first,
            value=0,
            element=coordinates(buffer, wave.first, 0),
            buffer=buffer.name,
            other=flights[0].event,
            other_thread=wave.first,
            facts=(("queue", flights[0].kind),),
        )
        return True


@define(eq=False)
class Unit(Wave):
    """The threads of an agent that step together.

    after: units that end before it begins. counters: the values of its counters. airborne: registers of operations
    under way. touched: registers that ordinary code has used since the last fence of their multiplications. waited:
    the last phase waited for of each barrier. astray: of a barrier, the last wait that was not for the phase after the
    one waited for before, and that phase. arrived: the generation of a cluster's meeting that it has arrived in.
    """

    agent: Agent = field(kw_only=True)
    after: tuple[Unit, ...] = field(kw_only=True, default=())
    begun: bool = False
    waiting: Waiting | None = None
    arrived: int | None = None
    counters: dict[Buffer, int] = field(factory=dict[Buffer, int])
    airborne: dict[Buffer, list[Flight]] = field(factory=dict[Buffer, list[Flight]])
    touched: dict[Buffer, Event] = field(factory=dict[Buffer, Event])
    waited: dict[tuple[Buffer, int], int] = field(factory=dict[tuple[Buffer, int], int])
    astray: dict[tuple[Buffer, int], tuple[Event, int]] = field(factory=dict[tuple[Buffer, int], tuple[Event, int]])

    @property
    def acting(self) -> tuple[int, ...]:
        """The strands that execute the present statement: one inside `One`."""
        base = self.agent.machine.first + self.agent.base
        return self.agent.machine.strands.within(base + self.first, base + self.last)

    def begin(self) -> None:
        """What the threads knew at the end of what they did before, they know now."""
        self.begun = True
        if self.after:
            self.env = {**self.after[0].env, **self.env}
            self.counters = dict(self.after[0].counters)

    def occurrence(self, stmt: Stmt) -> Event:
        """This execution of a statement, told with the agent's number."""
        event = self.event(stmt, self.agent.index)
        role = self.agent.role
        if role is None or role.agents == 1:
            return event
        told = ((role.number.name, self.agent.number), *event.iteration)
        return Event(stmt, event.block, event.wave, event.path, told, event.epoch)

    def in_turn(self, barrier: Phased, phase: int) -> bool:
        """Whether a wait for this phase goes on from the waits before; a first one is for phase 0 or the one before."""
        before = self.waited.get((barrier.buffer, barrier.index))
        return phase in (-1, 0) if before is None else phase == before + 1

    def launch(self, flight: Flight) -> None:
        """Leave an operation to the engine; it completes at once if the adversary says so."""
        machine = self.agent.machine
        machine.engine.issue(flight)
        schedule = machine.launch.adversary.schedule
        if schedule.style == "early" and not schedule.priority:
            machine.engine.complete(flight)
