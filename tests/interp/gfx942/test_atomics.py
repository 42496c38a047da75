"""Atomic operations on global memory and LDS against references in Python integers and exact fractions."""

from __future__ import annotations

import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from argus.interp.gfx942.state import Group
from tests.interp.gfx942.executed import Instructions
from tests.interp.gfx942.references import b16, b32, f16, f32, fma, rounded, s32, s64
from tests.interp.gfx942.test_memory import LANES, descriptor, prepared

Join = Callable[[int, int, int], int]
PLACES = 5


def b64(value: float) -> int:
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def f64(bits: int) -> float:
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def halves(old: int, new: int) -> int:
    low, high = (b16(fma(f16(old >> at), 1.0, f16(new >> at), 11, -24)) for at in (0, 16))
    return low | high << 16


def brains(old: int, new: int) -> int:
    def one(at: int) -> int:
        left, right = (f32((each >> at & 0xFFFF) << 16) for each in (old, new))
        exact = Fraction(left) + Fraction(right)
        return b32(rounded(exact, 8, -133) if exact else left + right) >> 16

    return one(0) | one(16) << 16


def of_integers(bits: int) -> dict[str, Join]:
    signed, mask = (s32 if bits == 32 else s64), (1 << bits) - 1
    return {
        "swap": lambda _, new, __: new,
        "cmpswap": lambda old, new, wanted: new if old == wanted else old,
        "add": lambda old, new, _: old + new,
        "sub": lambda old, new, _: old - new,
        "rsub": lambda old, new, _: new - old,
        "smin": lambda old, new, _: min(signed(old), signed(new)),
        "smax": lambda old, new, _: max(signed(old), signed(new)),
        "umin": lambda old, new, _: min(old, new),
        "umax": lambda old, new, _: max(old, new),
        "and": lambda old, new, _: old & new,
        "or": lambda old, new, _: old | new,
        "xor": lambda old, new, _: old ^ new,
        "inc": lambda old, new, _: 0 if old >= new else old + 1,
        "dec": lambda old, new, _: new if old == 0 or old > new else old - 1 & mask,
    }


SHORT, LONG = of_integers(32), of_integers(64)
SUMS: dict[str, Join] = {
    "add_f32": lambda old, new, _: b32(fma(f32(old), 1.0, f32(new))),
    "add_f64": lambda old, new, _: b64(f64(old) + f64(new)),
}
GLOBAL: dict[str, Join] = {
    **{name: run for name, run in SHORT.items() if name != "rsub"},
    **{f"{name}_x2": run for name, run in LONG.items() if name != "rsub"},
    **SUMS,
    "min_f64": lambda old, new, _: b64(min(f64(old), f64(new))),
    "max_f64": lambda old, new, _: b64(max(f64(old), f64(new))),
    "pk_add_f16": lambda old, new, _: halves(old, new),
    "pk_add_bf16": lambda old, new, _: brains(old, new),
}
_NAMES = {
    "add_u": "add", "sub_u": "sub", "rsub_u": "rsub", "inc_u": "inc", "dec_u": "dec", "min_i": "smin", "max_i": "smax",
    "min_u": "umin", "max_u": "umax", "and_b": "and", "or_b": "or", "xor_b": "xor", "cmpst_b": "cmpswap",
    "wrxchg_b": "swap",
}  # fmt: skip
LOCAL: dict[str, Join] = {
    **{f"{name}32": SHORT[same] for name, same in _NAMES.items()},
    **{f"{name}64": LONG[same] for name, same in _NAMES.items()},
    "add_f32": SUMS["add_f32"],
    "min_f32": lambda old, new, _: b32(min(f32(old), f32(new))),
    "max_f32": lambda old, new, _: b32(max(f32(old), f32(new))),
    "add_f64": SUMS["add_f64"],
    "min_f64": lambda old, new, _: b64(min(f64(old), f64(new))),
    "max_f64": lambda old, new, _: b64(max(f64(old), f64(new))),
    "pk_add_f16": lambda old, new, _: halves(old, new),
    "pk_add_bf16": lambda old, new, _: brains(old, new),
}


def wide(name: str) -> bool:
    return "64" in name or "x2" in name


def data(first: int, count: int) -> str:
    return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"


def lines() -> dict[str, str]:
    """By unit and name; with `returns` behind the name of those that give what was there."""
    found: dict[str, str] = {}
    for name in GLOBAL:
        size = 2 if wide(name) else 1
        held = data(10, 2 * size if "cmpswap" in name else size)
        found[f"global {name}"] = f"global_atomic_{name} v[2:3], {held}, off"
        found[f"global {name} returns"] = f"global_atomic_{name} {data(20, size)}, v[2:3], {held}, off sc0"
        if name != "pk_add_bf16":
            found[f"buffer {name}"] = f"buffer_atomic_{name} {held}, v1, s[4:7], 0 offen"
            found[f"buffer {name} returns"] = f"buffer_atomic_{name} {held}, v1, s[4:7], 0 offen sc0"
    for name in LOCAL:
        size = 2 if wide(name) else 1
        operands = f"v1, {data(12, size)}, {data(10, size)}" if "cmpst" in name else f"v1, {data(10, size)}"
        if "wrxchg" not in name:
            found[f"ds {name}"] = f"ds_{name} {operands}"
        stem, _, kind = name.rpartition("_")
        found[f"ds {name} returns"] = f"ds_{stem}_rtn_{kind} {data(20, size)}, {operands}"
    return found


LINES = lines()


@pytest.fixture(scope="module")
def code() -> Instructions:
    return Instructions(list(LINES.values()))


def values_of(name: str, count: int, random: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Operands: small numbers where the name says floats, so that sums differ; else bits with equal ones among them."""
    if "f32" in name:
        return random.normal(0, 1e3, count).astype(np.float32).view(np.uint32).astype(np.uint64)
    if "f64" in name:
        return random.normal(0, 1e3, count).view(np.uint64)
    if "bf16" in name:
        high = random.normal(0, 9, (2, count)).astype(np.float32).view(np.uint32) >> np.uint32(16)
        return (high[0] | high[1] << np.uint32(16)).astype(np.uint64)
    if "f16" in name:
        return random.normal(0, 9, (count, 2)).astype(np.float16).view(np.uint32)[:, 0].astype(np.uint64)
    few = np.array([0, 1, 2, 7, 1 << 31, (1 << 32) - 1, 1 << 63, (1 << 64) - 1, 1 << 40], np.uint64)
    chosen = random.choice(few, count)
    return chosen if wide(name) else chosen & np.uint64(0xFFFFFFFF)


@pytest.mark.share(24)
@pytest.mark.parametrize("name", LINES)
def test_lanes_take_their_turns_and_get_what_was_there(code: Instructions, name: str) -> None:
    unit, operation, *more = name.split()
    join = (LOCAL if unit == "ds" else GLOBAL)[operation]
    size, active = (8 if wide(operation) else 4), ((1 << LANES) - 1) & ~0x30
    group, registers = prepared(np.arange(LANES, dtype=np.int64) % PLACES * size)
    random = np.random.default_rng(len(name))
    new, wanted_before = values_of(operation, LANES, random), values_of(operation, LANES, random)
    held = memory_of(group, unit, size)
    held[:PLACES] = values_of(operation, PLACES, random)
    second = 12 if unit == "ds" or size == 8 else 11
    for first, each in ((10, new), (second, wanted_before)):
        for part in range(size // 4):
            registers[first + part] = (each >> np.uint64(32 * part)).astype(np.uint32)
    mask = (1 << 8 * size) - 1
    wanted, returned = [int(each) for each in held[:PLACES]], dict[int, int]()
    for lane in range(LANES):
        if active >> lane & 1:
            returned[lane] = wanted[lane % PLACES]
            wanted[lane % PLACES] = (
                join(wanted[lane % PLACES], int(new[lane]) & mask, int(wanted_before[lane]) & mask) & mask
            )
    wave = code.run(LINES[name], registers, descriptor(4096), active=active, group=group)

    assert [int(each) for each in held[:PLACES]] == wanted
    assert not group.findings.found
    if more:
        first = 10 if unit == "buffer" else 20
        for lane, each in returned.items():
            assert sum(int(wave.v[first + part, 0, lane]) << 32 * part for part in range(size // 4)) == each


def memory_of(group: Group, unit: str, size: int) -> npt.NDArray[np.unsignedinteger[Any]]:
    held = group.lds[0] if unit == "ds" else group.memory.array_of("all")
    return held.view(np.uint64 if size == 8 else np.uint32)


@pytest.mark.parametrize("name", ["ds add_u64", "ds max_i32", "global add_x2"])
def test_an_atomic_operation_between_elements_is_reported(code: Instructions, name: str) -> None:
    group, registers = prepared(np.full(LANES, 2, np.int64))
    code.run(LINES[name], registers, descriptor(4096), group=group)

    assert {kind for kind, _ in group.findings.found} == {"misaligned"}


def test_atomic_operations_beyond_lds_and_on_unwritten_bytes_are_reported(code: Instructions) -> None:
    group, registers = prepared(np.arange(LANES, dtype=np.int64) * 128)
    group.written[:, 128] = 0
    code.run(LINES["ds add_u32 returns"], registers, group=group)

    assert {kind for kind, _ in group.findings.found} == {"out of LDS", "uninitialised LDS"}
