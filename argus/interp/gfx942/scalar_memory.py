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
        issued = Issued("scalar", instruction, frozenset(), frozenset(scalars((target,))))
        wave.scoreboard.issue(issued)

    return run


def _buffer_load(count: int) -> Callable[[Group, Wave, Instruction], None]:
    """Dwords beyond the end of the buffer are 0 [MI300 ISA, "Scalar buffer loads"]."""

    def run(group: Group, wave: Wave, instruction: Instruction) -> None:
        described, *offset = instruction.sources
        (target,) = instruction.results
        assert isinstance(described, Scalar)
        assert isinstance(target, Scalar)
        words = wave.s[described.first : described.first + 4].astype(np.int64)
        base, stride = words[0] | (words[1] & 0xFFFF) << 32, words[1] >> 16 & 0x3FFF
        within = np.full(group.count, instruction.immediate, np.int64)
        for each in offset:
            assert isinstance(each, Scalar)
            within = within + wave.s[each.first]
        within &= ~np.int64(3)
        ends = words[2] * np.where(stride == 0, 1, stride)
        held = group.memory.data.view(np.uint32)
        for number in range(count):
            part = within + 4 * number
            admitted = part + 4 <= ends
            places = group.memory.offsets((base + part).astype(np.uint64))
            fits = group.memory.inside(places, 4)
            if (admitted & ~fits).any():
                what = f"reads 4 bytes from {group.memory.describe(int(places[admitted & ~fits][0]))}"
                group.report("out of bounds", wave, instruction, what)
            known = admitted & fits
            found = np.where(known, held[np.where(known, places, 0) // 4], np.uint32(0))
            wave.write_scalar(target.first + number, found)
        issued = Issued("scalar", instruction, frozenset(), frozenset(scalars((target,))))
        wave.scoreboard.issue(issued)

    return run


def _nothing(_group: Group, _wave: Wave, _instruction: Instruction) -> None:
    """Caches are coherent here."""


_COUNTS = ((1, ""), (2, "x2"), (4, "x4"), (8, "x8"), (16, "x16"))

ROWS: tuple[Row, ...] = (
    *(
        act(f"s_load_dword{name}", "SMEM", number, f"b{32 * count} = u64", _load(count))
        for number, (count, name) in enumerate(_COUNTS)
    ),
    *(
        act(f"s_buffer_load_dword{name}", "SMEM", 8 + number, f"b{32 * count} = b128", _buffer_load(count))
        for number, (count, name) in enumerate(_COUNTS)
    ),
    act("s_dcache_inv", "SMEM", 32, "=", _nothing),
    act("s_dcache_wb", "SMEM", 33, "=", _nothing),
)
