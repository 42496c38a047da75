"""Scalar loads: SMEM [MI300 ISA, "Scalar memory operations"]."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from argus.interp.gfx942.instruction import Instruction, Scalar, scalars
from argus.interp.gfx942.row import Row, act
from argus.interp.gfx942.scoreboard import Issued
from argus.interp.gfx942.state import Group, Wave


def _load(count: int) -> Callable[[Group, Wave, Instruction], None]:
    def run(group: Group, wave: Wave, instruction: Instruction) -> None:
        base, *offset = instruction.sources
        (target,) = instruction.results
        assert isinstance(base, Scalar)
        assert isinstance(target, Scalar)
        at = wave.s[base.first].astype(np.uint64) | wave.s[base.first + 1].astype(np.uint64) << np.uint64(32)
        at = at + np.uint64(instruction.immediate % (1 << 64))
        for each in offset:
            assert isinstance(each, Scalar)
            at = at + wave.s[each.first].astype(np.uint64)
        places = group.memory.offsets(at & ~np.uint64(3))
        fits = group.memory.inside(places, 4 * count)
        if not fits.all():
            what = f"reads {4 * count} bytes from {group.memory.describe(int(places[~fits][0]))}"
            group.report("out of bounds", wave, instruction, what)
        held = group.memory.data.view(np.uint32)
        for number in range(count):
            found = np.where(fits, held[np.where(fits, places, 0) // 4 + number], np.uint32(0))
            wave.write_scalar(target.first + number, found)
        issued = Issued("scalar", instruction.address, frozenset(), frozenset(scalars((target,))), str(instruction))
        wave.scoreboard.issue(issued)

    return run


_COUNTS = ((1, ""), (2, "x2"), (4, "x4"), (8, "x8"), (16, "x16"))

ROWS: tuple[Row, ...] = tuple(
    act(f"s_load_dword{name}", "SMEM", number, f"b{32 * count} = u64", _load(count))
    for number, (count, name) in enumerate(_COUNTS)
)
