"""The one-slot window lemma: model-checks one slot of a ring modulo two phases, while all other slots stutter.

Uses of one slot alternate between two parities, so states that differ by an even number of uses are equivalent. If the
quotient is finite and has no failure, then for any number of uses: a reader of use v sees use v with no copy in flight,
each barrier is at the awaited phase or the next, and some step is always possible. The scheduling is arbitrary, as it
depends on the other slots. Source: proof-methods 3.4. Part of the obligation semantics.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import lru_cache

from attrs import evolve, frozen

from argus.core.protocol.outcome import Fails, Unknown

Steps = tuple[tuple[str, int], ...]


@frozen
class Shape:
    """The steps of the participants in one use of the slot.

    filling: wait, announce(bytes), copy(bytes). draining: of each consumer, wait, read, over, release(arrivals).
    full, empty: the arrival counts of the barriers.
    """

    filling: Steps
    draining: tuple[Steps, ...]
    full: int = 1
    empty: int = 1


@frozen
class Certified:
    """The lemma holds for a shape. states: the size of the quotient."""

    states: int


@frozen
class _State:
    """A state of one slot.

    uses, at: finished uses and steps into the next one, of the producer first, then of each consumer. full, empty:
    completed phases, arrivals, outstanding bytes. in_flight: copies as (step, use). content: the last completed use of
    each copy step. reading: whether each consumer is reading.
    """

    uses: tuple[int, ...]
    at: tuple[int, ...]
    full: tuple[int, int, int]
    empty: tuple[int, int]
    in_flight: frozenset[tuple[int, int]]
    content: tuple[int, ...]
    reading: tuple[bool, ...]


_MAX_STATES = 200_000
_MAX_LEAD = 6


@lru_cache(maxsize=256)
def certify(shape: Shape) -> Certified | Fails | Unknown:
    """Model-checks a shape. Cached: it depends on the shape alone."""
    start = _start(shape)
    seen = {start}
    queue = deque([start])
    while queue:
        slot = queue.popleft()
        moved = False
        for following in _steps(shape, slot):
            moved = True
            if isinstance(following, Fails):
                return following
            state = _normalised(following)
            if state not in seen:
                if len(seen) >= _MAX_STATES:
                    return Unknown(f"the one-slot lemma takes more than {_MAX_STATES} states for this shape")
                seen.add(state)
                queue.append(state)
        if not moved:
            return Fails("lemma", "deadlock on one slot")
    return Certified(len(seen))


def _start(shape: Shape) -> _State:
    roles = 1 + len(shape.draining)
    zeros = (0,) * roles
    return _State(zeros, zeros, (0, 0, 0), (0, 0), frozenset(), (-1,) * len(shape.filling), (False,) * (roles - 1))


def _normalised(slot: _State) -> _State:
    """The state with the largest common even number of uses subtracted everywhere."""
    base = min(slot.uses) // 2 * 2
    if base == 0:
        return slot
    return _State(
        tuple(use - base for use in slot.uses),
        slot.at,
        (slot.full[0] - base, slot.full[1], slot.full[2]),
        (slot.empty[0] - base, slot.empty[1]),
        frozenset((step, use - base) for step, use in slot.in_flight),
        tuple(use - base if use >= 0 else -1 for use in slot.content),
        slot.reading,
    )


def _steps(shape: Shape, slot: _State) -> Iterator[_State | Fails]:
    window = _window_failure(shape, slot)
    if window is not None:
        yield window
        return
    for step, use in slot.in_flight:
        if not _follows_alike(shape, slot, step, use):
            yield _complete_copy(shape, slot, step, use)
    name, amount = shape.filling[slot.at[0]]
    if name != "wait" or slot.empty[0] % 2 != (slot.uses[0] - 1) % 2:
        yield _producer_step(shape, slot, name, amount)
    for consumer, steps in enumerate(shape.draining):
        name, amount = steps[slot.at[consumer + 1]]
        if name != "wait" or slot.full[0] % 2 != slot.uses[consumer + 1] % 2:
            yield _consumer_step(shape, slot, consumer, (name, amount))


def _window_failure(shape: Shape, slot: _State) -> Fails | None:
    """A failure if a barrier is not at the awaited phase or the next, or a participant is too far ahead."""
    if max(slot.uses) - min(slot.uses) > _MAX_LEAD:
        return Fails("lemma", "one participant leads another without bound")
    if shape.filling[slot.at[0]][0] == "wait" and slot.uses[0] - slot.empty[0] not in {0, 1}:
        return Fails("lemma", "the barrier is two phases off the producer's wait")
    if any(slot.full[0] - use not in {0, 1} for use in slot.uses[1:]):
        return Fails("lemma", "the barrier is two phases off the consumer's wait")
    return None


def _follows_alike(shape: Shape, slot: _State, step: int, use: int) -> bool:
    """Whether the copy before it in the same use, of as many bytes, is in flight too.

    It is enough that the earlier one completes first: exchanging both gives a state that differs in which of them is in
    flight, and what fails because of one of them fails because of the other, if that is not completed in time.
    """
    return step > 0 and shape.filling[step - 1] == shape.filling[step] and (step - 1, use) in slot.in_flight


def _advanced(slot: _State, role: int, steps: Steps) -> _State:
    at = slot.at[role] + 1
    wraps = at == len(steps)
    ats = (*slot.at[:role], 0 if wraps else at, *slot.at[role + 1 :])
    uses = (*slot.uses[:role], slot.uses[role] + wraps, *slot.uses[role + 1 :])
    return evolve(slot, at=ats, uses=uses)


def _arrive_full(shape: Shape, slot: _State, arrivals: int, due: int) -> _State:
    """The state after additional arrivals and outstanding bytes at the full barrier."""
    phases, arrived, outstanding = slot.full
    arrived, outstanding = arrived + arrivals, outstanding + due
    complete = arrived == shape.full and outstanding == 0
    return evolve(slot, full=(phases + 1, 0, 0) if complete else (phases, arrived, outstanding))


def _complete_copy(shape: Shape, slot: _State, step: int, use: int) -> _State:
    content = (*slot.content[:step], use, *slot.content[step + 1 :])
    moved = evolve(slot, in_flight=slot.in_flight - {(step, use)}, content=content)
    return _arrive_full(shape, moved, 0, -shape.filling[step][1])


def _producer_step(shape: Shape, slot: _State, name: str, amount: int) -> _State | Fails:
    use, step = slot.uses[0], slot.at[0]
    moved = _advanced(slot, 0, shape.filling)
    match name:
        case "wait":
            return moved
        case "announce":
            if slot.full[0] != use or slot.full[1] >= shape.full:
                return Fails("lemma", "bytes are announced before the previous phase of the full barrier is complete")
            return _arrive_full(shape, moved, 1, amount)
        case _:
            if any(slot.reading) or any(each == step for each, _ in slot.in_flight):
                return Fails("lemma", "a copy is issued into a slot that is being read or written")
            return evolve(moved, in_flight=moved.in_flight | {(step, use)})


def _consumer_step(shape: Shape, slot: _State, consumer: int, step: tuple[str, int]) -> _State | Fails:
    use = slot.uses[consumer + 1]
    moved = _advanced(slot, consumer + 1, shape.draining[consumer])
    match step[0]:
        case "wait":
            return moved
        case "read":
            copies = [number for number, (name, _) in enumerate(shape.filling) if name == "copy"]
            if slot.in_flight or any(slot.content[number] != use for number in copies):
                return Fails("lemma", "a consumer reads before its use is complete, or after it is overwritten")
            return evolve(moved, reading=_set(slot.reading, consumer, value=True))
        case "over":
            return evolve(moved, reading=_set(slot.reading, consumer, value=False))
        case _:
            return _release(shape, moved, use, step[1])


def _release(shape: Shape, slot: _State, use: int, arrivals: int) -> _State | Fails:
    phases, arrived = slot.empty
    arrived += arrivals
    if arrived > shape.empty or phases != use:
        return Fails("lemma", "an arrival at the empty barrier counts for another phase")
    complete = arrived == shape.empty
    return evolve(slot, empty=(phases + 1, 0) if complete else (phases, arrived))


def _set(values: tuple[bool, ...], index: int, *, value: bool) -> tuple[bool, ...]:
    return (*values[:index], value, *values[index + 1 :])
