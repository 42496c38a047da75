"""Maps cursors to uses: distances between uses that share a barrier and a phase of it.

Part of the event-graph semantics.
"""

from __future__ import annotations

from argus.core.protocol.ring import Cursor, Phase


def _values(cursor: Cursor, use: int, lost: int) -> int:
    return use + cursor.offset - (lost if cursor.restarts else 0)


def slot_offset(cursor: Cursor, stages: int, *, loses_uses: bool) -> int | None:
    """The offset with slot `(u + offset) % stages` for every use u; None if the slot depends on the tile.

    loses_uses: the role's cursors do not count the uses of other agents' tiles.
    """
    if (cursor.restarts or loses_uses) and stages > 1:
        return None
    return cursor.offset % stages


def matching_use(use: int, source: int, target: int, stages: int) -> int:
    """The use with slot offset `target` in the same slot and phase as `use` with slot offset `source`.

    The n-th use in a slot is in its n-th phase.
    """
    slot = (use + source) % stages
    ordinal = (use - (slot - source) % stages) // stages
    return (slot - target) % stages + ordinal * stages


def awaited_use(
    slot: int, phase: Phase, use: int, target: int, stages: int, *, loses_uses: bool, least: int
) -> int | None:
    """The distance to the awaited use: among those with the parity, the one in [least, least + 2 * stages).

    slot, target: slot offsets of the wait and of the completing operation. None if it depends on the tile.
    """
    period = 2 * stages
    answers: set[int] = set()
    cursor = Cursor(phase.cursor.offset, phase.cursor.restarts or loses_uses)
    for lost in range(period):
        number = _values(cursor, use, lost) // stages + phase.plus
        place = (use + slot) % stages
        answers.add(((place - target) % stages + number * stages - use - least) % period + least)
    return answers.pop() if len(answers) == 1 else None
