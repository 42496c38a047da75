"""Modes of floating point, parts of registers (SDWA), and 8-bit floats, against fractions and plain bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from argus.core.diagnostic import ArgusError
from argus.interp.gfx942.instruction import VCC
from tests.interp.gfx942.executed import Instructions, group_of_one
from tests.interp.gfx942.references import LANES, M32, b16, b32, f16, f32
from tests.interp.gfx942.test_matrix import fnuz

SUBNORMAL, TINY = 0x00000123, 0x00800000
# Of the sources in v1, v2, v3 (f64 in v[10:11]): the exact result, and the type of it.
EXACT: dict[str, tuple[str, Callable[[int, int, int], Fraction]]] = {
    "v_add_f32_e32 v4, v1, v2": ("f32", lambda a, b, _: Fraction(f32(a)) + Fraction(f32(b))),
    "v_sub_f32_e32 v4, v1, v2": ("f32", lambda a, b, _: Fraction(f32(a)) - Fraction(f32(b))),
    "v_subrev_f32_e32 v4, v1, v2": ("f32", lambda a, b, _: Fraction(f32(b)) - Fraction(f32(a))),
    "v_mul_f32_e32 v4, v1, v2": ("f32", lambda a, b, _: Fraction(f32(a)) * Fraction(f32(b))),
    "v_fma_f32 v4, v1, v2, v3": ("f32", lambda a, b, c: Fraction(f32(a)) * Fraction(f32(b)) + Fraction(f32(c))),
    "v_cvt_f16_f32_e32 v4, v1": ("f16", lambda a, _, __: Fraction(f32(a))),
    "v_cvt_f32_u32_e32 v4, v1": ("f32", lambda a, _, __: Fraction(a)),
    "v_add_f16_e32 v4, v1, v2": ("f16", lambda a, b, _: Fraction(f16(a)) + Fraction(f16(b))),
    "v_mul_f16_e32 v4, v1, v2": ("f16", lambda a, b, _: Fraction(f16(a)) * Fraction(f16(b))),
}
SETS = ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), {}", "s_setreg_b32 hwreg(HW_REG_MODE, 4, 4), s5")
MODES = [SETS[0].format(n) for n in (0, 5, 10, 15)]
OTHERS = [
    *MODES,
    SETS[1],
    "s_getreg_b32 s6, hwreg(HW_REG_MODE, 4, 4)",
    "v_max_f32_e32 v4, v1, v1",
    "v_cvt_f32_f16_e32 v4, v1",
    "v_fma_f64 v[4:5], v[10:11], v[10:11], v[10:11]",
    "s_getreg_b32 s6, hwreg(HW_REG_HW_ID)",
    "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 12, 4), 1",
]
EIGHTHS = [
    "v_cvt_f32_fp8_e32 v4, v1",
    "v_cvt_f32_bf8_e32 v4, v1",
    "v_cvt_f32_fp8_sdwa v4, v1 src0_sel:BYTE_2",
    "v_cvt_pk_f32_fp8_e32 v[4:5], v1",
    "v_cvt_pk_f32_bf8_e32 v[4:5], v1",
    "v_cvt_pk_f32_bf8_sdwa v[4:5], v1 src0_sel:WORD_1",
    "v_cvt_pk_fp8_f32 v4, v1, v2",
    "v_cvt_pk_bf8_f32 v4, v1, -v2 op_sel:[0,0,1]",
]
PARTS = {
    "BYTE_0": (0, 8),
    "BYTE_1": (8, 8),
    "BYTE_2": (16, 8),
    "BYTE_3": (24, 8),
    "WORD_0": (0, 16),
    "WORD_1": (16, 16),
}
PARTS["DWORD"] = (0, 32)
SUMS = {
    (target, unused, left, right, signed): f"v_add_u32_sdwa v4, {'sext(v1)' if signed else 'v1'}, v2 dst_sel:{target} "
    f"dst_unused:{unused} src0_sel:{left} src1_sel:{right}"
    for target, unused, left, right, signed in [
        *(
            ("DWORD", "UNUSED_PAD", part, other, sign)
            for part, other, sign in product(PARTS, ("DWORD", "BYTE_3"), (0, 1))
        ),
        *(
            (part, how, "WORD_0", "BYTE_1", 0)
            for part in PARTS
            for how in ("UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE")
        ),
    ]
}
HALVES = [
    "v_add_f16_sdwa v4, v1, -|v2| dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_1 src1_sel:WORD_0",
    "v_cmp_lt_u32_sdwa s[8:9], v1, s5 src0_sel:BYTE_1 src1_sel:DWORD",
    "v_cmp_eq_u32_sdwa vcc, v1, v2 src0_sel:WORD_1 src1_sel:WORD_0",
]
LINES = [*EXACT, *OTHERS, *EIGHTHS]


@pytest.fixture(scope="module")
def code() -> Instructions:
    return Instructions([*LINES, *SUMS.values(), *HALVES])


def values(seed: int) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    """Floats of moderate size, some whose halves are too, and some that are exact in sums."""
    random = np.random.default_rng(seed)
    found = (random.standard_normal(LANES) * 2.0 ** random.integers(-12, 12, LANES)).astype(np.float32).view(np.uint32)
    found[:16] = (random.standard_normal(32) * 9).astype(np.float16).view(np.uint32)
    found[16:24] = np.array([1, -1, 0, 2, 3, -3, 70000, -70000], np.float32).view(np.uint32)
    return found


def rounded(exact: Fraction, kind: str, mode: int) -> float:
    """The neighbour of a fraction, found by bisection among the values of the type, in a direction."""
    decode, top = (f16, 0x7C00) if kind == "f16" else (f32, 0x7F800000)
    low, high = 0, top
    size = abs(exact)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if Fraction(decode(middle)) <= size else (low, middle)
    if Fraction(decode(low)) == size:
        return math.copysign(decode(low), exact)
    towards_zero = mode == 3 or (mode == 1 and exact < 0) or (mode == 2 and exact > 0)
    return math.copysign(decode(low if towards_zero else high), exact)


@pytest.mark.parametrize("line", EXACT)
@pytest.mark.parametrize("mode", [1, 2, 3])
def test_directed_rounding_gives_the_neighbour_in_its_direction(code: Instructions, line: str, mode: int) -> None:
    kind, exact = EXACT[line]
    group = group_of_one()
    wave = code.run(MODES[mode], {}, group=group)
    assert wave.mode == 0xF0 | mode << 2 | mode
    sources = [values(seed) for seed in (1, 2, 3)]
    code.run(line, dict(enumerate(sources, 1)), group=group)

    for lane in range(LANES):
        given = [int(each[lane]) for each in sources]
        decode = f16 if "f16_e32" in line and "cvt" not in line else f32
        if not all(math.isfinite(decode(each)) for each in given) and "u32" not in line:
            continue
        wanted = exact(*given)
        found = int(wave.v[4, 0, lane])
        if wanted == 0:
            assert found & 0x7FFFFFFF in {0, 0x8000}
        else:
            assert found == (b16 if kind == "f16" else b32)(rounded(wanted, kind, mode)), (lane, given)


def test_zeros_that_cancel_are_negative_when_rounding_down(code: Instructions) -> None:
    for mode, wanted in ((0, 0), (1, 0), (2, 1 << 31), (3, 0)):
        group = group_of_one()
        code.run(MODES[mode], {}, group=group)
        ones = np.full(LANES, 0x3F800000, np.uint32)
        wave = code.run("v_sub_f32_e32 v4, v1, v2", {1: ones, 2: ones}, group=group)
        assert {int(each) for each in wave.v[4, 0]} == {wanted}


@pytest.mark.parametrize("kept", range(4))
def test_subnormals_of_sources_and_results_are_kept_or_not(code: Instructions, kept: int) -> None:
    group = group_of_one()
    wave = code.run(SETS[1], {}, {5: kept | kept << 2}, group=group)
    code.run("s_getreg_b32 s6, hwreg(HW_REG_MODE, 4, 4)", {}, group=group)
    assert int(wave.s[6, 0]) == kept | kept << 2
    small, tiny = np.full(LANES, SUBNORMAL, np.uint32), np.full(LANES, TINY, np.uint32)
    code.run("v_max_f32_e32 v4, v1, v1", {1: small}, group=group)
    assert int(wave.v[4, 0, 0]) == (SUBNORMAL if kept == 3 else 0)
    code.run("v_mul_f32_e32 v4, v1, v2", {1: tiny, 2: np.full(LANES, 0xBF000000, np.uint32)}, group=group)
    assert int(wave.v[4, 0, 0]) == (0x80400000 if kept & 2 else 1 << 31)
    code.run("v_cvt_f32_f16_e32 v4, v1", {1: np.full(LANES, 0x8001, np.uint32)}, group=group)
    assert int(wave.v[4, 0, 0]) == (b32(-(2.0**-24)) if kept & 1 else 1 << 31)


def test_what_no_mode_is_modelled_for_is_refused(code: Instructions) -> None:
    group = group_of_one()
    code.run(MODES[1], {}, group=group)
    for line in OTHERS[-3:]:
        with pytest.raises(ArgusError) as refused:
            code.run(line, {}, group=group)
        assert refused.value.diagnostic.code == "E502"


def test_eight_bit_floats_become_f32(code: Instructions) -> None:
    held = np.arange(4 * LANES, dtype=np.uint8).view(np.uint32)
    for line in EIGHTHS[:6]:
        wave, exponent = code.run(line, {1: held}), 4 if "fp8" in line else 5
        for lane in range(LANES):
            shift = 16 if "BYTE_2" in line or "WORD_1" in line else 0
            for number in range(2 if "_pk_" in line else 1):
                wanted = fnuz(int(held[lane]) >> shift + 8 * number & 0xFF, exponent)
                found = f32(int(wave.v[4 + number, 0, lane]))
                assert found == wanted or (math.isnan(found) and math.isnan(wanted))


@pytest.mark.parametrize("line", EIGHTHS[6:])
def test_f32_become_the_nearest_eight_bit_floats(code: Instructions, line: str) -> None:
    exponent, shift = (4, 0) if "fp8" in line else (5, 16)
    known = sorted((abs(fnuz(bits, exponent)), bits) for bits in range(128))
    sources = {1: values(1), 2: values(2), 4: values(3)}
    wave = code.run(line, sources)
    for lane in range(LANES):
        result = int(wave.v[4, 0, lane])
        assert result >> (16 - shift) & 0xFFFF == int(sources[4][lane]) >> (16 - shift) & 0xFFFF
        for number in range(2):
            value = f32(int(sources[1 + number][lane])) * (-1 if "-v2" in line and number else 1)
            found = result >> shift + 8 * number & 0xFF
            most, step = known[-1][0], known[-1][0] - known[-2][0]
            if abs(value) >= most + step / 2:
                assert found == 0x80, value
                continue
            distance = min(abs(each - abs(value)) for each, _ in known)
            ties = [bits for each, bits in known if abs(each - abs(value)) == distance]
            wanted = ties[0] if len(ties) == 1 else next(bits for bits in ties if bits % 2 == 0)
            assert found == (wanted | 0x80 if value < 0 and wanted else wanted), value


@pytest.mark.share(24)
@pytest.mark.parametrize("case", SUMS)
def test_parts_of_registers_are_read_and_written(code: Instructions, case: tuple[str, str, str, str, int]) -> None:
    target, unused, left, right, signed = case
    sources = {number: np.random.default_rng(number).integers(0, 1 << 32, LANES, np.uint32) for number in (1, 2, 4)}
    wave = code.run(SUMS[case], sources)

    def part(value: int, name: str, sign: int) -> int:
        start, bits = PARTS[name]
        found = value >> start & (1 << bits) - 1
        return found - (1 << bits) if sign and found >> (bits - 1) else found

    start, bits = PARTS[target]
    for lane in range(LANES):
        a, b, old = (int(sources[number][lane]) for number in (1, 2, 4))
        placed = (part(a, left, signed) + part(b, right, 0) & (1 << bits) - 1) << start
        if unused == "UNUSED_PRESERVE":
            placed |= old & ~(((1 << bits) - 1) << start)
        elif unused == "UNUSED_SEXT" and placed >> (start + bits - 1):
            placed |= M32 << (start + bits)
        assert int(wave.v[4, 0, lane]) == placed & M32, (hex(a), hex(b))


def test_halves_as_floats_and_masks(code: Instructions) -> None:
    sources = {number: values(number) for number in (1, 2, 4)}
    summed = code.run(HALVES[0], sources)
    less = code.run(HALVES[1], sources, {5: 100})
    equal = code.run(HALVES[2], sources)
    masks = [int(w.s[first, 0]) | int(w.s[first + 1, 0]) << 32 for w, first in ((less, 8), (equal, VCC))]
    for lane in range(LANES):
        a, b, old = (int(sources[number][lane]) for number in (1, 2, 4))
        wanted = f16(a >> 16) - abs(f16(b))
        found = int(summed.v[4, 0, lane])
        assert found & 0xFFFF == old & 0xFFFF
        assert found >> 16 == b16(float(np.float16(wanted))) or math.isnan(f16(found >> 16)) or wanted == 0
        assert masks[0] >> lane & 1 == ((a >> 8 & 0xFF) < 100)
        assert masks[1] >> lane & 1 == (a >> 16 == b & 0xFFFF)
