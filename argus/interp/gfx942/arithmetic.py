"""Arithmetic instructions: their operands are read as arrays, and what the row computes is written."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from argus.interp.gfx942.float_mode import flushed, rounding
from argus.interp.gfx942.instruction import DWORD, EXEC, VCC, Instruction, Scalar, Vector
from argus.interp.gfx942.lane_moves import dpp_source, written_lanes
from argus.interp.gfx942.operands import Reader, Writer, element, merged, reader, writer
from argus.interp.gfx942.row import IMPLICIT, dwords
from argus.interp.gfx942.state import FLOAT_MODE, Array, Wave
from argus.interp.gfx942.unmodelled import not_modelled

_FACTORS = {1: 2.0, 2: 4.0, 3: 0.5}


def compiled(instruction: Instruction) -> Callable[[Wave], None]:
    """What an arithmetic instruction does to a wave. Raises ArgusError (E502) for a modifier that is not modelled."""
    plain = _in_mode(instruction, FLOAT_MODE)
    row = instruction.row
    if not row.vector or not any("f" in label or label == "mix" for label in (*row.results, *row.sources)):
        return plain
    made: dict[int, Callable[[Wave], None]] = {}

    def run(wave: Wave) -> None:
        mode = wave.mode & 0xFF
        if mode == FLOAT_MODE:
            plain(wave)
            return
        if mode not in made:
            made[mode] = _in_mode(instruction, mode)
        made[mode](wave)

    return run


def _in_mode(instruction: Instruction, mode: int) -> Callable[[Wave], None]:
    """What an instruction does in a mode of floating point."""
    read, write = _readers(instruction), _writers(instruction)
    run, dpp = instruction.row.run, instruction.dpp
    if mode != FLOAT_MODE:
        run = rounding(instruction.row, mode, instruction.address)
        if not instruction.row.name.startswith("v_cmp_class"):
            read = [_flushing(each, t, mode) for each, t in zip(read, instruction.row.sources, strict=True)]
        write = [_flushing_result(each, t, mode) for each, t in zip(write, instruction.row.results, strict=True)]
    if dpp is not None:
        if dpp_source(dpp.control) is None:
            raise not_modelled(f"the DPP control 0x{dpp.control:x}", 0, 0, instruction.address)

        def in_lanes(wave: Wave) -> None:
            found = run(*[each(wave) for each in read])
            active, full = wave.active, wave.full
            wave.active = written_lanes(wave, dpp)
            wave.full = bool(wave.active.all())
            for target, value in zip(write, found if len(write) > 1 else (found,), strict=True):
                target(wave, value)
            wave.active, wave.full = active, full

        return in_lanes
    if len(write) == 1 and len(read) == 1:
        (only,), (target,) = read, write
        return lambda wave: target(wave, run(only(wave)))
    if len(write) == 1 and len(read) == 2:
        (left, right), (target,) = read, write
        return lambda wave: target(wave, run(left(wave), right(wave)))
    if len(write) == 1:
        (target,) = write
        return lambda wave: target(wave, run(*[each(wave) for each in read]))

    def several(wave: Wave) -> None:
        found = run(*[each(wave) for each in read])
        for target, value in zip(write, found, strict=True):
            target(wave, value)

    return several


def _flushing(plain: Reader, label: str, mode: int) -> Reader:
    flush = flushed(label, mode, result=False)
    return plain if flush is None else lambda wave: flush(plain(wave))


def _flushing_result(plain: Writer, label: str, mode: int) -> Writer:
    flush = flushed(label, mode, result=True)
    return plain if flush is None else lambda wave, value: plain(wave, flush(value))


def _readers(instruction: Instruction) -> list[Reader]:
    operands = iter(enumerate(instruction.sources))
    found: list[Reader] = []
    for label in instruction.row.sources:
        if label in IMPLICIT:
            found.append(_implicit(instruction, label))
            continue
        number, operand = next(operands)
        made = reader(instruction, "f32" if label == "k" else label, number, operand)
        found.append(made if instruction.row.vector else _scalar(made))
    return found


def _scalar(made: Reader) -> Reader:
    """A value of a scalar instruction, without the axis of lanes."""
    return lambda wave: made(wave)[:, 0]


def _implicit(instruction: Instruction, label: str) -> Reader:
    match label:
        case "scc":
            return lambda wave: wave.scc
        case "vcc":
            return lambda wave: wave.mask(VCC)
        case "exec":
            plain = reader(instruction, "u64", 8, Scalar(EXEC, 2))
            return lambda wave: plain(wave)[:, 0]
        case "imm":
            value = np.array([instruction.immediate], np.int32)
            return lambda _wave: value
        case _:
            kind = instruction.row.results[0]
            operand = instruction.results[0]
            plain = reader(instruction, kind, 8, operand)
            return plain if isinstance(operand, Vector) else _scalar(plain)


def _writers(instruction: Instruction) -> list[Writer]:
    operands = iter(instruction.results)
    found: list[Writer] = []
    for label in instruction.row.results:
        if label == "scc":
            found.append(_set_scc)
        elif label == "exec":
            found.append(writer("u64", Scalar(EXEC, 2)))
        else:
            found.append(_finished(instruction, label, writer(label, next(operands))))
    return found


def _part(instruction: Instruction, label: str) -> Writer:
    assert instruction.sdwa is not None
    register = instruction.results[0]
    if not isinstance(register, Vector) or dwords(label) > 1 or instruction.sdwa.target > DWORD:
        raise not_modelled(f"a part of a register as {label} of `{instruction.row.name}`", 0, 0, instruction.address)
    merge = merged(instruction.sdwa.target, instruction.sdwa.unused)
    bits = np.uint16 if label.endswith("16") else np.uint32
    first = register.first
    return lambda wave, value: wave.write(first, merge(np.ascontiguousarray(value).view(bits), wave.v[first]))


def _set_scc(wave: Wave, value: Array) -> None:
    wave.scc = np.broadcast_to(value, wave.scc.shape).copy()


def _finished(instruction: Instruction, label: str, plain: Writer) -> Writer:
    """With the output modifiers of floating point, and the part of the register that SDWA writes."""
    if instruction.sdwa is not None and instruction.sdwa.target != DWORD and label != "mask":
        plain = _part(instruction, label)
    high = instruction.row.form == "VOP3" and label.endswith("16") and instruction.select >> 3 & 1
    if not (instruction.clamp or instruction.scale or high):
        return plain
    if high or not element(label).startswith("f"):
        raise not_modelled(f"an output modifier of `{instruction.row.name}`", 0, 0, instruction.address)
    factor, clamp = _FACTORS.get(instruction.scale, 1.0), instruction.clamp

    def scaled(wave: Wave, value: Array) -> None:
        made = value * value.dtype.type(factor)
        plain(wave, np.clip(made, 0, 1).astype(value.dtype) if clamp else made)

    return scaled
