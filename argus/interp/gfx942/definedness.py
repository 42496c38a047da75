"""Bits of registers that nothing has written: how instructions pass them on, and where they must not be used.

Compilers read such registers where the value does not matter: half of a pair, the other half of a register, a carry
that is dropped. So a read is no fault by itself. An instruction on vector registers is executed several times with
other values in place of the bits that nothing has written; the bits of its results that differ are such bits too. In an
address, in data that is stored, in a matrix product, in a branch or in EXEC, they are reported.
"""

from __future__ import annotations

import re

import numpy as np

from argus.interp.gfx942.instruction import EXEC, M0, Vector
from argus.interp.gfx942.state import Group, Mask, Wave, Words
from argus.interp.gfx942.step import Step

_FILLS = (0, 0xFFFFFFFF, 0x5A5A5A5A, 0x3C013F80)
"""Values in place of bits that nothing has written: all zeros, all ones, a pattern, and a pair of small floats."""
_SMALL = re.compile(r"_(?:store|write|load|read)_(?:s|u|i|b)?(byte|short|b8|b16|u8|i8|u16|i16)")
_PASSING = frozenset({"vector", "transcendental"})


def undefined(wave: Wave, step: Step) -> list[int]:
    """The vector registers that an instruction reads and that have bits, in active lanes, which nothing has written."""
    return [register for register in step.reads if not wave.whole[register] and wave.unwritten(register) is not None]


def undefined_scalars(wave: Wave, step: Step) -> list[int]:
    """The scalar registers that an instruction reads and that have bits which nothing has written."""
    return [register for register in step.scalars_read if register <= M0 and not wave.known[register]]


def passes_on(step: Step) -> bool:
    """Whether an instruction may read such bits: what depends on them is such bits again."""
    return step.unit in _PASSING or (step.unit == "scalar" and step.instruction.row.arithmetic)


def run_undefined(group: Group, wave: Wave, step: Step, registers: list[int]) -> Mask | None:
    """Execute an instruction that reads such registers and does not pass their bits on; returns the lanes in which it
    may not, if there are any.
    """
    wrong = None
    for register in registers:
        used = _used(step, register)
        lanes = wave.active & (wave.undefined_bits(register) & np.uint32(used) != 0)
        if lanes.any():
            wrong = lanes if wrong is None else wrong | lanes
    kept = {
        register: wave.undefined_bits(register) & np.uint32(_kept(step))
        for register in step.writes
        if register in registers and _kept(step)
    }
    step.run(group, wave)
    for register, bits in kept.items():
        wave.mark_undefined(register, bits)
    return wrong


def run_with_fills(group: Group, wave: Wave, step: Step, registers: list[int], scalars: list[int]) -> bool:
    """Execute an instruction that passes such bits on; returns whether bits of EXEC are among them."""
    before = {register: wave.v[register].copy() for register in {*step.reads, *step.writes}}
    held = {register: wave.s[register].copy() for register in {*step.scalars_written, *scalars}}
    scc = wave.scc
    holes = {register: wave.undefined_bits(register) for register in registers}
    scalar_holes = {register: wave.undefined_scalar(register) for register in scalars}
    known = [wave.known[register] for register in scalars]
    found: list[dict[int, Words]] = []
    masks: list[dict[int, Words]] = []
    flags: list[Mask] = []
    for fill in (*_FILLS, None):
        for register, values in before.items():
            wave.v[register] = _filled(values, holes.get(register), fill)
        for register, values in held.items():
            wave.write_scalar(register, _filled(values, scalar_holes.get(register), fill))
        wave.scc = scc
        step.run(group, wave)
        found.append({register: wave.v[register].copy() for register in step.writes})
        masks.append({register: wave.s[register].copy() for register in step.scalars_written})
        flags.append(wave.scc)
    for register, value in zip(scalars, known, strict=True):
        wave.known[register] = value
    everywhere = step.instruction.row.name == "v_writelane_b32"
    for register in step.writes:
        wave.mark_undefined(register, _differing([each[register] for each in found]), everywhere=everywhere)
    for register in step.scalars_written:
        wave.forget(register, _differing([each[register] for each in masks]))
    if "scc" in step.instruction.row.results:
        wave.known_scc = not any((each != flags[0]).any() for each in flags)
    decides = not all(wave.known[register] for register in (EXEC, EXEC + 1))
    wave.known[EXEC] = wave.known[EXEC + 1] = True
    return decides


def _filled(values: Words, hole: Words | None, fill: int | None) -> Words:
    if fill is None or hole is None:
        return values
    return values & ~hole | np.uint32(fill) & hole


def _differing(values: list[Words]) -> Words:
    bits = np.zeros_like(values[0])
    for each in values[1:]:
        bits |= each ^ values[0]
    return bits


def _used(step: Step, register: int) -> int:
    """The bits of a register that a memory or matrix instruction uses: the low or high half of small data."""
    name = step.instruction.row.name
    small = _SMALL.search(name)
    address = register in _addresses(step)
    if not address and step.instruction.row.form in {"FLAT", "SCRATCH"} and "_store_" in name:
        return 0  # what is private may be unwritten; the instruction itself looks at the other lanes
    if address or small is None:
        return 0xFFFFFFFF
    if "_load_" in name or "_read_" in name:
        return 0
    bits = 0xFF if "8" in small.group(1) or small.group(1) == "byte" else 0xFFFF
    return bits << 16 if name.endswith("_hi") else bits


def _addresses(step: Step) -> frozenset[int]:
    row = step.instruction.row
    first = step.instruction.sources[0] if step.instruction.sources else None
    if row.form == "MUBUF" and "offen" not in step.instruction.flags:
        return frozenset()
    if row.form == "SCRATCH" and "vaddr" not in step.instruction.flags:
        return frozenset()
    return frozenset(range(first.first, first.first + first.count)) if isinstance(first, Vector) else frozenset()


def _kept(step: Step) -> int:
    """The bits of its destination that a load to one half leaves as they are."""
    if "old" not in step.instruction.row.sources:
        return 0
    return 0x0000FFFF if step.instruction.row.name.endswith("_hi") else 0xFFFF0000
