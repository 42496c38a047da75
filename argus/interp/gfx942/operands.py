"""Readers and writers of operands, made once for each instruction.

A value is an array over (workgroup, lane) in vector instructions, with one lane where all lanes read the same, and over
(workgroup,) in scalar ones. Packed types have a leading axis of two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

import numpy as np
import numpy.typing as npt
from attrs import evolve

from argus.interp.gfx942.instruction import (
    DWORD,
    EXEC,
    EXECZ,
    FLOATS,
    PRIVATE_APERTURE,
    SCC,
    SHARED_APERTURE,
    VCC,
    VCCZ,
    Constant,
    Instruction,
    Operand,
    Scalar,
)
from argus.interp.gfx942.instruction import Vector as VectorRegisters
from argus.interp.gfx942.lane_moves import moved
from argus.interp.gfx942.memory import PRIVATE_BASE, SHARED_BASE
from argus.interp.gfx942.row import dwords
from argus.interp.gfx942.state import Array, Wave
from argus.interp.gfx942.unmodelled import not_modelled

Reader = Callable[[Wave], Array]
Writer = Callable[[Wave, Array], None]
_NUMPY = {
    "b8": np.uint8, "u8": np.uint8, "i8": np.int8,
    "b16": np.uint16, "u16": np.uint16, "i16": np.int16, "f16": np.float16,
    "b32": np.uint32, "u32": np.uint32, "i32": np.int32, "f32": np.float32,
    "b64": np.uint64, "u64": np.uint64, "i64": np.int64, "f64": np.float64,
}  # fmt: skip


def element(label: str) -> str:
    """The type of one element: `f32` of `v2f32`."""
    return label.lstrip("v0123456789") if label.startswith("v") else label


def reader(instruction: Instruction, label: str, number: int, operand: Operand) -> Reader:
    """Reads the source of that number. Modifiers of floating point are applied."""
    if label == "mask":
        assert isinstance(operand, Scalar)
        first = operand.first
        return lambda wave: wave.mask(first)
    plain = _mixed(instruction, number, operand) if label == "mix" else _plain(instruction, label, number, operand)
    return _modified(instruction, label, number, plain)


def _plain(instruction: Instruction, label: str, number: int, operand: Operand) -> Reader:
    kind = _NUMPY[element(label)]
    if instruction.sdwa is not None and number < 2 and instruction.sdwa.parts[number] != DWORD:
        return _sub_dword(instruction, label, number, operand)
    if label.startswith("v2"):
        return _packed(instruction, label, number, operand)
    match operand:
        case Constant():
            value = _constant(operand, element(label))
            return lambda _wave: value
        case VectorRegisters(first=first):
            if instruction.dpp is not None and number == 0:
                return _lanes_moved(instruction, first, kind)
            return _registers(first, label, number, instruction, vector=True)
        case Scalar(first=first):
            if first in _APERTURES:
                aperture = np.array([[_APERTURES[first]]], np.uint64).view(kind)
                return lambda _wave: aperture
            if first in _SPECIAL:
                special = _SPECIAL[first]
                return lambda wave: special(wave).astype(np.uint32).view(kind)[:, None]
            return _registers(first, label, number, instruction, vector=False)
        case _:
            assert_never(operand)


_APERTURES = {SHARED_APERTURE: SHARED_BASE, PRIVATE_APERTURE: PRIVATE_BASE}
_SPECIAL: dict[int, Callable[[Wave], Array]] = {
    SCC: lambda wave: wave.scc,
    VCCZ: lambda wave: (wave.s[VCC] | wave.s[VCC + 1]) == 0,
    EXECZ: lambda wave: (wave.s[EXEC] | wave.s[EXEC + 1]) == 0,
}


def _registers(first: int, label: str, number: int, instruction: Instruction, *, vector: bool) -> Reader:
    kind = _NUMPY[label]

    def raw(wave: Wave, register: int) -> Array:
        return wave.v[register] if vector else wave.s[register][:, None]

    if label.endswith("64"):
        return lambda wave: _pair(raw(wave, first), raw(wave, first + 1)).view(kind)
    if label.endswith("16"):
        shift = np.uint32(16 if instruction.select >> number & 1 else 0)
        return lambda wave: (raw(wave, first) >> shift).astype(np.uint16).view(kind)
    if vector:
        return lambda wave: wave.v[first].view(kind)
    return lambda wave: wave.s[first].view(kind)[:, None]


def _pair(low: Array, high: Array) -> Array:
    """Two dwords as one of 64 bits."""
    both = np.empty((*low.shape, 2), np.uint32)
    both[..., 0], both[..., 1] = low, high
    return both.view(np.uint64)[..., 0]


def _halves(value: Array) -> tuple[Array, Array]:
    """The low and the high dword of 64 bits."""
    both = np.ascontiguousarray(value).view(np.uint32).reshape(*value.shape, 2)
    return both[..., 0], both[..., 1]


def _constant(operand: Constant, kind: str) -> Array:
    """An inline constant has the type of its operand: a float for 240 to 248, else an integer."""
    numpy_kind = _NUMPY[kind]
    if operand.code == 255:
        bits = np.array([[operand.bits]], np.uint32)
        return bits.view(numpy_kind) if kind.endswith("32") else _widened(bits, kind)
    if operand.code in FLOATS:
        size = kind[1:]
        return np.array([[FLOATS[operand.code]]], _NUMPY[f"f{size}"]).view(numpy_kind)
    return np.array([[operand.integer]], np.int64).astype(_NUMPY[f"i{kind[1:]}"]).view(numpy_kind)


def _widened(bits: Array, kind: str) -> Array:
    """A 32-bit literal as another type: the high half of a float, sign-extended as an integer, cut for 16 bits."""
    if kind == "f64":
        return (bits.astype(np.uint64) << np.uint64(32)).view(np.float64)
    if kind.endswith("64"):
        return bits.view(np.int32).astype(np.int64).view(_NUMPY[kind])
    return bits.astype(np.uint16).view(_NUMPY[kind])


def _packed(instruction: Instruction, label: str, number: int, operand: Operand) -> Reader:
    """Two elements; op_sel and op_sel_hi say which half of the source each of the two results reads."""
    halves = (instruction.select >> number & 1, instruction.select_high >> number & 1)
    kind = _NUMPY[element(label)]
    if isinstance(operand, Constant):
        value = _constant(operand, element(label))
        if label.endswith("16"):
            low = operand.code != 255 or not halves[0]
            value = value if low else np.array([[operand.bits >> 16]], np.uint16).view(kind)
        both = np.stack([value, value])
        return lambda _wave: both
    first = operand.first
    vector = isinstance(operand, VectorRegisters)

    def raw(wave: Wave, register: int) -> Array:
        return wave.v[register] if vector else wave.s[register][:, None]

    if label.endswith("32"):
        low, high = first + halves[0], first + halves[1]
        return lambda wave: np.stack([raw(wave, low), raw(wave, high)]).view(kind)
    shifts = tuple(np.uint32(16 * half) for half in halves)
    return lambda wave: np.stack([(raw(wave, first) >> shift).astype(np.uint16) for shift in shifts]).view(kind)


_PARTS = {**{n: (8 * n, 8) for n in range(4)}, 4: (0, 16), 5: (16, 16)}
"""Where each part that SDWA selects begins, and how many bits it has."""


def _sub_dword(instruction: Instruction, label: str, number: int, operand: Operand) -> Reader:
    """A byte or a half of a register, extended with zeros or its sign. Raises ArgusError (E502) for one as a float of
    32 bits, and for a part that there is not.
    """
    assert instruction.sdwa is not None
    part = instruction.sdwa.parts[number]
    if part not in _PARTS or label in {"f32", "mix"} or label.endswith("64"):
        raise not_modelled(f"a part of a register as {label} of `{instruction.row.name}`", 0, 0, instruction.address)
    (start, bits), kind = _PARTS[part], _NUMPY[label]
    whole = _plain(evolve(instruction, sdwa=None), "u32", number, operand)
    left, right = np.uint32(32 - start - bits), np.uint32(32 - bits)
    shifted = np.int32 if instruction.sdwa.extended >> number & 1 else np.uint32

    def read(wave: Wave) -> Array:
        found = ((whole(wave) << left).view(shifted) >> right.astype(shifted)).view(np.uint32)
        return found.astype(np.uint16).view(kind) if label.endswith("16") else found.view(kind)

    return read


def merged(target: int, unused: int) -> Callable[[Array, Array], Array]:
    """Of what SDWA writes and what the register held: what it holds then."""
    start, bits = _PARTS[target]
    mask = np.uint32(((1 << bits) - 1) << start)

    def run(value: Array, old: Array) -> Array:
        placed = value.astype(np.uint32) << np.uint32(start) & mask
        if unused == 2:
            return placed | old & ~mask
        if unused == 1:
            above = np.uint32(32 - start - bits)
            return ((placed << above).view(np.int32) >> above.astype(np.int32)).view(np.uint32)
        return placed

    return run


def _mixed(instruction: Instruction, number: int, operand: Operand) -> Reader:
    """Of `v_fma_mix`: op_sel_hi says that a source is f16, op_sel which half; otherwise it is f32."""
    if instruction.select_high >> number & 1 == 0:
        return _plain(instruction, "f32", number, operand)
    half = _plain(instruction, "f16", number, operand)
    return lambda wave: half(wave).astype(np.float32)


def _modified(instruction: Instruction, label: str, number: int, plain: Reader) -> Reader:
    if label == "b32":
        return _signs_changed(instruction, number, plain)
    if not (label == "mix" or element(label).startswith("f")):
        return plain
    negate, absolute = instruction.negate >> number & 1, instruction.absolute >> number & 1
    high = instruction.negate_high >> number & 1
    if label == "mix":
        absolute = high
    elif label.startswith("v2"):
        if not negate and not high:
            return plain
        signs = np.array([-1.0 if negate else 1.0, -1.0 if high else 1.0], _NUMPY[element(label)])[:, None, None]
        return lambda wave: plain(wave) * signs
    if absolute and negate:
        return lambda wave: -np.abs(plain(wave))
    if absolute:
        return lambda wave: np.abs(plain(wave))
    return (lambda wave: -plain(wave)) if negate else plain


def _signs_changed(instruction: Instruction, number: int, plain: Reader) -> Reader:
    """Of bits that may be an f32, as those of `v_cndmask_b32`: modifiers change the highest."""
    negate, absolute = instruction.negate >> number & 1, instruction.absolute >> number & 1
    if not negate and not absolute:
        return plain
    kept, changed = np.uint32(0xFFFFFFFF >> absolute), np.uint32(negate << 31)
    return lambda wave: plain(wave) & kept ^ changed


def _lanes_moved(instruction: Instruction, first: int, kind: npt.DTypeLike) -> Reader:
    assert instruction.dpp is not None
    dpp = instruction.dpp
    return lambda wave: moved(wave, wave.v[first], dpp).view(kind)


def writer(label: str, operand: Operand) -> Writer:
    """Writes a result of an instruction, in the active lanes if it is a vector register."""
    if label == "mask":
        assert isinstance(operand, Scalar)
        first = operand.first
        return lambda wave, value: wave.write_mask(first, value & wave.active)
    count = dwords(label)
    if isinstance(operand, Scalar):
        return _scalar_writer(operand.first, count)
    assert isinstance(operand, VectorRegisters)
    register = operand.first
    if label.startswith("v2"):
        return _packed_writer(register, label)
    if label.endswith("16"):
        return lambda wave, value: wave.write(register, value.view(np.uint16))
    if count == 1:
        return lambda wave, value: wave.write(register, value.view(np.uint32))
    return lambda wave, value: _write_pair(wave, register, value)


def _write_pair(wave: Wave, register: int, value: Array) -> None:
    low, high = _halves(value)
    wave.write(register, low)
    wave.write(register + 1, high)


def _packed_writer(register: int, label: str) -> Writer:
    def two(wave: Wave, value: Array) -> None:
        bits = value.view(np.uint32)
        wave.write(register, bits[0])
        wave.write(register + 1, bits[1])

    def halves(wave: Wave, value: Array) -> None:
        bits = value.view(np.uint16).astype(np.uint32)
        wave.write(register, bits[0] | bits[1] << np.uint32(16))

    return two if label.endswith("32") else halves


def _scalar_writer(register: int, count: int) -> Writer:
    if count == 1:
        return lambda wave, value: wave.write_scalar(register, _flat(value).view(np.uint32))

    def two(wave: Wave, value: Array) -> None:
        wave.known[register] = wave.known[register + 1] = True
        wave.s[register], wave.s[register + 1] = _halves(_flat(value))
        if register >= EXEC:
            wave.refresh_active()

    return two


def _flat(value: Array) -> Array:
    return np.ascontiguousarray(value[:, 0]) if value.ndim == 2 else value
