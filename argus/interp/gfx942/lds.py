"""LDS instructions [MI300 ISA, chapter "Data share operations"]."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from argus.interp.gfx942.instruction import Instruction, Vector
from argus.interp.gfx942.lane_moves import swizzled
from argus.interp.gfx942.lds_memo import read_again, remember, remembered, write_again
from argus.interp.gfx942.local_memory import load_local, store_local, track_local
from argus.interp.gfx942.races import Touch
from argus.interp.gfx942.row import Row, act
from argus.interp.gfx942.state import Array, Group, Wave, Words
from argus.interp.gfx942.unmodelled import not_modelled

U32 = np.uint32
_HIGH, _LOW = U32(0xFFFF0000), U32(0xFFFF)


def _base(wave: Wave, instruction: Instruction) -> Words:
    address = instruction.sources[0]
    assert isinstance(address, Vector)
    return wave.v[address.first]


def _offsets(instruction: Instruction, scale: int) -> tuple[int, ...]:
    """Of each access. scale: of the two offsets of a paired instruction; 0 for a single one."""
    if not scale:
        return (instruction.immediate,)
    return scale * instruction.immediate, scale * instruction.second


def _read(size: int, scale: int = 0) -> Callable[[Group, Wave, Instruction], None]:
    """Whole dwords: `size` bytes, or twice that of a paired instruction."""

    def run(group: Group, wave: Wave, instruction: Instruction) -> None:
        (target,) = instruction.results
        assert isinstance(target, Vector)
        found: list[Array] = []
        touches: list[Touch | None] = []
        base = _base(wave, instruction)
        for part, offset in enumerate(_offsets(instruction, scale)):
            access = remembered(group, wave, instruction, part, base)
            if access is not None:
                found += read_again(group, wave, instruction, access, size)
                touches.append(access.touch)
                continue
            words, touch = load_local(group, wave, instruction, base.astype(np.int64) + offset, size)
            remember(group, wave, instruction, part, base, size, touch)
            found += words
            touches.append(touch)
        for number, words in enumerate(found):
            wave.write(target.first + number, words)
        track_local(wave, instruction, touches)

    return run


def _read_small(size: int, finish: Callable[[Array, Array], Array]) -> Callable[[Group, Wave, Instruction], None]:
    """One or two bytes. finish: of the bytes, zero-extended, and what the register held."""

    def run(group: Group, wave: Wave, instruction: Instruction) -> None:
        (target,) = instruction.results
        assert isinstance(target, Vector)
        (words,), touch = load_local(
            group, wave, instruction, _base(wave, instruction).astype(np.int64) + instruction.immediate, size
        )
        wave.write(target.first, finish(words, wave.v[target.first]))
        track_local(wave, instruction, [touch])

    return run


def _write(size: int, scale: int = 0, shift: int = 0) -> Callable[[Group, Wave, Instruction], None]:
    def run(group: Group, wave: Wave, instruction: Instruction) -> None:
        touches: list[Touch | None] = []
        base = _base(wave, instruction)
        for part, (offset, data) in enumerate(zip(_offsets(instruction, scale), instruction.sources[1:], strict=True)):
            assert isinstance(data, Vector)
            words = wave.v[data.first : data.first + data.count]
            words = words >> U32(shift) if shift else words
            access = remembered(group, wave, instruction, part, base)
            if access is not None:
                write_again(group, wave, instruction, access, words, size)
                touches.append(access.touch)
                continue
            touch = store_local(group, wave, instruction, base.astype(np.int64) + offset, words, size)
            remember(group, wave, instruction, part, base, size, touch)
            touches.append(touch)
        track_local(wave, instruction, touches)

    return run


def _swizzle(_group: Group, wave: Wave, instruction: Instruction) -> None:
    source = swizzled(instruction.immediate)
    if source is None:
        raise not_modelled(f"the pattern 0x{instruction.immediate:x} of `ds_swizzle_b32`", 0, 0, instruction.address)
    _exchange(wave, instruction, np.broadcast_to(source, wave.active.shape), 0)


def _backward_permute(_group: Group, wave: Wave, instruction: Instruction) -> None:
    address = instruction.sources[0]
    assert isinstance(address, Vector)
    lanes = (wave.v[address.first].astype(np.int64) + instruction.immediate) // 4 % 64
    _exchange(wave, instruction, lanes, 1)


def _forward_permute(_group: Group, wave: Wave, instruction: Instruction) -> None:
    """Each active lane sends to a lane: of several for one, the highest is taken; a lane without a sender gets 0."""
    address, data = instruction.sources
    (target,) = instruction.results
    assert isinstance(address, Vector)
    assert isinstance(data, Vector)
    assert isinstance(target, Vector)
    lanes = (wave.v[address.first].astype(np.int64) + instruction.immediate) // 4 % 64
    rows = np.arange(len(lanes))
    found = np.zeros(wave.active.shape, U32)
    for lane in range(lanes.shape[1]):
        sends = wave.active[:, lane]
        found[rows[sends], lanes[sends, lane]] = wave.v[data.first][sends, lane]
    wave.write(target.first, found)
    track_local(wave, instruction, [])


def _exchange(wave: Wave, instruction: Instruction, lanes: Array, number: int) -> None:
    """Each active lane reads a lane; 0 from one that is not active."""
    data, (target,) = instruction.sources[number], instruction.results
    assert isinstance(data, Vector)
    assert isinstance(target, Vector)
    held = np.where(wave.active, wave.v[data.first], U32(0))
    wave.write(target.first, np.take_along_axis(held, lanes, axis=1))
    track_local(wave, instruction, [])


def _signed(bits: int) -> Callable[[Array, Array], Array]:
    kind = np.int8 if bits == 8 else np.int16
    return lambda value, _old: value.astype(kind).astype(np.int32).view(U32)


def _plain(value: Array, _old: Array) -> Array:
    return value


def _keep_high(value: Array, old: Array) -> Array:
    return value | old & _HIGH


def _to_high(value: Array, old: Array) -> Array:
    return value << U32(16) | old & _LOW


def _ds(name: str, number: int, signature: str, run: Callable[[Group, Wave, Instruction], None]) -> Row:
    return act(name, "DS", number, signature, run)


ROWS: tuple[Row, ...] = (
    _ds("ds_write_b32", 13, "= u32 b32", _write(4)),
    _ds("ds_write2_b32", 14, "= u32 b32 b32", _write(4, 4)),
    _ds("ds_write2st64_b32", 15, "= u32 b32 b32", _write(4, 256)),
    _ds("ds_write_b8", 30, "= u32 b32", _write(1)),
    _ds("ds_write_b16", 31, "= u32 b32", _write(2)),
    _ds("ds_read_b32", 54, "b32 = u32", _read(4)),
    _ds("ds_read2_b32", 55, "b64 = u32", _read(4, 4)),
    _ds("ds_read2st64_b32", 56, "b64 = u32", _read(4, 256)),
    _ds("ds_read_i8", 57, "b32 = u32", _read_small(1, _signed(8))),
    _ds("ds_read_u8", 58, "b32 = u32", _read_small(1, _plain)),
    _ds("ds_read_i16", 59, "b32 = u32", _read_small(2, _signed(16))),
    _ds("ds_read_u16", 60, "b32 = u32", _read_small(2, _plain)),
    _ds("ds_swizzle_b32", 61, "b32 = u32", _swizzle),
    _ds("ds_permute_b32", 62, "b32 = u32 b32", _forward_permute),
    _ds("ds_bpermute_b32", 63, "b32 = u32 b32", _backward_permute),
    _ds("ds_write_b64", 77, "= u32 b64", _write(8)),
    _ds("ds_write2_b64", 78, "= u32 b64 b64", _write(8, 8)),
    _ds("ds_write2st64_b64", 79, "= u32 b64 b64", _write(8, 512)),
    _ds("ds_write_b8_d16_hi", 84, "= u32 b32", _write(1, shift=16)),
    _ds("ds_write_b16_d16_hi", 85, "= u32 b32", _write(2, shift=16)),
    _ds("ds_read_u8_d16", 86, "b32 = u32 old", _read_small(1, _keep_high)),
    _ds("ds_read_u8_d16_hi", 87, "b32 = u32 old", _read_small(1, _to_high)),
    _ds("ds_read_u16_d16", 90, "b32 = u32 old", _read_small(2, _keep_high)),
    _ds("ds_read_u16_d16_hi", 91, "b32 = u32 old", _read_small(2, _to_high)),
    _ds("ds_read_b64", 118, "b64 = u32", _read(8)),
    _ds("ds_read2_b64", 119, "b128 = u32", _read(8, 8)),
    _ds("ds_read2st64_b64", 120, "b128 = u32", _read(8, 512)),
    _ds("ds_write_b96", 222, "= u32 b96", _write(12)),
    _ds("ds_write_b128", 223, "= u32 b128", _write(16)),
    _ds("ds_read_b96", 254, "b96 = u32", _read(12)),
    _ds("ds_read_b128", 255, "b128 = u32", _read(16)),
)
