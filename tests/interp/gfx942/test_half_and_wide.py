"""Arithmetic of f64, of 16-bit elements and of parts of registers, against Python integers, floats and fractions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import cast

import numpy as np
import pytest

from argus.interp.gfx942.instruction import VCC
from argus.interp.gfx942.state import Wave
from tests.interp.gfx942.executed import Instructions
from tests.interp.gfx942.references import LANES, M32, b16, b32, f16, f32, fma, rounded, s16, s32
from tests.interp.gfx942.wide_references import CASES, Value, b64, exact64, f64

OTHERS = (
    "v_dot2_f32_f16 v4, v10, v20, v30",
    "v_pk_fmac_f16 v4, v10, v20",
    "v_pk_mov_b32 v[4:5], v[10:11], v[20:21] op_sel:[1,0]",
    "v_subbrev_co_u32_e32 v4, vcc, v10, v20, vcc",
    "v_div_scale_f64 v[40:41], s[6:7], v[20:21], v[20:21], v[10:11]",
    "v_div_scale_f64 v[42:43], vcc, v[10:11], v[20:21], v[10:11]",
    "v_div_fmas_f64 v[4:5], v[40:41], v[42:43], v[44:45]",
)


def registers(kind: str, first: int) -> str:
    return f"v[{first}:{first + 1}]" if kind == "d" else f"v{first}"


LINES = {
    name: f"{name} {registers(kinds[0], 4)}, {', '.join(registers(k, 10 * (n + 1)) for n, k in enumerate(kinds[2:]))}"
    for name, (kinds, _) in CASES.items()
}


@pytest.fixture(scope="module")
def code() -> Instructions:
    return Instructions([*LINES.values(), *OTHERS])


def held(seed: int) -> dict[int, np.ndarray[tuple[int], np.dtype[np.uint32]]]:
    """Pairs of registers at 4, 10, 20, 30: halves, f32 and f64 of moderate and of special values."""
    random = np.random.default_rng(seed)
    found: dict[int, np.ndarray[tuple[int], np.dtype[np.uint32]]] = {}
    for first in (4, 10, 20, 30):
        low = random.integers(0, 1 << 32, LANES, dtype=np.uint32)
        high = random.integers(0, 1 << 32, LANES, dtype=np.uint32)
        wide = (random.standard_normal(24) * 2.0 ** random.integers(-40, 40, 24)).view(np.uint64)
        low[:24], high[:24] = wide.astype(np.uint32), (wide >> np.uint64(32)).astype(np.uint32)
        low[24:40] = (random.standard_normal(16) * 2.0 ** random.integers(-6, 6, 16)).astype(np.float32).view(np.uint32)
        low[40:52] = (random.standard_normal(24) * 4).astype(np.float16).view(np.uint32)
        special = [0, 1, 2, 17, M32, 1 << 31, (1 << 31) - 1, 0x3C003C00, 0x7C007E00, 0xFC008000]
        low[52:62] = random.permutation(np.array(special, np.uint32))
        high[52:60] = [0, 1 << 31, 0x7FF00000, 0xFFF00000, 0x7FF80000, 0x3FF00000, 0x40080000, 1]
        low[58:60] = 0
        found |= {first: low, first + 1: high}
    return found


def value(kind: str, low: int, high: int) -> Value:
    match kind:
        case "h":
            return f16(low)
        case "f":
            return f32(low)
        case "d":
            return f64(low | high << 32)
        case "w":
            return low & 0xFFFF
        case "s":
            return s16(low)
        case "i":
            return s32(low)
        case _:
            return low


def bits(kind: str, result: Value) -> int:
    match kind:
        case "h":
            return b16(result)
        case "f":
            return b32(result)
        case "d":
            return b64(result)
        case "w" | "s":
            return result & 0xFFFF
        case _:
            return result & M32


def is_nan(kind: str, found: int) -> bool:
    return kind in "hfd" and math.isnan(value(kind, found & M32, found >> 32))


def result_of(wave: Wave, kind: str, lane: int) -> int:
    low = int(wave.v[4, 0, lane])
    return low | int(wave.v[5, 0, lane]) << 32 if kind == "d" else low


APPROXIMATE = {"v_log_f16", "v_exp_f16", "v_sin_f16", "v_cos_f16", "v_rsq_f64"}


@pytest.mark.share(12)
@pytest.mark.parametrize("name", CASES)
def test_an_instruction_computes_what_its_reference_does(code: Instructions, name: str) -> None:
    kinds, reference = CASES[name]
    run = cast("Callable[..., Value]", reference)
    sources = held(len(name))
    wave = code.run(LINES[name], sources)
    reads = [*((10 * (n + 1), kind) for n, kind in enumerate(kinds[2:])), *([(4, "d")] if "fmac" in name else [])]

    for lane in range(LANES):
        given = [value(kind, int(sources[at][lane]), int(sources[at + 1][lane])) for at, kind in reads]
        found, wanted = result_of(wave, kinds[0], lane), bits(kinds[0], run(*given))
        near = name in APPROXIMATE and (abs(found - wanted) <= 1 or (found | wanted) == 0x8000)
        both = is_nan(kinds[0], found) and is_nan(kinds[0], wanted)
        assert found == wanted or both or near, (lane, given, hex(found), hex(wanted))


def test_a_sum_of_two_products_of_halves_is_rounded_once(code: Instructions) -> None:
    sources = held(3)
    small = np.random.default_rng(1).integers(-64, 64, (2, LANES, 2)).astype(np.float16).view(np.uint32)[..., 0]
    wave = code.run(OTHERS[0], sources | {10: small[0], 20: small[1], 30: np.full(LANES, 0x40490FDB, np.uint32)})
    for lane in range(LANES):
        a, b = (int(each[lane]) for each in small)
        exact = Fraction(f32(0x40490FDB)) + sum(Fraction(f16(a >> at)) * Fraction(f16(b >> at)) for at in (0, 16))
        assert int(wave.v[4, 0, lane]) == b32(rounded(exact, 24, -149))


def test_halves_are_multiplied_and_added_in_place(code: Instructions) -> None:
    sources = held(5)
    wave = code.run(OTHERS[1], sources)
    for lane in range(LANES):
        for at in (0, 16):
            a, b, old = (f16(int(sources[first][lane]) >> at) for first in (10, 20, 4))
            found, wanted = int(wave.v[4, 0, lane]) >> at & 0xFFFF, fma(a, b, old, 11, -24)
            assert found == b16(wanted) or (math.isnan(wanted) and math.isnan(f16(found)))


def test_moves_and_borrows(code: Instructions) -> None:
    sources = held(6)
    moved = code.run(OTHERS[2], sources)
    borrowed = code.run(OTHERS[3], sources, {VCC: 0x1234ABCD, VCC + 1: 7})
    before, after = 0x1234ABCD | 7 << 32, int(borrowed.s[VCC, 0]) | int(borrowed.s[VCC + 1, 0]) << 32
    for lane in range(LANES):
        assert int(moved.v[4, 0, lane]) == sources[11][lane]
        assert int(moved.v[5, 0, lane]) == sources[20][lane]
        exact = int(sources[20][lane]) - int(sources[10][lane]) - (before >> lane & 1)
        assert (int(borrowed.v[4, 0, lane]), after >> lane & 1) == (exact & M32, int(exact < 0))


def test_the_steps_of_a_division_of_f64_round_it_once(code: Instructions) -> None:
    random = np.random.default_rng(2)
    a, b = (random.uniform(1, 2, LANES) * 2.0 ** random.integers(-1000, 1000, LANES) for _ in range(2))
    made = {10: a.view(np.uint64), 20: b.view(np.uint64)}
    sources = {n + part: (v >> np.uint64(32 * part)).astype(np.uint32) for n, v in made.items() for part in (0, 1)}
    below = code.run(OTHERS[4], sources)
    scaled_b = np.array([result(below, 40, lane) for lane in range(LANES)])
    above = code.run(OTHERS[5], sources)
    scaled_a = np.array([result(above, 42, lane) for lane in range(LANES)])
    carried = int(above.s[VCC, 0]) | int(above.s[VCC + 1, 0]) << 32
    with np.errstate(all="ignore"):
        inverse_ = 1 / scaled_b
        quotient = scaled_a * inverse_
    left = np.array([exact64(-x, y, z) for x, y, z in zip(scaled_b, quotient, scaled_a, strict=True)])
    parts = {40: left.view(np.uint64), 42: inverse_.view(np.uint64), 44: quotient.view(np.uint64)}
    steps = {n + part: (v >> np.uint64(32 * part)).astype(np.uint32) for n, v in parts.items() for part in (0, 1)}
    done = code.run(OTHERS[6], steps, {VCC: carried & M32, VCC + 1: carried >> 32})
    compared = 0
    for lane in range(LANES):
        wanted = (
            float(Fraction(a[lane]) / Fraction(b[lane])) if abs(math.log2(a[lane]) - math.log2(b[lane])) < 1000 else 0
        )
        if wanted:
            compared += 1
            assert result(done, 4, lane) == wanted, (a[lane], b[lane])
    assert compared > LANES // 2


def result(wave: Wave, first: int, lane: int) -> float:
    return f64(int(wave.v[first, 0, lane]) | int(wave.v[first + 1, 0, lane]) << 32)
