"""The one-slot window lemma: one slot of a ring, every other one stuttering, explored to the end modulo two phases.

Uses of one slot alternate between two parities, so states that differ by an even number of uses are one state. If
the quotient is finite and clean, then for any number of uses: a reader of use v sees use v with nothing in flight,
each barrier is at the phase waited for or the next, and some step is always possible. Which role steps next is
free: the other slots decide that. Source: proof-methods 3.4. Part of the obligations' meaning.
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
    """What participants do in one use of the slot.

    filling: wait, announce(bytes), copy(bytes). draining: of each consumer, wait, read, over, release(arrivals).
    full, empty: arrivals that complete a phase.
    """

    filling: Steps
    draining: tuple[Steps, ...]
    full: int = 1
    empty: int = 1


@frozen
class Certified:
    """The lemma holds for this shape. states: of the quotient."""

    states: int


@frozen
class _Slot:
    """uses, at: of the producer first, then of each consumer: uses finished and steps into the next.

    full, empty: phases complete, arrivals, bytes due. flying: copies under way, by step, with the use they carry.
    content: use that each copy step has landed last. reading: of each consumer.
    """

    uses: tuple[int, ...]
    at: tuple[int, ...]
    full: tuple[int, int, int]
    empty: tuple[int, int]
    flying: frozenset[tuple[int, int]]
    content: tuple[int, ...]
    reading: tuple[bool, ...]


_CAP = 200_000
_FAR = 6


@lru_cache(maxsize=256)
def certify(shape: Shape) -> Certified | Fails | Unknown:
    """A pure function of the shape: proved once, remembered."""
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
            state = _normal(following)
            if state not in seen:
                if len(seen) >= _CAP:
                    return Unknown(f"the one-slot lemma takes more than {_CAP} states for this shape")
                seen.add(state)
                queue.append(state)
        if not moved:
            return Fails("lemma", "on one slot alone, all participants wait for each other")
    return Certified(len(seen))


def _start(shape: Shape) -> _Slot:
    roles = 1 + len(shape.draining)
    zeros = (0,) * roles
    return _Slot(zeros, zeros, (0, 0, 0), (0, 0), frozenset(), (-1,) * len(shape.filling), (False,) * (roles - 1))


def _normal(slot: _Slot) -> _Slot:
    """The same state with an even number of uses taken off everywhere."""
    base = min(slot.uses) // 2 * 2
    if base == 0:
        return slot
    return _Slot(
        tuple(use - base for use in slot.uses),
        slot.at,
        (slot.full[0] - base, slot.full[1], slot.full[2]),
        (slot.empty[0] - base, slot.empty[1]),
        frozenset((step, use - base) for step, use in slot.flying),
        tuple(use - base if use >= 0 else -1 for use in slot.content),
        slot.reading,
    )


def _steps(shape: Shape, slot: _Slot) -> Iterator[_Slot | Fails]:
    window = _window(shape, slot)
    if window is not None:
        yield window
        return
    for step, use in slot.flying:
        yield _landed(shape, slot, step, use)
    name, amount = shape.filling[slot.at[0]]
    if name != "wait" or slot.empty[0] % 2 != (slot.uses[0] - 1) % 2:
        yield _filled(shape, slot, name, amount)
    for consumer, steps in enumerate(shape.draining):
        name, amount = steps[slot.at[consumer + 1]]
        if name != "wait" or slot.full[0] % 2 != slot.uses[consumer + 1] % 2:
            yield _drained(shape, slot, consumer, (name, amount))


def _window(shape: Shape, slot: _Slot) -> Fails | None:
    """Each barrier is at the phase that its waiter waits for, or at the next; and nobody runs ahead without limit."""
    if max(slot.uses) - min(slot.uses) > _FAR:
        return Fails("lemma", "a participant runs ahead of another without limit")
    if shape.filling[slot.at[0]][0] == "wait" and slot.uses[0] - slot.empty[0] not in {0, 1}:
        return Fails("lemma", "the producer's parity stands for a phase two off")
    if any(slot.full[0] - use not in {0, 1} for use in slot.uses[1:]):
        return Fails("lemma", "a consumer's parity stands for a phase two off")
    return None


def _advanced(slot: _Slot, role: int, steps: Steps) -> _Slot:
    at = slot.at[role] + 1
    wraps = at == len(steps)
    ats = (*slot.at[:role], 0 if wraps else at, *slot.at[role + 1 :])
    uses = (*slot.uses[:role], slot.uses[role] + wraps, *slot.uses[role + 1 :])
    return evolve(slot, at=ats, uses=uses)


def _full(shape: Shape, slot: _Slot, arrivals: int, due: int) -> _Slot:
    """The full barrier after so many more arrivals and bytes."""
    phases, arrived, owed = slot.full
    arrived, owed = arrived + arrivals, owed + due
    complete = arrived == shape.full and owed == 0
    return evolve(slot, full=(phases + 1, 0, 0) if complete else (phases, arrived, owed))


def _landed(shape: Shape, slot: _Slot, step: int, use: int) -> _Slot:
    content = (*slot.content[:step], use, *slot.content[step + 1 :])
    moved = evolve(slot, flying=slot.flying - {(step, use)}, content=content)
    return _full(shape, moved, 0, -shape.filling[step][1])


def _filled(shape: Shape, slot: _Slot, name: str, amount: int) -> _Slot | Fails:
    use, step = slot.uses[0], slot.at[0]
    moved = _advanced(slot, 0, shape.filling)
    match name:
        case "wait":
            return moved
        case "announce":
            if slot.full[0] != use or slot.full[1] >= shape.full:
                return Fails("lemma", "the phase before of the full barrier is not complete when it is announced")
            return _full(shape, moved, 1, amount)
        case _:
            if any(slot.reading) or any(each == step for each, _ in slot.flying):
                return Fails("lemma", "a copy sets out for a slot that is being read or written")
            return evolve(moved, flying=moved.flying | {(step, use)})


def _drained(shape: Shape, slot: _Slot, consumer: int, step: tuple[str, int]) -> _Slot | Fails:
    use = slot.uses[consumer + 1]
    moved = _advanced(slot, consumer + 1, shape.draining[consumer])
    match step[0]:
        case "wait":
            return moved
        case "read":
            copies = [number for number, (name, _) in enumerate(shape.filling) if name == "copy"]
            if slot.flying or any(slot.content[number] != use for number in copies):
                return Fails("lemma", "a consumer reads before its use has landed, or after it is overwritten")
            return evolve(moved, reading=_set(slot.reading, consumer, value=True))
        case "over":
            return evolve(moved, reading=_set(slot.reading, consumer, value=False))
        case _:
            return _released(shape, moved, use, step[1])


def _released(shape: Shape, slot: _Slot, use: int, arrivals: int) -> _Slot | Fails:
    phases, arrived = slot.empty
    arrived += arrivals
    if arrived > shape.empty or phases != use:
        return Fails("lemma", "an arrival at the empty barrier counts for another phase")
    complete = arrived == shape.empty
    return evolve(slot, empty=(phases + 1, 0) if complete else (phases, arrived))


def _set(values: tuple[bool, ...], index: int, *, value: bool) -> tuple[bool, ...]:
    return (*values[:index], value, *values[index + 1 :])
