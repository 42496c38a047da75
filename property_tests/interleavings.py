"""Explores all interleavings of a ring protocol with few uses: an independent oracle for `argus/core/protocol`.

It implements the documented semantics of `core/protocol/ring.py` and uses nothing else of the verifier. Every step of a
role is a move of its own, and so is every completion of a copy; a copy writes from its issue to its completion, and a
wgmma group reads from its issue to the wait that covers it.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import TypeVar

from attrs import evolve, frozen

from argus.core.protocol.ring import (
    ArriveFull,
    Copy,
    Cursor,
    Op,
    Phase,
    Protocol,
    Read,
    Release,
    Role,
    WaitEmpty,
    WaitFull,
    WaitGroups,
)

T = TypeVar("T")
Barrier = tuple[str, int, int]
"""Barrier: full or empty, ring, slot."""
Cell = tuple[int, int, int]
"""Cell: ring, slot, part."""
Step = tuple[Op, int, int]
"""An operation, its use within the tile, and its use over all tiles."""


@frozen
class State:
    """at: steps done, by role. groups: cells read by wgmma groups in flight, by role. barriers: completed phases,
    arrivals, pending bytes. flights: copies in flight (cell, use, barrier, bytes). held: the use whose data a cell has.
    """

    at: tuple[int, ...]
    groups: tuple[tuple[frozenset[Cell], ...], ...]
    barriers: tuple[tuple[int, int, int], ...]
    flights: frozenset[tuple[Cell, int, int, int]]
    held: frozenset[tuple[Cell, int]]


class WrongError(Exception):
    """A step violates the protocol."""


def steps(protocol: Protocol, role: Role, trips: int, tiles: int) -> Iterator[Step]:
    """The role's steps at one size."""
    mine = max(0, trips + role.trips)
    aheads = [op.ahead for op in role.body]
    for tile in range(tiles):
        for trip in range(-max(0, *aheads), mine - min(0, *aheads)):
            if trip == mine:
                yield WaitGroups(0), 0, 0
            for op in role.body:
                use = trip + op.ahead
                if 0 <= use < mine:
                    yield op, use, tile * mine + use
        if min(0, *aheads) == 0:
            yield WaitGroups(0), 0, 0
    if role.finishes:
        for wait in (op for op in role.body if isinstance(op, WaitEmpty)):
            for last in range(protocol.rings[wait.ring].stages):
                yield wait, last, tiles * mine + last


class Runs:
    """A protocol at one size."""

    def __init__(self, protocol: Protocol, trips: int, tiles: int) -> None:
        assert not protocol.named_barriers
        self.rings = protocol.rings
        self.programs = [tuple(steps(protocol, role, trips, tiles)) for role in protocol.roles]
        numbered = [(which, ring, slot) for which in ("full", "empty") for ring, slot in self._slots()]
        self.numbers: dict[Barrier, int] = {barrier: number for number, barrier in enumerate(numbered)}
        self.counts = [getattr(self.rings[ring], which) for which, ring, _ in numbered]

    def _slots(self) -> Iterator[tuple[int, int]]:
        for number, ring in enumerate(self.rings):
            yield from ((number, slot) for slot in range(ring.stages))

    def start(self) -> State:
        roles = len(self.programs)
        return State((0,) * roles, ((),) * roles, ((0, 0, 0),) * len(self.counts), frozenset(), frozenset())

    def moves(self, state: State) -> Iterator[int | tuple[Cell, int, int, int]]:
        """The enabled moves: roles that can step, and copies that can complete."""
        for role, program in enumerate(self.programs):
            at = state.at[role]
            if at < len(program) and self._passes(state, program[at]):
                yield role
        yield from sorted(state.flights)

    def _number(self, which: str, ring: int, cursor: Cursor, step: Step) -> int:
        return self.numbers[which, ring, _integer(cursor, step) % self.rings[ring].stages]

    def _passes(self, state: State, step: Step) -> bool:
        op = step[0]
        if not isinstance(op, WaitEmpty | WaitFull):
            return True
        which = "empty" if isinstance(op, WaitEmpty) else "full"
        phases = state.barriers[self._number(which, op.ring, op.slot, step)][0]
        return phases % 2 != self._phase(op.phase, op.ring, step) % 2

    def _phase(self, phase: Phase, ring: int, step: Step) -> int:
        return _integer(phase.cursor, step) // self.rings[ring].stages + phase.plus

    def after(self, state: State, move: int | tuple[Cell, int, int, int]) -> State:
        """The state after a move. Raises WrongError."""
        if not isinstance(move, int):
            cell, use, barrier, size = move
            landed = frozenset({*((c, u) for c, u in state.held if c != cell), (cell, use)})
            return self._arrived(evolve(state, flights=state.flights - {move}, held=landed), barrier, 0, -size)
        step = self.programs[move][state.at[move]]
        return self._executed(evolve(state, at=_put(state.at, move, state.at[move] + 1)), move, step)

    def _arrived(self, state: State, barrier: int, arrivals: int, due: int) -> State:
        phases, arrived, pending = state.barriers[barrier]
        arrived, pending = arrived + arrivals, pending + due
        if arrived > self.counts[barrier]:
            raise WrongError("more arrivals than a phase takes")
        complete = arrived == self.counts[barrier] and pending == 0
        now = (phases + 1, 0, 0) if complete else (phases, arrived, pending)
        return evolve(state, barriers=_put(state.barriers, barrier, now))

    def _executed(self, state: State, role: int, step: Step) -> State:
        match step[0]:
            case WaitEmpty() | WaitFull():
                return state
            case ArriveFull(ring=ring, slot=slot, size=size, count=count):
                return self._arrived(state, self._number("full", ring, slot, step), count, size)
            case Release(ring=ring, slot=slot, count=count):
                return self._arrived(state, self._number("empty", ring, slot, step), count, 0)
            case Copy() as op:
                return self._issued(state, op, step)
            case Read() as op:
                return self._read(state, role, op, step)
            case WaitGroups(pending=pending):
                groups = state.groups[role]
                return evolve(state, groups=_put(state.groups, role, groups[max(0, len(groups) - pending) :]))
            case _:
                raise TypeError(f"the explorer gives {step[0]} no meaning")

    def _issued(self, state: State, op: Copy, step: Step) -> State:
        cell = op.ring, _integer(op.slot, step) % self.rings[op.ring].stages, op.part
        if any(cell in group for groups in state.groups for group in groups):
            raise WrongError("a copy into what a group still reads")
        if any(flight[0] == cell for flight in state.flights):
            raise WrongError("a copy into what another still writes")
        flight = (cell, step[2], self._number("full", op.ring, op.signal, step), op.size)
        return evolve(state, flights=state.flights | {flight})

    def _read(self, state: State, role: int, op: Read, step: Step) -> State:
        slot, held = _integer(op.slot, step) % self.rings[op.ring].stages, dict(state.held)
        cells = frozenset((op.ring, slot, part) for part in range(len(self.rings[op.ring].parts)))
        if any(flight[0] in cells for flight in state.flights):
            raise WrongError("a read of what a copy still writes")
        if any(held.get(cell) != step[2] for cell in cells):
            raise WrongError("a read of another use")
        if not op.late:
            return state
        return evolve(state, groups=_put(state.groups, role, (*state.groups[role], cells)))

    def over(self, state: State) -> bool:
        return all(at == len(program) for at, program in zip(state.at, self.programs, strict=True))


def failure(protocol: Protocol, trips: int, tiles: int, most: int, seed: int) -> tuple[str, bool]:
    """A failure of some run, or an empty string; and whether all runs were explored, within `most` states.

    Runs with fixed priorities of roles come first, as they find most failures.
    """
    runs, random = Runs(protocol, trips, tiles), Random(seed)  # noqa: S311 reason: an order, no secret
    for _ in range(12):
        found = _priority_run(runs, random)
        if found:
            return found, False
    stack, seen = [runs.start()], {runs.start()}
    while stack:
        state = stack.pop()
        moves = list(runs.moves(state))
        if not moves:
            found = _at_rest(runs, state)
            if found:
                return found, False
        random.shuffle(moves)
        for move in moves:
            try:
                following = runs.after(state, move)
            except WrongError as wrong:
                return str(wrong), False
            if following not in seen:
                if len(seen) >= most:
                    return "", False
                seen.add(following)
                stack.append(following)
    return "", True


def _priority_run(runs: Runs, random: Random) -> str:
    """One run with a fixed priority of roles, copies completing before all of them or after."""
    order = random.sample(range(len(runs.programs)), len(runs.programs))
    late, state = random.random() < 0.5, runs.start()
    while moves := list(runs.moves(state)):
        own = sorted((move for move in moves if isinstance(move, int)), key=order.index)
        flights = [move for move in moves if not isinstance(move, int)]
        random.shuffle(flights)
        chosen = ([*own, *flights] if late else [*flights, *own])[0]
        try:
            state = runs.after(state, chosen)
        except WrongError as wrong:
            return str(wrong)
    return _at_rest(runs, state)


def _at_rest(runs: Runs, state: State) -> str:
    return "" if runs.over(state) else "nobody can move"


def _integer(cursor: Cursor, step: Step) -> int:
    _, in_tile, over_tiles = step
    return (in_tile if cursor.restarts else over_tiles) + cursor.offset


def _put(values: tuple[T, ...], at: int, value: T) -> tuple[T, ...]:
    return (*values[:at], value, *values[at + 1 :])
