"""What one execution of a memory instruction costs: LDS cycles with bank conflicts, and cache lines.

LDS serves fixed groups of lanes, each in as many cycles as the most accessed bank has distinct words
(`argus.core.phases`, `argus.core.memory.banks`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.core.cost.dies import DieMachine
from argus.core.memory.banks import cycles
from argus.core.phases import PHASES, Direction, Phases
from argus.interp.gfx942.flat_memory import scratch_places
from argus.interp.gfx942.global_memory import addresses, buffer_offsets
from argus.interp.gfx942.instruction import Instruction, Vector
from argus.interp.gfx942.state import LANES, Array, Group, Wave

LINE = 128
"""Bytes of a cache line [AMD CDNA 3 white paper]."""
VECTOR_CACHE = 32 * 1024
"""Bytes of a compute unit's vector cache [AMD CDNA 3 white paper]."""
_LOCAL = re.compile(r"ds_(read|write)(2?)(st64)?_[bui](\d+)")
_GLOBAL = re.compile(r"(?:global|buffer|flat|scratch)_(load|store|atomic)_(\w+)")
_BYTES = {
    **dict.fromkeys(("ubyte", "sbyte", "byte", "ubyte_d16", "ubyte_d16_hi", "byte_d16_hi"), 1),
    **dict.fromkeys(("ushort", "sshort", "short", "short_d16", "short_d16_hi"), 2),
    "dwordx2": 8,
    "dwordx3": 12,
    "dwordx4": 16,
}
_STRIDE = 64
"""Factor of the offsets of `st64` instructions."""


@frozen
class Local:
    """An access to LDS: bits of one lane's vector. scale: of a paired instruction's two offsets, 0 for one access."""

    direction: Direction
    bits: int
    scale: int

    @property
    def accesses(self) -> int:
        return 2 if self.scale else 1


@frozen
class Global:
    """An access to global memory: bytes of one lane's vector."""

    stores: bool
    size: int


@cache
def local_access(name: str) -> Local | None:
    """The access of an LDS instruction; None for one that only exchanges lanes."""
    found = _LOCAL.match(name)
    if found is None:
        return None
    bits = int(found.group(4))
    scale = bits // 8 * (_STRIDE if found.group(3) else 1) if found.group(2) else 0
    return Local("read" if found.group(1) == "read" else "write", bits, scale)


@cache
def global_access(name: str) -> Global | None:
    """The access of a vector memory instruction; None for one that accesses nothing."""
    found = _GLOBAL.match(name)
    if found is None:
        return Global(False, 4) if name == "global_load_lds_dword" else None
    return Global(found.group(1) != "load", _BYTES.get(found.group(2), 4))


def _phases(access: Local, model: DieMachine) -> tuple[Phases, int]:
    """Phases and banks. Vectors below 32 bits are served like those of 32, of 96 like those of 128: an estimate."""
    width = max(32, 128 if access.bits == 96 else access.bits)
    if (access.direction, width) == ("read", 128):
        return model.wide, model.wide_banks
    return PHASES["gfx942", access.direction, width], model.machine.target.banks


def local_cycles(wave: Wave, instruction: Instruction, access: Local, model: DieMachine) -> Array:
    """LDS cycles of each row of a wave that stands at the instruction; lanes that are not active take part in none."""
    address = instruction.sources[0]
    assert isinstance(address, Vector)
    base = wave.v[address.first].astype(np.int64)
    offsets = [instruction.immediate]
    if access.scale:
        offsets = [access.scale * instruction.immediate, access.scale * instruction.second]
    phases, banks = _phases(access, model)
    # An inactive lane repeats an active one's word, which the bank serves along with it.
    stand_in = np.take_along_axis(base, wave.active.argmax(axis=1)[:, None], axis=1)
    base = np.where(wave.active, base, stand_in)
    found = np.zeros(len(base), np.int64)
    for offset in offsets:
        for row, places in enumerate(base + offset):
            found[row] += cycles(places[None, None, :], phases, access.bits // 8, banks)
    return found


def lines_of(group: Group, wave: Wave, instruction: Instruction, access: Global) -> list[Array]:
    """The cache lines that each row of a wave accesses, each once, as numbers; those out of bounds left out."""
    if instruction.row.form == "MUBUF":
        offsets, fits = buffer_offsets(group, wave, instruction, access.size)
        lanes = wave.active & fits.any(axis=0)
    else:
        offsets, lanes = addresses(group, wave, instruction)
    first, last = offsets // LINE, (offsets + access.size - 1) // LINE
    return [np.unique(np.concatenate((first[row][lanes[row]], last[row][lanes[row]]))) for row in range(len(offsets))]


def scratch_lines(
    wave: Wave, instruction: Instruction, access: Global, rows: npt.NDArray[np.int64]
) -> Iterator[npt.NDArray[np.int64]]:
    """The cache lines of each row's access to scratch memory, of which no two waves share any.

    rows: the workgroup (x, y, z) and the wave of each. A dword of all lanes is contiguous in memory [LLVM AMDGPU user
    guide, "Memory Spaces": private memory is swizzled by lane], so that it takes LANES * 4 bytes. The numbers are
    negative, apart from those of tensors.
    """
    places = scratch_places(wave, instruction)
    words = (access.size + 3) // 4
    each = LANES * 4 // LINE
    for row, (x, y, z, number) in enumerate(rows.tolist()):
        owner = ((z << 20 | y) << 20 | x) << 4 | number
        first = np.unique(places[row][wave.active[row]]) // 4
        dwords = np.unique(first[:, None] + np.arange(words)).astype(np.int64)
        yield -1 - (owner % (1 << 40) << 20) - (dwords[:, None] * each + np.arange(each)).ravel()
