"""The one-slot lemma for the coupled rings of a cluster: model-checks one slot of each ring; the others stutter.

As `lemma.py`, for several rings whose producers copy into each other's slots and whose consumers release slots to
several producers. Two symmetry reductions. Consumers of one ring with equal operations: one of them is tracked, and the
others only delay the completion of an empty barrier's phase, until any time after the arrivals of the tracked one. A
read lasts from the wait before it to the arrival after it, an overapproximation that misses no conflict.

Copies of one producer to one ring, if that ring's announcement is the sum of all bytes copied to it and precedes them:
then no phase completes before the last copy, so that one copy of all their bytes, in flight from the first issue to the
last completion, conflicts with everything with which any of them would.

If each producer copies to its own ring besides, a phase completes with its last copy, and not before all are issued.
Then a producer may announce and issue all of a use at its wait, and all copies of a phase may complete with its last
one: each copy is in flight for longer, which hides no conflict, and each barrier completes when it did before. A
failure found in this way counts only if it is found again without. Part of the obligation semantics.
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
class CoupledProducer:
    """A producer's steps in each use, in order.

    steps: (-1, bytes) announces bytes, (part, bytes) copies a part. to: the target rings of each step.
    """

    steps: tuple[tuple[int, int], ...]
    to: tuple[tuple[int, ...], ...]


@frozen
class CoupledConsumer:
    """A consumer of ring `home`. gives: its arrivals at empty barriers in each use, in order, as (ring, count)."""

    home: int
    gives: tuple[tuple[int, int], ...]


@frozen
class CoupledShape:
    """producers: one per ring. empty: arrival counts. Every announcement is one arrival at a full barrier."""

    producers: tuple[CoupledProducer, ...]
    consumers: tuple[CoupledConsumer, ...]
    empty: tuple[int, ...]


_MAX_STATES = 120_000
T = TypeVar("T")

State = tuple[
    tuple[tuple[int, int], ...],  # of each producer: uses finished, steps into the next (0: before its wait)
    tuple[
        tuple[int, int], ...
    ],  # of each consumer followed: uses finished, arrivals of the next made, -1 before its wait
    tuple[tuple[int, int, int], ...],  # of each full barrier: phases, announcements, bytes due
    tuple[tuple[int, int], ...],  # of each empty barrier: phases, arrivals of those followed
    frozenset[tuple[int, int, int, int]],  # copies under way: ring, part, bytes, use
    tuple[tuple[tuple[int, int], ...], ...],  # of each ring: completed parts, with their last use
]


@lru_cache(maxsize=64)
def certify_coupled(shape: CoupledShape) -> Certified | Fails | Unknown:
    """Model-checks a shape. Cached: it depends on the shape alone."""
    if not _announces_all(shape):
        return explore(shape)
    joined = evolve(shape, producers=tuple(map(_with_one_copy_per_ring, shape.producers)))
    at_once = all(any(number in to for to in each.to[1:]) for number, each in enumerate(shape.producers))
    found = explore(joined, at_once=at_once)
    return explore(shape) if isinstance(found, Fails) and (at_once or joined != shape) else found


def _announces_all(shape: CoupledShape) -> bool:
    """Whether each producer begins a use with the announcement of all bytes copied to its ring, each part by one copy.

    Copies of one part conflict with each other, which a copy of several parts together would not show.
    """
    copies = [
        (ring, part, size)
        for producer in shape.producers
        for (part, size), to in zip(producer.steps, producer.to, strict=True)
        for ring in to
        if part >= 0
    ]
    for number, producer in enumerate(shape.producers):
        announces = [place for place, (part, _) in enumerate(producer.steps) if part < 0]
        due = sum(size for ring, _, size in copies if ring == number)
        if announces != [0] or producer.to[0] != (number,) or producer.steps[0][1] != due:
            return False
    return len({(ring, part) for ring, part, _ in copies}) == len(copies)


def _with_one_copy_per_ring(producer: CoupledProducer) -> CoupledProducer:
    parts: dict[tuple[int, ...], tuple[int, int]] = {}
    for (part, size), to in zip(producer.steps[1:], producer.to[1:], strict=True):
        first, before = parts.get(to, (part, 0))
        parts[to] = first, before + size
    return CoupledProducer((producer.steps[0], *parts.values()), (producer.to[0], *parts))


def explore(shape: CoupledShape, *, at_once: bool = False) -> Certified | Fails | Unknown:
    """Model-checks a shape as it is.

    at_once: a producer's wait and all that follows it in a use are one move, as are all landings of a phase.
    """
    followed = tuple(sorted(set(shape.consumers), key=lambda each: (each.home, each.gives)))
    run = _Transitions(shape, followed, at_once)
    start = run.start()
    seen, queue = {start}, deque([start])
    while queue:
        state = queue.popleft()
        moved = False
        for following in run.moves(state):
            moved = True
            if isinstance(following, Fails):
                return following
            normal = _normalised(following)
            if normal not in seen:
                if len(seen) >= _MAX_STATES:
                    return Unknown(
                        f"the lemma on one slot of each ring takes more than {_MAX_STATES} states for this shape"
                    )
                seen.add(normal)
                queue.append(normal)
        if not moved:
            return Fails("lemma", "deadlock on one slot of each ring")
    return Certified(len(seen))


def _normalised(state: State) -> State:
    """The state with the largest common even number of uses subtracted everywhere."""
    producers, consumers, full, empty, in_flight, content = state
    base = min(use for use, _ in (*producers, *consumers)) // 2 * 2
    if base == 0:
        return state
    return (
        tuple((use - base, at) for use, at in producers),
        tuple((use - base, at) for use, at in consumers),
        tuple((phases - base, arrived, due) for phases, arrived, due in full),
        tuple((phases - base, arrived) for phases, arrived in empty),
        frozenset((ring, part, size, use - base) for ring, part, size, use in in_flight),
        tuple(tuple((part, max(use - base, -1)) for part, use in held) for held in content),
    )


def _set(values: tuple[T, ...], at: int, value: T) -> tuple[T, ...]:
    return (*values[:at], value, *values[at + 1 :])


@frozen
class _Transitions:
    shape: CoupledShape
    followed: tuple[CoupledConsumer, ...]
    at_once: bool

    def start(self) -> State:
        rings = range(len(self.shape.producers))
        parts = {
            ring: sorted(
                {p for f in self.shape.producers for (p, _), to in zip(f.steps, f.to, strict=True) if ring in to}
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
        for flights in self._phases_of(state) if self.at_once else [(each,) for each in state[4]]:
            moved = state
            for flight in flights:
                moved = self._landed(moved, flight)
            yield moved
        for number in range(len(self.shape.producers)):
            yield from self._whole_use(state, number) if self.at_once else self._filled(state, number)
        for number in range(len(self.followed)):
            yield from self._drained(state, number)
        for ring, (phases, arrived) in enumerate(state[3]):
            if arrived == self._owed(ring):
                yield (*state[:3], _set(state[3], ring, (phases + 1, 0)), *state[4:])

    def _owed(self, ring: int) -> int:
        """The arrivals per phase of the tracked consumers."""
        return sum(count for consumer in self.followed for to, count in consumer.gives if to == ring)

    def _others(self, ring: int) -> bool:
        """Whether the barrier counts arrivals of untracked consumers."""
        return self.shape.empty[ring] > self._owed(ring)

    def _landed(self, state: State, flight: tuple[int, int, int, int]) -> State:
        ring, part, size, use = flight
        held = tuple((p, use if p == part else u) for p, u in state[5][ring])
        phases, arrived, due = state[2][ring]
        full = _set(state[2], ring, _completed(phases, arrived, due - size))
        return (*state[:2], full, state[3], state[4] - {flight}, _set(state[5], ring, held))

    @staticmethod
    def _phases_of(state: State) -> Iterator[tuple[tuple[int, int, int, int], ...]]:
        """The copies of each phase of which all are under way."""
        for ring, (_, arrived, due) in enumerate(state[2]):
            flights = tuple(sorted(each for each in state[4] if each[0] == ring))
            if arrived and sum(size for _, _, size, _ in flights) == due:
                yield flights

    def _whole_use(self, state: State, number: int) -> Iterator[State | Fails]:
        """The wait of a producer, and all steps of its use."""
        for _ in range(1 + len(self.shape.producers[number].steps)):
            (following,) = tuple(self._filled(state, number)) or (None,)
            if following is None:
                return
            if isinstance(following, Fails):
                yield following
                return
            state = following
        yield state

    def _filled(self, state: State, number: int) -> Iterator[State | Fails]:
        use, at = state[0][number]
        producer = self.shape.producers[number]
        if at == 0:
            phases = state[3][number][0]
            if phases % 2 == (use - 1) % 2:
                return
            if phases != use:
                yield Fails("lemma", "the barrier is two phases off the producer's wait")
                return
            yield (_set(state[0], number, (use, 1)), *state[1:])
            return
        (part, size), to = producer.steps[at - 1], producer.to[at - 1]
        following = (use + 1, 0) if at == len(producer.steps) else (use, at + 1)
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
            return Fails("lemma", "bytes are announced before the previous phase of a full barrier is complete")
        return (*state[:2], _set(state[2], ring, _completed(phases, 1, due + size)), *state[3:])

    def _issued(self, state: State, ring: int, part: int, size: int, use: int) -> State | Fails:
        reading = any(d.home == ring and state[1][i][1] == 0 for i, d in enumerate(self.followed))
        if reading or any(flight[:2] == (ring, part) for flight in state[4]):
            return Fails("lemma", "a copy is issued into a slot that is being read or written")
        if state[2][ring][0] != use:
            return Fails("lemma", "a copy may complete in another phase of a full barrier than its own")
        return (*state[:4], state[4] | {(ring, part, size, use)}, state[5])

    def _drained(self, state: State, number: int) -> Iterator[State | Fails]:
        use, given = state[1][number]
        consumer = self.followed[number]
        home = consumer.home
        if given < 0:
            phases = state[2][home][0]
            if phases % 2 == use % 2:
                return
            if phases != use + 1:
                yield Fails("lemma", "the barrier is two phases off the consumer's wait")
            elif any(f[0] == home for f in state[4]) or any(held != use for _, held in state[5][home]):
                yield Fails("lemma", "a consumer reads before its use is complete, or after it is overwritten")
            else:
                yield (state[0], _set(state[1], number, (use, 0)), *state[2:])
            return
        ring, count = consumer.gives[given]
        phases, arrived = state[3][ring]
        if phases != use or arrived + count > self._owed(ring):
            yield Fails("lemma", "an arrival at an empty barrier counts for another phase")
            return
        done = given + 1 == len(consumer.gives)
        after = (use + 1, -1) if done else (use, given + 1)
        complete = arrived + count == self._owed(ring) and not self._others(ring)
        barrier = (phases + 1, 0) if complete else (phases, arrived + count)
        yield (state[0], _set(state[1], number, after), state[2], _set(state[3], ring, barrier), *state[4:])


def _completed(phases: int, arrived: int, due: int) -> tuple[int, int, int]:
    return (phases + 1, 0, 0) if arrived == 1 and due == 0 else (phases, arrived, due)
