"""The states and transitions of the protocol machine.

A move of a role is one step that other roles can observe. Two kinds of step are merged into other moves, which hides no
failure: a copy, an expect-tx or a read that follows a move in the same trip is executed with it (the earlier, the more
it can conflict with), and a wait for wgmma groups is executed just before the role's next move (the later, the longer
its reads last). A synchronous read lasts until the role's next move.
"""

from __future__ import annotations

from typing import TypeVar, assert_never

from attrs import evolve, frozen

from argus.core.barriers import Mbarrier, NamedBarrier, arrive, arrive_named, complete_tx, passes
from argus.testing.protocol.lowering import (
    ArriveBarrier,
    ArriveNamed,
    Await,
    AwaitNamed,
    Cell,
    DrainGroups,
    Program,
    ReadCells,
    StartCopy,
    Step,
    Tag,
)

T = TypeVar("T")


@frozen
class Actor:
    """at: steps done. groups: cells read by each wgmma group in flight. reading: cells of a synchronous read."""

    at: int = 0
    groups: tuple[tuple[Cell, ...], ...] = ()
    reading: tuple[Cell, ...] = ()


@frozen
class NamedBarrierState:
    """A named barrier, the roles arrived in its current generation, and the generation each role waits for."""

    barrier: NamedBarrier
    here: frozenset[int] = frozenset()
    awaited: tuple[int, ...] = ()


@frozen(cache_hash=True, slots=True)
class State:
    """in_flight: copies not yet complete. content: the tag of each cell written so far."""

    actors: tuple[Actor, ...]
    barriers: tuple[Mbarrier, ...]
    meetings: tuple[NamedBarrierState, ...]
    in_flight: frozenset[StartCopy] = frozenset()
    content: frozenset[tuple[Cell, Tag]] = frozenset()


@frozen
class Fault:
    claim: str
    what: str


@frozen
class Machine:
    """The transitions of a program. A move is the number of a role, or a copy that completes."""

    program: Program

    @property
    def _roles(self) -> range:
        return range(len(self.program.roles))

    def start(self) -> State:
        barriers = tuple(Mbarrier(count) for count in self.program.counts)
        rooms = tuple(
            NamedBarrierState(NamedBarrier(n), awaited=(0,) * len(self._roles)) for n in self.program.meetings
        )
        return State(tuple(Actor() for _ in self._roles), barriers, rooms)

    def next_step(self, state: State, role: int) -> tuple[int, Step] | None:
        """The step of the role's next move, skipping waits for wgmma groups."""
        steps = self.program.steps[role]
        at = state.actors[role].at
        while at < len(steps) and isinstance(steps[at][1], DrainGroups):
            at += 1
        return steps[at] if at < len(steps) else None

    def enabled(self, state: State, role: int) -> bool:
        """Whether the role can move."""
        upcoming = self.next_step(state, role)
        match upcoming:
            case None:
                return False
            case (_, Await(barrier=barrier, phase=phase)):
                return passes(state.barriers[barrier], phase)
            case (_, AwaitNamed(meeting=meeting)):
                room = state.meetings[meeting]
                return room.barrier.generation >= room.awaited[role]
            case _:
                return True

    def moves(self, state: State) -> list[int | StartCopy]:
        """The enabled moves: roles first, then completions of copies, oldest data first."""
        roles: list[int | StartCopy] = [role for role in self._roles if self.enabled(state, role)]
        roles.extend(sorted(state.in_flight, key=age))
        return roles

    def at_exit(self, state: State) -> Fault | None:
        """A fault if all roles have ended with a copy in flight, which may then write another block's memory."""
        if self.waiting(state) or not state.in_flight:
            return None
        flight = min(state.in_flight, key=age)
        return Fault("exit", f"all roles have ended, {_data(flight.tag)} is still being copied to {_cell(flight.cell)}")

    def waiting(self, state: State) -> list[int]:
        """The roles that have not finished."""
        return [role for role in self._roles if self.next_step(state, role) is not None]

    def after(self, state: State, move: int | StartCopy) -> State | Fault:
        """The state after an enabled move, or the fault that it causes."""
        following = self._after(state, move)
        return following if isinstance(following, Fault) else self.at_exit(following) or following

    def _after(self, state: State, move: int | StartCopy) -> State | Fault:
        if isinstance(move, StartCopy):
            return self._complete_copy(state, move)
        steps = self.program.steps[move]
        state = self._act(state, move, evolve(state.actors[move], reading=()))
        actor = state.actors[move]
        while isinstance(steps[actor.at][1], DrainGroups):
            actor = self._waited(actor, steps[actor.at][1])
        trip = steps[actor.at][0]
        found = self._step(self._act(state, move, evolve(actor, at=actor.at + 1)), move, steps[actor.at][1])
        while isinstance(found, State):
            at = found.actors[move].at
            if at >= len(steps) or steps[at][0] != trip or not _at_once(steps[at][1]):
                break
            moved = self._act(found, move, evolve(found.actors[move], at=at + 1))
            found = self._step(moved, move, steps[at][1])
        return found

    @staticmethod
    def _act(state: State, role: int, actor: Actor) -> State:
        return evolve(state, actors=(*state.actors[:role], actor, *state.actors[role + 1 :]))

    @staticmethod
    def _waited(actor: Actor, step: Step) -> Actor:
        assert isinstance(step, DrainGroups)
        keep = actor.groups[max(0, len(actor.groups) - step.pending) :]
        return evolve(actor, at=actor.at + 1, groups=keep)

    @staticmethod
    def _complete_copy(state: State, flight: StartCopy) -> State:
        barriers = _replaced(state.barriers, flight.barrier, complete_tx(state.barriers[flight.barrier], flight.size))
        content = frozenset({*((c, t) for c, t in state.content if c != flight.cell), (flight.cell, flight.tag)})
        return evolve(state, barriers=barriers, in_flight=state.in_flight - {flight}, content=content)

    def _step(self, state: State, role: int, step: Step) -> State | Fault:
        match step:
            case Await() | AwaitNamed() | DrainGroups():
                return state
            case ArriveBarrier(barrier=number):
                barrier = arrive(state.barriers[number], step.count, step.size)
                if barrier.overrun:
                    return Fault("arrivals", f"{self.program.names[number]} gets more arrivals than a phase takes")
                return evolve(state, barriers=_replaced(state.barriers, number, barrier))
            case StartCopy():
                return self._start_copy(state, step)
            case ReadCells():
                return self._read(state, role, step)
            case ArriveNamed(meeting=number):
                return self._arrive_named(state, role, number)
        assert_never(step)

    def _start_copy(self, state: State, step: StartCopy) -> State | Fault:
        for role, actor in enumerate(state.actors):
            if step.cell in actor.reading or any(step.cell in cells for cells in actor.groups):
                reader = self._name(role)
                return Fault("WAR", f"{_data(step.tag)} overwrites {_cell(step.cell)} while {reader} reads it")
        if any(flight.cell == step.cell for flight in state.in_flight):
            return Fault("WAW", f"{_data(step.tag)} is copied to {_cell(step.cell)} while another copy writes it")
        return evolve(state, in_flight=state.in_flight | {step})

    def _read(self, state: State, role: int, step: ReadCells) -> State | Fault:
        held = dict(state.content)
        for cell in step.cells:
            reads = f"{self._name(role)} reads {_cell(cell)} for {_data(step.tag)}"
            if any(flight.cell == cell for flight in state.in_flight):
                return Fault("RAW", f"{reads} while a copy writes it")
            if held.get(cell) != step.tag:
                found = held.get(cell)
                return Fault("RAW", f"{reads}, it holds {_data(found) if found is not None else 'nothing'}")
        actor = state.actors[role]
        changed = evolve(actor, groups=(*actor.groups, step.cells)) if step.late else evolve(actor, reading=step.cells)
        return self._act(state, role, changed)

    def _arrive_named(self, state: State, role: int, number: int) -> State | Fault:
        room = state.meetings[number]
        if role in room.here:
            return Fault("meeting", f"{self._name(role)} arrives twice at one filling of named barrier {number}")
        awaited = _replaced(room.awaited, role, room.barrier.generation + 1)
        barrier = arrive_named(room.barrier, 1)
        here = frozenset[int]() if barrier.arrived == 0 else room.here | {role}
        return evolve(state, meetings=_replaced(state.meetings, number, NamedBarrierState(barrier, here, awaited)))

    def _name(self, role: int) -> str:
        return self.program.roles[role]


def age(flight: StartCopy) -> tuple[Tag, Cell]:
    """Sort key of copies: their data, then their target cell."""
    return flight.tag, flight.cell


def _at_once(step: Step) -> bool:
    """Whether the step is merged into the previous move: an expect-tx, a copy or a read, but not a release."""
    return isinstance(step, StartCopy | ReadCells) or (isinstance(step, ArriveBarrier) and step.size > 0)


def _replaced(values: tuple[T, ...], index: int, value: T) -> tuple[T, ...]:
    return (*values[:index], value, *values[index + 1 :])


def _data(tag: Tag) -> str:
    return f"use {tag[1]} of tile {tag[0]}"


def _cell(cell: Cell) -> str:
    ring, slot, part = cell
    return f"slot {slot}" + (f" of ring {ring}" if ring else "") + (f", part {part}" if part else "")
