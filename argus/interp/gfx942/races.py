"""Races in LDS: accesses of two waves to one byte, at least one of them a write, without a barrier between them.

Two atomic operations do not race; one of them does with another read or write.

Barriers divide a workgroup's time into epochs. An access lasts from its issue to the wait that covers it, so one that
is not waited for before a barrier belongs to the next epoch, too. The order in which waves run has no influence.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from attrs import define, field

from argus.interp.gfx942.instruction import Instruction

Bits = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]
_DWORD = 0x01010101


@define
class Touch:
    """One access. places: indices of bytes, or of dwords, in all workgroups' LDS one after the other; for each of them
    `rows` is the workgroup.
    """

    instruction: Instruction
    wave: int
    writes: bool
    places: Places
    dwords: bool
    rows: Places
    atomic: bool = False
    lasting: bool = False
    """Whether the group holds this object to its end, so that it stands for the same access each time."""

    def taken(self, chosen: npt.NDArray[np.bool_], stride: int) -> Touch:
        """In some of the workgroups, which are numbered anew. stride: LDS bytes of one."""
        unit = stride // 4 if self.dwords else stride
        number = np.cumsum(chosen) - 1
        kept = chosen[self.rows]
        rows = number[self.rows[kept]]
        places = self.places[kept] - self.rows[kept] * unit + rows * unit
        return Touch(self.instruction, self.wave, self.writes, places, self.dwords, rows, self.atomic)

    def races_with(self, other: Touch) -> bool:
        """Whether two accesses to one byte race."""
        return self.wave != other.wave and (self.writes or other.writes) and not (self.atomic and other.atomic)


@define
class Races:
    """stride: LDS bytes of a workgroup. log: the accesses of this epoch."""

    waves: int
    workgroups: int
    stride: int
    log: list[Touch] = field(factory=list[Touch])
    _without: set[frozenset[int]] = field(factory=set[frozenset[int]])
    """Sets of lasting accesses that have been looked at and do not race."""

    def add(self, touch: Touch) -> None:
        self.log.append(touch)

    def conflict(self) -> tuple[Touch, Touch, int] | None:
        """Two accesses of this epoch that race, and the byte."""
        if self.waves < 2 or not self.log:
            return None
        named = frozenset(map(id, self.log)) if all(each.lasting for each in self.log) else None
        if named is not None and named in self._without:
            return None
        found = self._racing()
        if not found.any():
            if named is not None:
                self._without.add(named)
            return None
        place = int(np.argmax(found))
        there = [each for each in self.log if self._touches(each, place)]
        first, second = next((a, b) for a in there if a.writes for b in there if a.races_with(b))
        return first, second, place

    def _racing(self) -> npt.NDArray[np.bool_]:
        """Of each byte, whether two waves touch it, one of them writing, and not both atomically."""
        size = self.workgroups * self.stride
        written, read, updated, touched = (np.zeros(size, np.uint8) for _ in range(4))
        for wave in {each.wave for each in self.log}:
            own = np.zeros(size, np.uint8)
            for touch in self.log:
                if touch.wave == wave:
                    _mark(own, touch)
                    _mark(updated if touch.atomic else written if touch.writes else read, touch)
            touched += own
        return (written | read & updated != 0) & (touched > 1)

    def _touches(self, touch: Touch, place: int) -> bool:
        return bool((touch.places == (place // 4 if touch.dwords else place)).any())

    def next_epoch(self, unfinished: list[Touch]) -> None:
        """Begin an epoch, with the accesses that are not waited for."""
        self.log = list(unfinished)

    def taken(self, chosen: npt.NDArray[np.bool_]) -> Races:
        made = Races(self.waves, int(chosen.sum()), self.stride)
        made.log = [touch.taken(chosen, self.stride) for touch in self.log]
        return made


def _mark(marks: Bits, touch: Touch) -> None:
    if touch.dwords:
        marks.view(np.uint32)[touch.places] = _DWORD
    else:
        marks[touch.places] = 1
