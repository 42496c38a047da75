"""Vector memory: global and buffer instructions, atomics, and loads to LDS [MI300 ISA, "Vector memory operations"]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from argus.interp.gfx942.atomics import (
    ADD_BRAINS,
    ADD_F32,
    ADD_F64,
    ADD_HALVES,
    LEAST_F64,
    LONG,
    MOST_F64,
    SHORT,
    Atomic,
    update,
)
from argus.interp.gfx942.instruction import M0, Constant, Instruction, Scalar, Vector
from argus.interp.gfx942.local_memory import elements, store_local
from argus.interp.gfx942.races import Touch
from argus.interp.gfx942.row import Form, Row, act
from argus.interp.gfx942.scoreboard import Issued
from argus.interp.gfx942.state import LANES, Array, Group, Mask, Wave
from argus.interp.gfx942.unmodelled import not_modelled

U32, U64 = np.uint32, np.uint64
_HIGH, _LOW = U32(0xFFFF0000), U32(0xFFFF)
_ADDED_IDS = 1 << 23
"""ADD_TID_ENABLE of the fourth word of a buffer descriptor."""
_CARRIERS: dict[int, Any] = {4: np.uint32, 8: np.uint64, 16: np.complex128}
"""Types of the size of an access, which NumPy moves as a whole."""
Finish = Callable[[Array, Array], Array]
Run = Callable[[Group, Wave, Instruction], None]


def addresses(group: Group, wave: Wave, instruction: Instruction) -> tuple[npt.NDArray[np.int64], Mask]:
    """Offsets in the memory, and the lanes that access it: all active ones of a global instruction."""
    first = instruction.sources[0]
    assert isinstance(first, Vector)
    offset = U64(instruction.immediate % (1 << 64))
    if "saddr" in instruction.flags:
        base = instruction.sources[-1]
        assert isinstance(base, Scalar)
        whole = wave.s[base.first].astype(U64) | wave.s[base.first + 1].astype(U64) << U64(32)
        at = whole[:, None] + wave.v[first.first].astype(U64) + offset
    else:
        at = (wave.v[first.first].astype(U64) | wave.v[first.first + 1].astype(U64) << U64(32)) + offset
    return group.memory.offsets(at), wave.active


def buffer_offsets(
    group: Group, wave: Wave, instruction: Instruction, size: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Offsets in the memory, and (dword, workgroup, lane): which dwords a raw buffer's bounds admit; with single
    workgroups and lanes, if they admit all.

    A dword is out of range if it does not fit into num_records bytes from the base, the scalar offset left out; loads
    then give 0 and stores are dropped, dword by dword [MI300 ISA, "Buffer addressing", "Range checking"].
    """
    described = next(each for each in instruction.sources if isinstance(each, Scalar) and each.count == 4)
    words = wave.s[described.first : described.first + 4]
    if (words[1] >> U32(16)).any() or (words[3] & U32(_ADDED_IDS)).any():
        raise not_modelled(f"a structured or swizzled buffer in `{instruction}`", 0, 0, instruction.address)
    base = words[0].astype(U64) | (words[1] & _LOW).astype(U64) << U64(32)
    within = np.full((group.count, LANES), instruction.immediate, np.int64)
    if "offen" in instruction.flags:
        first = instruction.sources[0]
        assert isinstance(first, Vector)
        within += wave.v[first.first]
    ends = np.arange(0, size, 4)[:, None, None] + min(size, 4)
    if int(within.max()) + int(ends[-1, 0, 0]) <= int(words[2].min()):
        fits = np.ones(ends.shape, np.bool_)
    else:
        fits = ends + within <= words[2].astype(np.int64)[:, None]
    return group.memory.offsets(base)[:, None] + _scalar_offset(wave, instruction) + within, fits


def _scalar_offset(wave: Wave, instruction: Instruction) -> npt.NDArray[np.int64]:
    found = instruction.sources[2 if "offen" in instruction.flags else 1]
    if isinstance(found, Scalar):
        return wave.s[found.first].astype(np.int64)[:, None]
    assert isinstance(found, Constant)
    return np.array([[found.integer]], np.int64)


def checked(
    group: Group, wave: Wave, instruction: Instruction, offsets: Array, lanes: Mask, size: int, *, stores: bool
) -> Mask:
    """The lanes whose bytes are all of one allocation; the others are reported."""
    if group.memory.all_inside(offsets, size, stores=stores):
        return lanes
    fits = group.memory.inside(offsets, size, stores=stores)
    wrong = lanes & ~fits
    if not wrong.any():
        return lanes
    verb = "writes" if stores else "reads"
    what = f"{verb} {size} bytes from {group.memory.describe(int(offsets[wrong][0]))}"
    group.report("out of bounds", wave, instruction, what, wrong)
    return lanes & fits


def _aligned(offsets: Array, size: int) -> bool:
    return not int(np.bitwise_or.reduce(offsets, axis=None)) & (size - 1)


def gather(group: Group, offsets: Array, lanes: Mask, size: int) -> Array:
    """Bytes as dwords (dword, workgroup, lane), 0 in other lanes; below 4 bytes one dword, zero-extended."""
    if size in _CARRIERS and lanes.all() and _aligned(offsets, size):
        whole = group.memory.data.view(_CARRIERS[size]).take(offsets >> (size.bit_length() - 1))
        return whole.view(U32).reshape(*lanes.shape, -1).transpose(2, 0, 1)
    found = np.zeros(((size + 3) // 4, *lanes.shape), U32)
    at = offsets[lanes]
    if size >= 4 and not (at & 3).any():
        found[:, lanes] = group.memory.data.view(U32)[(at >> 2) + np.arange(size // 4)[:, None]]
        return found
    octets = np.zeros((len(at), len(found) * 4), np.uint8)
    octets[:, :size] = group.memory.data[at[:, None] + np.arange(size)]
    found[:, lanes] = octets.view(U32).T
    return found


def scatter(group: Group, offsets: Array, lanes: Mask, words: Array, size: int) -> None:
    if size in _CARRIERS and lanes.all() and _aligned(offsets, size):
        moved = np.ascontiguousarray(words.transpose(1, 2, 0)).view(_CARRIERS[size])[..., 0]
        group.memory.data.view(_CARRIERS[size])[offsets >> (size.bit_length() - 1)] = moved
        return
    at = offsets[lanes]
    if size >= 4 and not (at & 3).any():
        group.memory.data.view(U32)[(at >> 2) + np.arange(size // 4)[:, None]] = words[:, lanes]
        return
    octets = np.ascontiguousarray(words[:, lanes].T).view(np.uint8)
    group.memory.data[at[:, None] + np.arange(size)] = octets[:, :size]


def _issue(wave: Wave, instruction: Instruction, late: tuple[Touch, ...] = ()) -> None:
    wave.scoreboard.issue(Issued("vector", instruction, instruction.written, frozenset(), late))


def _loaded(group: Group, wave: Wave, instruction: Instruction, size: int, *, buffer: bool) -> Array:
    if not buffer:
        offsets, lanes = addresses(group, wave, instruction)
        lanes = checked(group, wave, instruction, offsets, lanes, size, stores=False)
        return gather(group, offsets, lanes, size)
    offsets, fits = buffer_offsets(group, wave, instruction, size)
    if fits.all():
        lanes = checked(group, wave, instruction, offsets, wave.active, size, stores=False)
        return gather(group, offsets, lanes, size)
    parts: list[Array] = []
    for number, admitted in enumerate(fits):
        lanes = wave.active & admitted
        unit = min(size, 4)
        lanes = checked(group, wave, instruction, offsets + 4 * number, lanes, unit, stores=False)
        parts.append(gather(group, offsets + 4 * number, lanes, unit)[0])
    return np.stack(parts)


def _load(size: int, finish: Finish | None = None, *, buffer: bool) -> Run:
    def run(group: Group, wave: Wave, instruction: Instruction) -> None:
        words = _loaded(group, wave, instruction, size, buffer=buffer)
        if "lds" in instruction.flags:
            _to_lds(group, wave, instruction, words)
            return
        (target,) = instruction.results
        assert isinstance(target, Vector)
        for number, word in enumerate(words):
            value = word if finish is None else finish(word, wave.v[target.first])
            wave.write(target.first + number, value)
        _issue(wave, instruction)

    return run


def _to_lds(group: Group, wave: Wave, instruction: Instruction, words: Array) -> None:
    """Lane l writes dword l from M0 plus the offset on."""
    first = (wave.s[M0] & _LOW).astype(np.int64) + instruction.immediate
    places = first[:, None] + 4 * np.arange(LANES)
    touch = store_local(group, wave, instruction, places, words, 4)
    _issue(wave, instruction, (touch,))


def _load_lds(group: Group, wave: Wave, instruction: Instruction) -> None:
    _to_lds(group, wave, instruction, _loaded(group, wave, instruction, 4, buffer=False))


def _store(size: int, shift: int = 0, *, buffer: bool) -> Run:
    def run(group: Group, wave: Wave, instruction: Instruction) -> None:
        data = instruction.sources[-1 if buffer else 1]
        assert isinstance(data, Vector)
        words = wave.v[data.first : data.first + data.count]
        words = words >> U32(shift) if shift else words
        if not buffer:
            offsets, lanes = addresses(group, wave, instruction)
            lanes = checked(group, wave, instruction, offsets, lanes, size, stores=True)
            scatter(group, offsets, lanes, words, size)
        else:
            offsets, fits = buffer_offsets(group, wave, instruction, size)
            unit = min(size, 4)
            for number, admitted in enumerate(fits):
                lanes = wave.active & admitted
                lanes = checked(group, wave, instruction, offsets + 4 * number, lanes, unit, stores=True)
                scatter(group, offsets + 4 * number, lanes, words[number : number + 1], unit)
        _issue(wave, instruction)

    return run


def _atomic(atomic: Atomic, *, buffer: bool) -> Run:
    """Data and, after it, what to compare with; results are what was there before."""
    size = atomic.size

    def run(group: Group, wave: Wave, instruction: Instruction) -> None:
        data = instruction.sources[-1 if buffer else 1]
        assert isinstance(data, Vector)
        if buffer:
            offsets, fits = buffer_offsets(group, wave, instruction, size)
            lanes = wave.active & fits.all(0)
        else:
            offsets, lanes = addresses(group, wave, instruction)
        lanes = checked(group, wave, instruction, offsets, lanes, size, stores=True)
        apart = lanes & (offsets % size != 0)
        if apart.any():
            what = f"an atomic operation on {group.memory.describe(int(offsets[apart][0]))}, not a multiple of {size}"
            group.report("misaligned", wave, instruction, what, apart)
            lanes = lanes & ~apart
        values = elements(wave, atomic.kind, data.first)[lanes]
        wanted = elements(wave, atomic.kind, data.first + size // 4)[lanes] if atomic.compares else values
        held, places = group.memory.data.view(atomic.kind), offsets[lanes] // size
        found = update(atomic, held, places, values, wanted, returns=bool(instruction.results))
        before = np.zeros((*lanes.shape, size // 4), U32)
        before[lanes] = np.ascontiguousarray(found).view(U32).reshape(-1, size // 4)
        for target in instruction.results:
            assert isinstance(target, Vector)
            for number in range(size // 4):
                wave.write(target.first + number, before[..., number])
        _issue(wave, instruction)

    return run


def _extended(kind: type[np.signedinteger]) -> Finish:
    return lambda value, _old: value.astype(kind).astype(np.int32).view(U32)


def _plain(value: Array, _old: Array) -> Array:
    return value


def _to_low(value: Array, old: Array) -> Array:
    return value | old & _HIGH


def _to_high(value: Array, old: Array) -> Array:
    return value << U32(16) | old & _LOW


LOADS: tuple[tuple[str, int, int, str, Finish | None], ...] = (
    ("ubyte", 16, 1, "b32 =", _plain),
    ("sbyte", 17, 1, "b32 =", _extended(np.int8)),
    ("ushort", 18, 2, "b32 =", _plain),
    ("sshort", 19, 2, "b32 =", _extended(np.int16)),
    ("dword", 20, 4, "b32 =", None),
    ("dwordx2", 21, 8, "b64 =", None),
    ("dwordx3", 22, 12, "b96 =", None),
    ("dwordx4", 23, 16, "b128 =", None),
    ("ubyte_d16", 32, 1, "b32 = old", _to_low),
    ("ubyte_d16_hi", 33, 1, "b32 = old", _to_high),
    ("short_d16", 36, 2, "b32 = old", _to_low),
    ("short_d16_hi", 37, 2, "b32 = old", _to_high),
)
STORES: tuple[tuple[str, int, int, str, int], ...] = (
    ("byte", 24, 1, "b32", 0),
    ("byte_d16_hi", 25, 1, "b32", 16),
    ("short", 26, 2, "b32", 0),
    ("short_d16_hi", 27, 2, "b32", 16),
    ("dword", 28, 4, "b32", 0),
    ("dwordx2", 29, 8, "b64", 0),
    ("dwordx3", 30, 12, "b96", 0),
    ("dwordx4", 31, 16, "b128", 0),
)
_INTEGERS = (
    ("swap", 64), ("cmpswap", 65), ("add", 66), ("sub", 67), ("smin", 68), ("umin", 69), ("smax", 70), ("umax", 71),
    ("and", 72), ("or", 73), ("xor", 74), ("inc", 75), ("dec", 76),
)  # fmt: skip
ATOMICS: tuple[tuple[str, int, Atomic], ...] = (
    *((name, number, SHORT[name]) for name, number in _INTEGERS),
    *((f"{name}_x2", number + 32, LONG[name]) for name, number in _INTEGERS),
    ("add_f32", 77, ADD_F32),
    ("pk_add_f16", 78, ADD_HALVES),
    ("add_f64", 79, ADD_F64),
    ("min_f64", 80, LEAST_F64),
    ("max_f64", 81, MOST_F64),
)


def _rows(prefix: str, form: Form, *, buffer: bool) -> tuple[Row, ...]:
    address = "v#" if buffer else "u64"
    return (
        *(
            act(f"{prefix}_load_{name}", form, number, f"{signature} {address}", _load(size, finish, buffer=buffer))
            for name, number, size, signature, finish in LOADS
        ),
        *(
            act(f"{prefix}_store_{name}", form, number, f"= {address} {kind}", _store(size, shift, buffer=buffer))
            for name, number, size, kind, shift in STORES
        ),
        *(
            act(f"{prefix}_atomic_{name}", form, number, signature(atomic, address), _atomic(atomic, buffer=buffer))
            for name, number, atomic in ATOMICS
        ),
    )


def signature(atomic: Atomic, address: str) -> str:
    """Data and what to compare with are one operand of twice the size."""
    bits = 8 * atomic.size
    return f"b{bits} = {address} b{2 * bits if atomic.compares else bits}"


def _nothing(_group: Group, _wave: Wave, _instruction: Instruction) -> None:
    """Caches are coherent here."""


ROWS: tuple[Row, ...] = (
    *_rows("global", "GLOBAL", buffer=False),
    *_rows("buffer", "MUBUF", buffer=True),
    act("buffer_wbl2", "MUBUF", 40, "=", _nothing),
    act("buffer_inv", "MUBUF", 41, "=", _nothing),
    act("global_atomic_pk_add_bf16", "GLOBAL", 82, signature(ADD_BRAINS, "u64"), _atomic(ADD_BRAINS, buffer=False)),
    act("global_load_lds_dword", "GLOBAL", 42, "= u64 m0", _load_lds),
)
