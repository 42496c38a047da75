"""Comparisons, classes of floats, functions that the machine approximates, and division."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from argus.interp.gfx942.instruction import VCC
from argus.interp.gfx942.state import Wave
from tests.interp.gfx942.executed import Instructions
from tests.interp.gfx942.references import LANES, M64, b32, f16, f32, rounded, s32, s64


def unordered(a: float, b: float) -> bool:
    return math.isnan(a) or math.isnan(b)


INTEGER: dict[str, Callable[[float, float], bool]] = {
    "lt": lambda a, b: a < b,
    "eq": lambda a, b: a == b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ne": lambda a, b: a != b,
    "ge": lambda a, b: a >= b,
}
ORDERED = {name: run for name, run in INTEGER.items() if name != "ne"}
FLOAT: dict[str, Callable[[float, float], bool]] = {
    **ORDERED,
    "lg": lambda a, b: a < b or a > b,
    "o": lambda a, b: not unordered(a, b),
    "u": unordered,
    "nge": lambda a, b: not a >= b,
    "nlg": lambda a, b: not (a < b or a > b),
    "ngt": lambda a, b: not a > b,
    "nle": lambda a, b: not a <= b,
    "neq": lambda a, b: a != b,
    "nlt": lambda a, b: not a < b,
}
FUNCTIONS: dict[str, Callable[[float], float]] = {
    "v_exp_f32": lambda a: 2.0**a if a < 1024 else math.inf,
    "v_log_f32": lambda a: math.log2(a) if a > 0 else (-math.inf if a == 0 else math.nan),
    "v_rcp_f32": lambda a: 1 / a if a else math.copysign(math.inf, a),
    "v_rcp_iflag_f32": lambda a: 1 / a if a else math.copysign(math.inf, a),
    "v_rsq_f32": lambda a: 1 / math.sqrt(a) if a > 0 else (math.inf if a == 0 else math.nan),
    "v_sqrt_f32": lambda a: math.sqrt(a) if a >= 0 else math.nan,
    "v_sin_f32": lambda a: math.sin(2 * math.pi * math.fmod(a, 1)),
    "v_cos_f32": lambda a: math.cos(2 * math.pi * math.fmod(a, 1)),
}
DIVISION = [
    "v_div_scale_f32 v10, s[30:31], v2, v2, v1",
    "v_div_scale_f32 v11, vcc, v1, v2, v1",
    "v_rcp_f32_e32 v12, v10",
    "v_fma_f32 v13, -v10, v12, 1.0",
    "v_fma_f32 v12, v13, v12, v12",
    "v_mul_f32_e32 v13, v11, v12",
    "v_fma_f32 v14, -v10, v13, v11",
    "v_fma_f32 v13, v14, v12, v13",
    "v_fma_f32 v14, -v10, v13, v11",
    "v_div_fmas_f32 v13, v14, v12, v13",
    "v_div_fixup_f32 v4, v13, v2, v1",
]
COMPARISONS = {
    **{f"v_cmp_{n}_{kind}": kind for n in INTEGER for kind in ("i16", "u16", "i32", "u32", "i64", "u64")},
    **{f"v_cmp_{n}_{kind}": kind for n in FLOAT for kind in ("f16", "f32", "f64")},
}


# Of each class of floats, one value.
CLASSES: dict[str, list[int]] = {
    "f16": [0x7C01, 0x7E00, 0xFC00, 0xC000, 0x8001, 0x8000, 0, 1, 0x4000, 0x7C00],
    "f32": [0x7F800001, 0x7FC00000, 0xFF800000, 0xC0000000, 0x80000001, 0x80000000, 0, 1, 0x40000000, 0x7F800000],
    "f64": [
        0x7FF0000000000001, 0x7FF8000000000000, 0xFFF0000000000000, 0xC000000000000000, 0x8000000000000001, 1 << 63,
        0, 1, 0x4000000000000000, 0x7FF0000000000000,
    ],
}  # fmt: skip


def compared(name: str) -> str:
    left, right = ("v[20:21]", "v[22:23]") if name.endswith("64") else ("v20", "v22")
    return f"{name}_e32 vcc, {left}, {right}"


LINES = {
    **{name: compared(name) for name in COMPARISONS},
    **{name: f"{name}_e32 v4, v1" for name in FUNCTIONS},
    **{
        f"v_cmp_class_{kind}": f"v_cmp_class_{kind}_e32 vcc, {'v[20:21]' if kind == 'f64' else 'v20'}, v22"
        for kind in CLASSES
    },
}


@pytest.fixture(scope="module")
def code() -> Instructions:
    return Instructions([*LINES.values(), *DIVISION])


def value(kind: str, low: int, high: int) -> float:
    match kind:
        case "i16":
            return (low & 0xFFFF) - (low << 1 & 0x10000)
        case "u16":
            return low & 0xFFFF
        case "i32":
            return s32(low)
        case "u32":
            return low
        case "i64":
            return s64(low | high << 32)
        case "u64":
            return low | high << 32
        case "f16":
            return f16(low)
        case "f64":
            return struct.unpack("<d", struct.pack("<II", low, high))[0]
        case _:
            return f32(low)


def bits(seed: int) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    random = np.random.default_rng(seed)
    special = [0, 1, 0x80000000, 0xFFFFFFFF, 0x7FFFFFFF, 0x7F800000, 0xFF800000, 0x7FC00001, 0x3F803F80, 0x7E007C00]
    return random.choice(np.array([*special, *random.integers(0, 1 << 32, 4)], np.uint32), LANES)


def mask(wave: Wave) -> int:
    return int(wave.s[VCC, 0]) | int(wave.s[VCC + 1, 0]) << 32


@pytest.mark.share(12)
@pytest.mark.parametrize("name", COMPARISONS)
def test_a_comparison_sets_the_bits_of_active_lanes(code: Instructions, name: str) -> None:
    kind, test = COMPARISONS[name], (FLOAT | INTEGER)[name.split("_")[2]]
    held = {number: bits(number) for number in (20, 21, 22, 23)}
    held[22][::3] = held[20][::3]
    held[23][::2] = held[21][::2]
    active = M64 & ~0xFF0
    wave = code.run(LINES[name], held, active=active)
    wanted = 0
    for lane in range(LANES):
        low_a, high_a, low_b, high_b = (int(held[number][lane]) for number in (20, 21, 22, 23))
        wanted |= bool(test(value(kind, low_a, high_a), value(kind, low_b, high_b))) << lane

    assert mask(wave) == wanted & active


@pytest.mark.parametrize("kind", CLASSES)
def test_classes_of_floats(code: Instructions, kind: str) -> None:
    held = np.array([CLASSES[kind][lane % 10] for lane in range(LANES)], np.uint64)
    low, high = held.astype(np.uint32), (held >> np.uint64(32)).astype(np.uint32)
    tests = np.array([1 << lane // 10 for lane in range(LANES)], np.uint32)
    wave = code.run(LINES[f"v_cmp_class_{kind}"], {20: low, 21: high, 22: tests})

    assert mask(wave) == sum(1 << lane for lane in range(LANES) if lane % 10 == lane // 10)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_approximate_functions_are_within_an_ulp_and_have_no_subnormals(code: Instructions, name: str) -> None:
    random = np.random.default_rng(5)
    values = (random.standard_normal(LANES) * 2.0 ** random.integers(-30, 7, LANES)).astype(np.float32)
    values[:4] = (0.0, -0.0, 2.0, 1e-40)
    wave = code.run(LINES[name], {1: values})
    for lane in range(4, LANES):
        found, wanted = f32(int(wave.v[4, 0, lane])), FUNCTIONS[name](float(values[lane]))
        if math.isfinite(wanted):
            assert abs(found - wanted) <= 2.0**-23 * abs(wanted) + 2.0**-126, (values[lane], found, wanted)
        else:
            assert found == wanted or (math.isnan(found) and math.isnan(wanted))
    subnormal, zero = (int(wave.v[4, 0, lane]) for lane in (3, 0))

    assert subnormal == zero


def test_the_steps_of_a_division_round_it_once(code: Instructions) -> None:
    random = np.random.default_rng(11)
    a, b = (
        (random.uniform(1, 2, LANES) * 2.0 ** random.integers(-140, 127, LANES)).astype(np.float32) for _ in range(2)
    )
    b[:6] = (0.0, 3.0, -0.0, np.inf, np.nan, 3e38)
    a[:6] = (1.0, 1e-38, 0.0, 5.0, 1.0, 1e-5)
    held: dict[int, np.ndarray[tuple[int], np.dtype[Any]]] = {1: a, 2: b}
    carried = 0
    for line in DIVISION:
        wave = code.run(line, held, {VCC: carried & 0xFFFFFFFF, VCC + 1: carried >> 32})
        held |= {number: wave.v[number, 0].copy() for number in (4, 10, 11, 12, 13, 14)}
        carried = mask(wave) if "vcc" in line else carried
    for lane in range(LANES):
        x, y, found = float(a[lane]), float(b[lane]), f32(int(held[4][lane]))
        if not (math.isfinite(x) and math.isfinite(y) and y):
            wanted = x / y if y else (math.nan if x == 0 else math.copysign(math.inf, x * math.copysign(1, y)))
        elif abs(x / y) < 2.0**127:
            wanted = f32(b32(rounded(Fraction(x) / Fraction(y), 24, -149)))
        else:
            continue  # what the steps give for a quotient that overflows is not documented
        assert found == wanted or (math.isnan(found) and math.isnan(wanted)), (x, y, found, wanted)
