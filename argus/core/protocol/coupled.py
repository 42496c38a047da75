"""The one-slot lemma of rings that fill each other: one slot of each, every other one stuttering.

As `lemma.py`, for several rings whose fillers copy into each other's slots and whose drainers give slots back to
several fillers, as blocks of a cluster do. Drainers of one ring that do the same stand for each other: one of them is
followed, and the others do no more than make a phase of an empty barrier complete later, at any moment after the
arrivals of those followed. A read lasts from the wait before it to the arrival after it, which loses no clash.

Copies of one filler to one ring stand for each other, too, where that ring's announcement is the sum of all bytes that
come to it and goes ahead of them: then no phase completes before the last has landed, so that one copy of all their
bytes, under way from where the first sets out to where the last lands, meets whatever any of them would. Part of the
obligations' meaning.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from typing import TypeVar

from attrs import evolve, frozen

from argus.core.protocol.lemma import Certified
from argus.core.protocol.outcome import Fails, Unknown


@frozen
class Filler:
    """What fills: of each use, in order, the bytes announced (-1 there), or copied into the slots of several rings.

    steps: (-1, bytes) announces, (part, bytes) copies a part; to: of each step, the rings.
    """

    steps: tuple[tuple[int, int], ...]
    to: tuple[tuple[int, ...], ...]


@frozen
class Drainer:
    """A drainer of ring `home`. gives: of each use, in order, at which rings' empty barriers it arrives how often."""

    home: int
    gives: tuple[tuple[int, int], ...]


@frozen
class Coupled:
    """fillers: of each ring. full, empty: arrivals that complete a phase. All announcements are one arrival."""

    fillers: tuple[Filler, ...]
    drainers: tuple[Drainer, ...]
    empty: tuple[int, ...]


_CAP = 120_000
T = TypeVar("T")

State = tuple[
    tuple[tuple[int, int], ...],  # of each filler: uses finished, steps into the next (0: before its wait)
    tuple[
        tuple[int, int], ...
    ],  # of each drainer followed: uses finished, arrivals of the next made, -1 before its wait
    tuple[tuple[int, int, int], ...],  # of each full barrier: phases, announcements, bytes due
    tuple[tuple[int, int], ...],  # of each empty barrier: phases, arrivals of those followed
    frozenset[tuple[int, int, int, int]],  # copies under way: ring, part, bytes, use
    tuple[tuple[tuple[int, int], ...], ...],  # of each ring: parts landed, with their last use
]


@lru_cache(maxsize=64)
def certify_coupled(shape: Coupled) -> Certified | Fails | Unknown:
    """A pure function of the shape: proved once, remembered."""
    joined = _joined(shape)
    found = _explored(joined)
    return _explored(shape) if isinstance(found, Fails) and joined != shape else found


def _joined(shape: Coupled) -> Coupled:
    """The shape with one copy of each filler to each ring; itself where a phase may complete before all have landed."""
    copies = [
        (ring, size)
        for filler in shape.fillers
        for (part, size), to in zip(filler.steps, filler.to, strict=True)
        for ring in to
        if part >= 0
    ]
    for number, filler in enumerate(shape.fillers):
        announces = [place for place, (part, _) in enumerate(filler.steps) if part < 0]
        due = sum(size for ring, size in copies if ring == number)
        if announces != [0] or filler.to[0] != (number,) or filler.steps[0][1] != due:
            return shape
    return evolve(shape, fillers=tuple(map(_with_one_copy_a_ring, shape.fillers)))


def _with_one_copy_a_ring(filler: Filler) -> Filler:
    parts: dict[tuple[int, ...], tuple[int, int]] = {}
    for (part, size), to in zip(filler.steps[1:], filler.to[1:], strict=True):
        first, before = parts.get(to, (part, 0))
        parts[to] = first, before + size
    return Filler((filler.steps[0], *parts.values()), (filler.to[0], *parts))


def _explored(shape: Coupled) -> Certified | Fails | Unknown:
    followed = tuple(sorted(set(shape.drainers), key=lambda each: (each.home, each.gives)))
    run = _Run(shape, followed)
    start = run.start()
    seen, queue = {start}, deque([start])
    while queue:
        state = queue.popleft()
        moved = False
        for following in run.moves(state):
            moved = True
            if isinstance(following, Fails):
                return following
            normal = _normal(following)
            if normal not in seen:
                if len(seen) >= _CAP:
                    return Unknown(f"the lemma on one slot of each ring takes more than {_CAP} states for this shape")
                seen.add(normal)
                queue.append(normal)
        if not moved:
            return Fails("lemma", "on one slot of each ring alone, all participants wait for each other")
    return Certified(len(seen))


def _normal(state: State) -> State:
    """The same state with an even number of uses taken off everywhere."""
    fillers, drainers, full, empty, flying, content = state
    base = min(use for use, _ in (*fillers, *drainers)) // 2 * 2
    if base == 0:
        return state
    return (
        tuple((use - base, at) for use, at in fillers),
        tuple((use - base, at) for use, at in drainers),
        tuple((phases - base, arrived, due) for phases, arrived, due in full),
        tuple((phases - base, arrived) for phases, arrived in empty),
        frozenset((ring, part, size, use - base) for ring, part, size, use in flying),
        tuple(tuple((part, max(use - base, -1)) for part, use in held) for held in content),
    )


def _set(values: tuple[T, ...], at: int, value: T) -> tuple[T, ...]:
    return (*values[:at], value, *values[at + 1 :])


@frozen
class _Run:
    shape: Coupled
    followed: tuple[Drainer, ...]

    def start(self) -> State:
        rings = range(len(self.shape.fillers))
        parts = {
            ring: sorted(
                {p for f in self.shape.fillers for (p, _), to in zip(f.steps, f.to, strict=True) if ring in to}
            )
            for ring in rings
        }
        return (
            tuple((0, 0) for _ in rings),
            tuple((0, -1) for _ in self.followed),
            tuple((0, 0, 0) for _ in rings),
            tuple((0, 0) for _ in rings),
            frozenset(),
            tuple(tuple((part, -1) for part in parts[ring] if part >= 0) for ring in rings),
        )

    def moves(self, state: State) -> Iterator[State | Fails]:
        for flight in state[4]:
            yield self._landed(state, flight)
        for number in range(len(self.shape.fillers)):
            yield from self._filled(state, number)
        for number in range(len(self.followed)):
            yield from self._drained(state, number)
        for ring, (phases, arrived) in enumerate(state[3]):
            if arrived == self._owed(ring):
                yield (*state[:3], _set(state[3], ring, (phases + 1, 0)), *state[4:])

    def _owed(self, ring: int) -> int:
        """Arrivals a phase of those followed."""
        return sum(count for drainer in self.followed for to, count in drainer.gives if to == ring)

    def _others(self, ring: int) -> bool:
        """Whether the barrier counts arrivals of drainers that are not followed."""
        return self.shape.empty[ring] > self._owed(ring)

    def _landed(self, state: State, flight: tuple[int, int, int, int]) -> State:
        ring, part, size, use = flight
        held = tuple((p, use if p == part else u) for p, u in state[5][ring])
        phases, arrived, due = state[2][ring]
        full = _set(state[2], ring, _completed(phases, arrived, due - size))
        return (*state[:2], full, state[3], state[4] - {flight}, _set(state[5], ring, held))

    def _filled(self, state: State, number: int) -> Iterator[State | Fails]:
        use, at = state[0][number]
        filler = self.shape.fillers[number]
        if at == 0:
            phases = state[3][number][0]
            if phases % 2 == (use - 1) % 2:
                return
            if phases != use:
                yield Fails("lemma", "a filler's parity stands for a phase two off")
                return
            yield (_set(state[0], number, (use, 1)), *state[1:])
            return
        (part, size), to = filler.steps[at - 1], filler.to[at - 1]
        following = (use + 1, 0) if at == len(filler.steps) else (use, at + 1)
        moved: State = (_set(state[0], number, following), *state[1:])
        for ring in to:
            made = self._announced(moved, ring, size, use) if part < 0 else self._issued(moved, ring, part, size, use)
            if isinstance(made, Fails):
                yield made
                return
            moved = made
        yield moved

    @staticmethod
    def _announced(state: State, ring: int, size: int, use: int) -> State | Fails:
        phases, arrived, due = state[2][ring]
        if phases != use or arrived:
            return Fails("lemma", "the phase before of a full barrier is not complete when it is announced")
        return (*state[:2], _set(state[2], ring, _completed(phases, 1, due + size)), *state[3:])

    def _issued(self, state: State, ring: int, part: int, size: int, use: int) -> State | Fails:
        reading = any(d.home == ring and state[1][i][1] == 0 for i, d in enumerate(self.followed))
        if reading or any(flight[:2] == (ring, part) for flight in state[4]):
            return Fails("lemma", "a copy sets out for a slot that is being read or written")
        if state[2][ring][0] != use:
            return Fails("lemma", "a copy may land in another phase of a full barrier than its own")
        return (*state[:4], state[4] | {(ring, part, size, use)}, state[5])

    def _drained(self, state: State, number: int) -> Iterator[State | Fails]:
        use, given = state[1][number]
        drainer = self.followed[number]
        home = drainer.home
        if given < 0:
            phases = state[2][home][0]
            if phases % 2 == use % 2:
                return
            if phases != use + 1:
                yield Fails("lemma", "a drainer's parity stands for a phase two off")
            elif any(f[0] == home for f in state[4]) or any(held != use for _, held in state[5][home]):
                yield Fails("lemma", "a drainer reads before its use has landed, or after it is overwritten")
            else:
                yield (state[0], _set(state[1], number, (use, 0)), *state[2:])
            return
        ring, count = drainer.gives[given]
        phases, arrived = state[3][ring]
        if phases != use or arrived + count > self._owed(ring):
            yield Fails("lemma", "an arrival at an empty barrier counts for another phase")
            return
        done = given + 1 == len(drainer.gives)
        after = (use + 1, -1) if done else (use, given + 1)
        complete = arrived + count == self._owed(ring) and not self._others(ring)
        barrier = (phases + 1, 0) if complete else (phases, arrived + count)
        yield (state[0], _set(state[1], number, after), state[2], _set(state[3], ring, barrier), *state[4:])


def _completed(phases: int, arrived: int, due: int) -> tuple[int, int, int]:
    return (phases + 1, 0, 0) if arrived == 1 and due == 0 else (phases, arrived, due)
