"""Arithmetic instructions against references in Python integers and exact fractions, lane by lane."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from argus.interp.gfx942.instruction import VCC
from argus.interp.gfx942.state import Wave
from tests.interp.gfx942.executed import Instructions
from tests.interp.gfx942.references import (
    LANES,
    M32,
    M64,
    ONE,
    THREE,
    TWO,
    b16,
    b32,
    f16,
    f32,
    fma,
    larger,
    product,
    s32,
    s64,
)

LINES = {
    **{name: f"{name} v4, v1" for name in ONE},
    **{name: f"{name} v4, v1, v2" for name in TWO},
    **{name: f"{name} v4, v1, v2, v3" for name in THREE},
}
OTHERS = [
    "v_lshl_add_u64 v[4:5], v[10:11], 3, v[12:13]",
    "v_mad_u64_u32 v[4:5], s[6:7], v1, v2, v[12:13]",
    "v_mad_i64_i32 v[4:5], s[6:7], v1, v2, v[12:13]",
    "v_mov_b64_e32 v[4:5], v[10:11]",
    "v_lshlrev_b64 v[4:5], v1, v[12:13]",
    "v_lshrrev_b64 v[4:5], v1, v[12:13]",
    "v_ashrrev_i64 v[4:5], v1, v[12:13]",
    "v_add_co_u32_e32 v4, vcc, v1, v2",
    "v_sub_co_u32_e32 v4, vcc, v1, v2",
    "v_subrev_co_u32_e32 v4, vcc, v1, v2",
    "v_addc_co_u32_e32 v4, vcc, v1, v2, vcc",
    "v_subb_co_u32_e32 v4, vcc, v1, v2, vcc",
    "v_cndmask_b32_e32 v4, v1, v2, vcc",
    "v_cndmask_b32_e64 v4, -|v1|, -v2, vcc",
    "v_fma_mixlo_f16 v4, v1, v2, v3 op_sel_hi:[0,1,0]",
    "v_fma_mixhi_f16 v4, v1, v2, v3 op_sel:[0,1,0] op_sel_hi:[0,1,0]",
    "v_fma_f32 v4, -v1, |v2|, v3",
    "v_fmac_f32_e32 v4, v1, v2",
    "v_fmamk_f32 v4, v1, 0x40490fdb, v2",
    "v_pk_fma_f32 v[4:5], v[10:11], v[12:13], v[14:15]",
    "v_pk_mul_f32 v[4:5], v[10:11], v[12:13] op_sel_hi:[0,1]",
    "v_pk_add_f32 v[4:5], v[10:11], v[12:13] neg_lo:[0,1] neg_hi:[0,1]",
    "v_pk_add_f16 v4, v1, v2",
    "v_pk_mul_f16 v4, v1, v2",
    "v_pk_max_f16 v4, v1, v2",
    "v_pk_min_f16 v4, v1, v2",
    "v_pk_fma_f16 v4, v1, v2, v3",
    "v_fmaak_f32 v4, v1, v2, 0x40490fdb",
    "v_mov_b32_dpp v4, v1 row_shr:3 row_mask:0xf bank_mask:0xf",
    "v_add_u32_dpp v1, v1, v1 row_ror:5 row_mask:0xf bank_mask:0xf",
    "v_mov_b32_dpp v4, v1 quad_perm:[3,1,0,2] row_mask:0x5 bank_mask:0xf",
    "v_mov_b32_dpp v4, v1 row_mirror row_mask:0xf bank_mask:0xf",
    "v_mov_b32_dpp v4, v1 row_bcast:15 row_mask:0xa bank_mask:0xf",
    "v_mov_b32_dpp v4, v1 wave_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:0",
    "v_cvt_f32_f16_sdwa v4, v1 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1",
    "v_cvt_f32_f16_sdwa v4, -|v1| dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_0",
    "v_add_f16_sdwa v4, v1, -v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:WORD_0",
    "v_add_u32_sdwa v4, v1, s5 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD",
    "v_accvgpr_write_b32 a4, v1",
    "v_accvgpr_read_b32 v4, a4",
    "v_accvgpr_mov_b32 a5, a4",
    "v_readfirstlane_b32 s5, v1",
    "v_readlane_b32 s5, v1, s6",
    "v_writelane_b32 v4, s5, 37",
]


@pytest.fixture(scope="module")
def code() -> Instructions:
    return Instructions([*LINES.values(), *OTHERS])


def values(seed: int) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    """Random bits, floats of moderate size, and values at which instructions differ."""
    random = np.random.default_rng(seed)
    bits = random.integers(0, 1 << 32, LANES, dtype=np.uint32)
    bits[:24] = (random.standard_normal(24) * 2.0 ** random.integers(-20, 20, 24)).astype(np.float32).view(np.uint32)
    special = [0, 1, 2, 31, 32, 33, M32, 1 << 31, (1 << 31) - 1, 0x3F800000, 0xBF800000, 0x7F7FFFFF, 0x00800000]
    special += [0x00000400, 0x80000001, 0x7F800000, 0xFF800000, 0x3FC00000, 0x40200000]
    bits[24 : 24 + len(special)] = random.permutation(np.array(special, np.uint32))
    bits[60:] = random.permutation(np.array([0, 1 << 31, 0, 0x80008000], np.uint32))
    return bits


def same(name: str, found: int, wanted: int) -> bool:
    """Equal bits, or NaNs of any payload in the same places."""
    wanted &= M32
    if "f16_f32" in name:
        halves = [(found >> shift & 0xFFFF, wanted >> shift & 0xFFFF) for shift in (0, 16)]
        return all(x == y or (math.isnan(f16(x)) and math.isnan(f16(y))) for x, y in halves)
    if "f16" in name and "f32" not in name:
        return found == wanted or (found >> 16 == 0 and math.isnan(f16(found)) and math.isnan(f16(wanted)))
    of_float = any(each in name for each in ("_f32_e32", "f32_f16", "3_f32", "mix_f32", "fma_f32", "ldexp"))
    return found == wanted or (of_float and math.isnan(f32(found)) and math.isnan(f32(wanted)))


@pytest.mark.share(12)
@pytest.mark.parametrize("name", LINES)
def test_an_instruction_computes_what_its_reference_does(code: Instructions, name: str) -> None:
    sources = [values(seed) for seed in (1, 2, 3)]
    sources[2][:32] &= 0x0F0F0F0F if name == "v_perm_b32" else M32
    wave = code.run(LINES[name], dict(enumerate(sources, 1)))

    for lane in range(LANES):
        a, b, c = (int(each[lane]) for each in sources)
        found = int(wave.v[4, 0, lane])
        if name == "v_mbcnt_lo_u32_b32":
            wanted = (a & (1 << min(lane, 32)) - 1).bit_count() + b
        elif name == "v_mbcnt_hi_u32_b32":
            wanted = (a & (1 << max(lane - 32, 0)) - 1).bit_count() + b
        elif name in ONE:
            wanted = ONE[name](a)
        else:
            wanted = TWO[name](a, b) if name in TWO else THREE[name](a, b, c)
        assert same(name, found, wanted), (lane, hex(a), hex(b), hex(c), hex(found), hex(wanted & M32))


def run(code: Instructions, line: str, active: int = M64) -> tuple[Wave, dict[int, list[int]]]:
    """A line on random registers v1 to v15, with what they held."""
    held = {number: values(number) for number in range(1, 16)}
    (known,) = [each for each in OTHERS if each.startswith(line)]
    wave = code.run(known, held, {VCC: 0x0F0F1234, VCC + 1: 0x77, 5: 777, 6: 37}, active=active)
    return wave, {number: [int(bits) for bits in each] for number, each in held.items()}


def wide(held: dict[int, list[int]], first: int, lane: int) -> int:
    return held[first][lane] | held[first + 1][lane] << 32


def pair(wave: Wave, first: int, lane: int) -> int:
    return int(wave.v[first, 0, lane]) | int(wave.v[first + 1, 0, lane]) << 32


WIDE: dict[str, Callable[[int, int, int, int], int]] = {
    "v_lshl_add_u64": lambda _a, _b, left, right: (left << 3) + right,
    "v_mad_u64_u32": lambda a, b, _left, right: a * b + right,
    "v_mad_i64_i32": lambda a, b, _left, right: s32(a) * s32(b) + s64(right),
    "v_mov_b64": lambda _a, _b, left, _right: left,
    "v_lshlrev_b64": lambda a, _b, _left, right: right << (a & 63),
    "v_lshrrev_b64": lambda a, _b, _left, right: right >> (a & 63),
    "v_ashrrev_i64": lambda a, _b, _left, right: s64(right) >> (a & 63),
}


@pytest.mark.parametrize("name", WIDE)
def test_instructions_of_64_bits(code: Instructions, name: str) -> None:
    wave, held = run(code, name)

    for lane in range(LANES):
        wanted = WIDE[name](held[1][lane], held[2][lane], wide(held, 10, lane), wide(held, 12, lane))
        assert pair(wave, 4, lane) == wanted & M64, lane


def mask(wave: Wave) -> int:
    return int(wave.s[VCC, 0]) | int(wave.s[VCC + 1, 0]) << 32


def test_carries_are_read_and_written_by_lane_and_are_zero_in_inactive_lanes(code: Instructions) -> None:
    before, active = 0x0F0F1234 | 0x77 << 32, 0xFFFF_0000_FFFF_FF00

    for name, subtracts, takes in (
        ("v_add_co_u32", False, False),
        ("v_sub_co_u32", True, False),
        ("v_subrev_co_u32", True, False),
        ("v_addc_co_u32", False, True),
        ("v_subb_co_u32", True, True),
    ):
        wave, held = run(code, name, active)
        carries = 0
        for lane in range(LANES):
            carry = before >> lane & 1 if takes else 0
            a, b = held[1][lane], held[2][lane]
            a, b = (b, a) if "rev" in name else (a, b)
            exact = a - b - carry if subtracts else a + b + carry
            if active >> lane & 1:
                assert int(wave.v[4, 0, lane]) == exact & M32
                carries |= (exact < 0 or exact > M32) << lane
            else:
                assert int(wave.v[4, 0, lane]) == held[4][lane]
        assert mask(wave) == carries


def test_a_choice_takes_the_second_source_where_vcc_is_set(code: Instructions) -> None:
    wave, held = run(code, "v_cndmask_b32_e32")
    before = 0x0F0F1234 | 0x77 << 32

    assert [int(each) for each in wave.v[4, 0]] == [held[1 + (before >> n & 1)][n] for n in range(LANES)]


def test_modifiers_of_a_choice_change_signs_of_bits(code: Instructions) -> None:
    wave, held = run(code, "v_cndmask_b32_e64")
    before, sign = 0x0F0F1234 | 0x77 << 32, 1 << 31

    for lane, each in enumerate(wave.v[4, 0]):
        assert int(each) == (held[2][lane] ^ sign if before >> lane & 1 else held[1][lane] | sign)


def near(found: int, wanted: float) -> bool:
    return found == b32(wanted) or (math.isnan(f32(found)) and math.isnan(wanted))


def test_fused_operations_round_once(code: Instructions) -> None:
    plain, held = run(code, "v_fma_f32 v4, -")
    added, _ = run(code, "v_fmac_f32")
    literal, _ = run(code, "v_fmamk_f32")
    addend, _ = run(code, "v_fmaak_f32")
    low, _ = run(code, "v_fma_mixlo")
    high, _ = run(code, "v_fma_mixhi")

    for lane in range(LANES):
        a, b, c, old = (held[number][lane] for number in (1, 2, 3, 4))
        assert near(int(plain.v[4, 0, lane]), fma(-f32(a), abs(f32(b)), f32(c)))
        assert near(int(added.v[4, 0, lane]), fma(f32(a), f32(b), f32(old)))
        assert near(int(addend.v[4, 0, lane]), fma(f32(a), f32(b), f32(0x40490FDB)))
        assert near(int(literal.v[4, 0, lane]), fma(f32(a), f32(0x40490FDB), f32(b)))
        for wave, shift in ((low, 0), (high, 16)):
            wanted = fma(f32(a), f16(b >> shift), f32(c), 11, -24)
            found = int(wave.v[4, 0, lane])
            half = found >> shift & 0xFFFF
            assert half & 0x7FFF == b16(wanted) & 0x7FFF or (math.isnan(f16(half)) and math.isnan(wanted))
            assert found >> (16 - shift) & 0xFFFF == old >> (16 - shift) & 0xFFFF


HALVES: dict[str, Callable[[float, float, float], float]] = {
    "v_pk_add_f16": lambda a, b, _: fma(a, 1.0, b, 11, -24),
    "v_pk_mul_f16": lambda a, b, _: product(a, b, 11, -24),
    "v_pk_max_f16": lambda a, b, _: larger(a, b),
    "v_pk_min_f16": lambda a, b, _: -larger(-a, -b),
    "v_pk_fma_f16": lambda a, b, c: fma(a, b, c, 11, -24),
}


def test_packed_operations_choose_their_halves(code: Instructions) -> None:
    fused, held = run(code, "v_pk_fma_f32")
    product_, _ = run(code, "v_pk_mul_f32")
    difference, _ = run(code, "v_pk_add_f32")
    halves = {name: run(code, name)[0] for name in HALVES}

    for lane in range(LANES):
        for half in (0, 1):
            a, b, c = (f32(held[first + half][lane]) for first in (10, 12, 14))
            assert near(int(fused.v[4 + half, 0, lane]), fma(a, b, c))
            assert near(int(product_.v[4 + half, 0, lane]), product(f32(held[10][lane]), b))
            assert near(int(difference.v[4 + half, 0, lane]), fma(b, -1.0, a))
            sources = [f16(held[number][lane] >> 16 * half) for number in (1, 2, 3)]
            for name, wave in halves.items():
                found, wanted = int(wave.v[4, 0, lane]) >> 16 * half & 0xFFFF, HALVES[name](*sources)
                assert found == b16(wanted) or (math.isnan(f16(found)) and math.isnan(wanted)), name


def source_of(line: str, lane: int) -> int | None:
    """Which lane a lane reads, in words of the ISA; None for none."""
    row, at = lane // 16 * 16, lane % 16
    if "row_shr" in line:
        return lane - 3 if at >= 3 else None
    if "row_ror" in line:
        return row + (at - 5) % 16
    if "quad_perm" in line:
        return lane // 4 * 4 + (3, 1, 0, 2)[lane % 4]
    if "row_mirror" in line:
        return row + 15 - at
    if "row_bcast" in line:
        return row - 1 if row else None
    return lane - 1 if lane else None


@pytest.mark.parametrize("line", [line for line in OTHERS if "_dpp" in line])
def test_lanes_read_others_also_in_place_and_not_inactive_ones(code: Instructions, line: str) -> None:
    active = M64 & ~(1 << 7) & ~(1 << 40)
    wave, held = run(code, line, active)
    target = 1 if "v_add" in line else 4
    rows = 5 if "0x5" in line else 10 if "0xa" in line else 15

    for lane in range(LANES):
        source = source_of(line, lane)
        there = source is not None and active >> source & 1
        written = active >> lane & 1 and rows >> lane // 16 & 1 and (there or "bound_ctrl" in line)
        read = held[1][source] if source is not None and there else 0
        wanted = (read + held[1][lane] if "v_add" in line else read) if written else held[target][lane]
        assert int(wave.v[target, 0, lane]) == wanted & M32, lane


def test_halves_of_registers_are_sources(code: Instructions) -> None:
    lines = [each for each in OTHERS if "_sdwa" in each]
    (high, held), (low, _), (half, _), (added, _) = (run(code, each) for each in lines)
    for lane in range(LANES):
        bits = held[1][lane]
        assert same("f32_f16", int(high.v[4, 0, lane]), ONE["v_cvt_f32_f16_e32"](bits >> 16))
        assert same("f32_f16", int(low.v[4, 0, lane]), ONE["v_cvt_f32_f16_e32"](bits & 0xFFFF | 0x8000))
        wanted = TWO["v_add_f16_e32"](bits >> 16, held[2][lane] & 0xFFFF ^ 0x8000)
        assert same("f16", int(half.v[4, 0, lane]), wanted)
        assert int(added.v[4, 0, lane]) == bits + 777 & M32


def test_lanes_are_read_into_scalar_registers(code: Instructions) -> None:
    first, held = run(code, "v_readfirstlane", active=0xF00)
    chosen, _ = run(code, "v_readlane")

    assert int(first.s[5, 0]) == held[1][8]
    assert int(chosen.s[5, 0]) == held[1][37]


def test_one_lane_is_written_whether_it_is_active_or_not(code: Instructions) -> None:
    wave, held = run(code, "v_writelane", active=1)

    assert [int(each) for each in wave.v[4, 0]] == [777 if lane == 37 else held[4][lane] for lane in range(LANES)]


def test_accumulation_registers_are_registers_of_their_own(code: Instructions) -> None:
    wave, held = run(code, "v_accvgpr_write")

    assert [int(each) for each in wave.v[260, 0]] == held[1]
    assert [int(each) for each in wave.v[4, 0]] == held[4]


def test_accumulation_registers_are_moved_where_lanes_are_active(code: Instructions) -> None:
    held = {number: values(number) for number in (4, 5, 260, 261)}
    wave = code.run("v_accvgpr_mov_b32 a5, a4", held, active=0xF0)

    wanted = [int(held[260 if 4 <= lane < 8 else 261][lane]) for lane in range(LANES)]
    assert [int(each) for each in wave.v[261, 0]] == wanted
    assert [int(each) for each in wave.v[5, 0]] == [int(each) for each in held[5]]
