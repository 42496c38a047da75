"""Which use a cursor names: distances between uses that share a barrier and a phase of it.

Part of the event graph's meaning.
"""

from __future__ import annotations

from argus.core.protocol.ring import Cursor, Phase


def _values(cursor: Cursor, use: int, lost: int) -> int:
    return use + cursor.offset - (lost if cursor.restarts else 0)


def slot_offset(cursor: Cursor, stages: int, *, loses: bool) -> int | None:
    """The cursor's slot is `(u + offset) % stages` for every use u; None if that depends on the tile.

    loses: the role does not count the uses of tiles that it leaves to others.
    """
    if (cursor.restarts or loses) and stages > 1:
        return None
    return cursor.offset % stages


def matching(use: int, source: int, target: int, stages: int) -> int:
    """The use with slot offset `target` that falls on the same slot and phase as `use` with slot offset `source`.

    The n-th use to fall on a slot is in its n-th phase, whatever use it is.
    """
    slot = (use + source) % stages
    ordinal = (use - (slot - source) % stages) // stages
    return (slot - target) % stages + ordinal * stages


def named(slot: int, phase: Phase, use: int, target: int, stages: int, *, loses: bool, least: int) -> int | None:
    """The use, less `use`, whose phase a wait is for: of those with the parity, the one in [least, least + 2 stages).

    slot, target: slot offsets of the wait and of what completes the phase. None if it depends on the tile.
    """
    period = 2 * stages
    answers: set[int] = set()
    cursor = Cursor(phase.cursor.offset, phase.cursor.restarts or loses)
    for lost in range(period):
        number = _values(cursor, use, lost) // stages + phase.plus
        place = (use + slot) % stages
        answers.add(((place - target) % stages + number * stages - use - least) % period + least)
    return answers.pop() if len(answers) == 1 else None
