"""Accesses to LDS at places that an instruction has accessed before: loops do so over and over.

An access is remembered if all lanes are active, its places are aligned, in LDS and, of a read, written. None of that
changes while a group is executed: what has been written stays so. Where nothing is to be reported, only the data moves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from argus.interp.gfx942.instruction import Instruction, Vector
from argus.interp.gfx942.local_memory import meets_late
from argus.interp.gfx942.races import Touch
from argus.interp.gfx942.state import LANES, Access, Array, Group, Wave, Words

_MOST = 8
_CARRIERS: dict[int, Any] = {4: np.uint32, 8: np.uint64, 16: np.complex128}
"""Types of the size of an access, which NumPy moves as a whole."""


def remembered(group: Group, wave: Wave, instruction: Instruction, part: int, base: Words) -> Access | None:
    """The access at these base addresses, if it has been made before and all lanes are active."""
    if not wave.full:
        return None
    stamp = wave.stamps[_register(instruction)]
    for each in group.memo.get((instruction.address, wave.number, part), ()):
        if each.stamp == stamp or (each.base == base).all():
            each.stamp = stamp
            return each
    return None


def remember(
    group: Group, wave: Wave, instruction: Instruction, part: int, base: Words, size: int, touch: Touch | None
) -> None:
    """Remember an access that has just been made without a finding."""
    if touch is None or not wave.full or size not in _CARRIERS or not touch.dwords:
        return
    known = group.memo.setdefault((instruction.address, wave.number, part), [])
    first = touch.places[: base.size] * 4
    if len(known) >= _MOST or (first % size).any():
        return
    if len(touch.places) != base.size * size // 4:
        return
    lasting = Touch(touch.instruction, touch.wave, touch.writes, touch.places, True, touch.rows, lasting=True)
    known.append(Access(base.copy(), first // size, lasting, wave.stamps[_register(instruction)]))


def _register(instruction: Instruction) -> int:
    address = instruction.sources[0]
    assert isinstance(address, Vector)
    return address.first


def read_again(group: Group, wave: Wave, instruction: Instruction, access: Access, size: int) -> list[Array]:
    """The dwords that an access reads, by workgroup and lane."""
    _begin(group, wave, instruction, access.touch)
    found = group.lds.reshape(-1).view(_CARRIERS[size]).take(access.index)
    words = found.view(np.uint32).reshape(-1, LANES, size // 4)
    return [words[..., number] for number in range(size // 4)]


def write_again(group: Group, wave: Wave, instruction: Instruction, access: Access, words: Array, size: int) -> None:
    """Write dwords (number, workgroup, lane)."""
    _begin(group, wave, instruction, access.touch)
    data = np.ascontiguousarray(words.transpose(1, 2, 0)).view(_CARRIERS[size])
    group.lds.reshape(-1).view(_CARRIERS[size])[access.index] = data.reshape(-1)


def _begin(group: Group, wave: Wave, instruction: Instruction, touch: Touch) -> None:
    group.races.add(touch)
    if any(issued.late for issued in wave.scoreboard.vector):
        meets_late(group, wave, instruction, touch)
