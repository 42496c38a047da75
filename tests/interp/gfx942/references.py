"""Arithmetic instructions in Python integers and exact fractions: what each computes from the bits of its sources."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction

M32, M64 = (1 << 32) - 1, (1 << 64) - 1
LANES = 64


def s32(value: int) -> int:
    return value - (1 << 32) if value >> 31 & 1 else value


def s16(value: int) -> int:
    return (value & 0xFFFF) - (value << 1 & 0x10000)


def s64(value: int) -> int:
    return value - (1 << 64) if value >> 63 & 1 else value


def f32(bits: int) -> float:
    return struct.unpack("<f", struct.pack("<I", bits & M32))[0]


def f16(bits: int) -> float:
    return struct.unpack("<e", struct.pack("<H", bits & 0xFFFF))[0]


def b32(value: float) -> int:
    try:
        return struct.unpack("<I", struct.pack("<f", value))[0]
    except OverflowError:
        return 0x7F800000 | (value < 0) << 31


def b16(value: float) -> int:
    try:
        return struct.unpack("<H", struct.pack("<e", value))[0]
    except OverflowError:
        return 0x7C00 | (value < 0) << 15


def fma(a: float, b: float, c: float, bits: int = 24, least: int = -149) -> float:
    """a * b + c of exact fractions, rounded once to nearest even."""
    if not all(map(math.isfinite, (a, b, c))):
        return a * b + c if not (math.isinf(a * b) and math.isfinite(a) and math.isfinite(b)) else c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c
    return rounded(exact, bits, least)


def rounded(exact: Fraction, bits: int, least: int) -> float:
    size = abs(exact)
    power = size.numerator.bit_length() - size.denominator.bit_length()
    power -= Fraction(2) ** power > size
    unit = Fraction(2) ** max(power - bits + 1, least)
    found = round(exact / unit) * unit
    return float(found)


def perm(a: int, b: int, select: int) -> int:
    octets = [*b.to_bytes(4, "little"), *a.to_bytes(4, "little")]
    signs = {8: b >> 15 & 1, 9: b >> 31, 10: a >> 15 & 1, 11: a >> 31}

    def one(code: int) -> int:
        return octets[code] if code < 8 else 255 * signs.get(code, code != 12)

    return sum(one(select >> 8 * n & 255) << 8 * n for n in range(4))


def bfe(a: int, offset: int, width: int) -> int:
    return a >> (offset & 31) & ((1 << (width & 31)) - 1)


def rtz16(value: float) -> int:
    if math.isnan(value):
        return 0x7E00
    near = b16(value)
    return near - 1 if abs(f16(near)) > abs(value) and math.isfinite(value) else near


# Of the raw bits of the sources in v1, v2 and v3: the bits of the result in v4.
ONE: dict[str, Callable[[int], int]] = {
    "v_mov_b32_e32": lambda a: a,
    "v_not_b32_e32": lambda a: a ^ M32,
    "v_bfrev_b32_e32": lambda a: int(f"{a:032b}"[::-1], 2),
    "v_ffbh_u32_e32": lambda a: 32 - a.bit_length() if a else M32,
    "v_ffbl_b32_e32": lambda a: (a & -a).bit_length() - 1 if a else M32,
    "v_cvt_f32_ubyte0_e32": lambda a: b32(a & 255),
    "v_cvt_f32_ubyte1_e32": lambda a: b32(a >> 8 & 255),
    "v_cvt_f32_ubyte2_e32": lambda a: b32(a >> 16 & 255),
    "v_cvt_f32_ubyte3_e32": lambda a: b32(a >> 24),
    "v_cvt_f32_i32_e32": lambda a: b32(rounded(Fraction(s32(a)), 24, -149) if a else 0.0),
    "v_cvt_f32_u32_e32": lambda a: b32(rounded(Fraction(a), 24, -149) if a else 0.0),
    "v_cvt_f32_f16_e32": lambda a: b32(f16(a)),
    "v_cvt_f16_f32_e32": lambda a: b16(f32(a)),
    "v_cvt_u32_f32_e32": lambda a: clamped(f32(a), 0, M32),
    "v_cvt_i32_f32_e32": lambda a: clamped(f32(a), -(1 << 31), (1 << 31) - 1) & M32,
    "v_trunc_f32_e32": lambda a: whole(f32(a), math.trunc),
    "v_floor_f32_e32": lambda a: whole(f32(a), math.floor),
    "v_ceil_f32_e32": lambda a: whole(f32(a), math.ceil),
    "v_rndne_f32_e32": lambda a: whole(f32(a), round),
}
TWO: dict[str, Callable[[int, int], int]] = {
    "v_add_u32_e32": lambda a, b: a + b,
    "v_sub_u32_e32": lambda a, b: a - b,
    "v_subrev_u32_e32": lambda a, b: b - a,
    "v_and_b32_e32": lambda a, b: a & b,
    "v_or_b32_e32": lambda a, b: a | b,
    "v_xor_b32_e32": lambda a, b: a ^ b,
    "v_xnor_b32_e32": lambda a, b: ~(a ^ b),
    "v_lshlrev_b32_e32": lambda a, b: b << (a & 31),
    "v_lshrrev_b32_e32": lambda a, b: b >> (a & 31),
    "v_ashrrev_i32_e32": lambda a, b: s32(b) >> (a & 31),
    "v_min_i32_e32": lambda a, b: min(s32(a), s32(b)),
    "v_max_i32_e32": lambda a, b: max(s32(a), s32(b)),
    "v_min_u32_e32": min,
    "v_max_u32_e32": max,
    "v_mul_u32_u24_e32": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    "v_mul_i32_i24_e32": lambda a, b: low24(a) * low24(b),
    "v_mul_hi_u32_u24_e32": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF) >> 32,
    "v_add_i32": lambda a, b: a + b,
    "v_sub_i32": lambda a, b: a - b,
    "v_add_u16_e32": lambda a, b: a + b & 0xFFFF,
    "v_sub_u16_e32": lambda a, b: a - b & 0xFFFF,
    "v_mul_lo_u16_e32": lambda a, b: a * b & 0xFFFF,
    "v_max_u16_e32": lambda a, b: max(a & 0xFFFF, b & 0xFFFF),
    "v_min_u16_e32": lambda a, b: min(a & 0xFFFF, b & 0xFFFF),
    "v_max_i16_e32": lambda a, b: max(s16(a), s16(b)) & 0xFFFF,
    "v_min_i16_e32": lambda a, b: min(s16(a), s16(b)) & 0xFFFF,
    "v_add_f16_e32": lambda a, b: b16(fma(f16(a), 1.0, f16(b), 11, -24)),
    "v_sub_f16_e32": lambda a, b: b16(fma(f16(b), -1.0, f16(a), 11, -24)),
    "v_subrev_f16_e32": lambda a, b: b16(fma(f16(a), -1.0, f16(b), 11, -24)),
    "v_mul_f16_e32": lambda a, b: b16(product(f16(a), f16(b), 11, -24)),
    "v_max_f16_e32": lambda a, b: b16(larger(f16(a), f16(b))),
    "v_min_f16_e32": lambda a, b: b16(-larger(-f16(a), -f16(b))),
    "v_mul_lo_u32": lambda a, b: a * b,
    "v_mul_hi_u32": lambda a, b: a * b >> 32,
    "v_mul_hi_i32": lambda a, b: s32(a) * s32(b) >> 32,
    "v_bcnt_u32_b32": lambda a, b: a.bit_count() + b,
    "v_bfm_b32": lambda a, b: ((1 << (a & 31)) - 1) << (b & 31),
    "v_add_f32_e32": lambda a, b: b32(fma(f32(a), 1.0, f32(b))),
    "v_sub_f32_e32": lambda a, b: b32(fma(f32(b), -1.0, f32(a))),
    "v_subrev_f32_e32": lambda a, b: b32(fma(f32(a), -1.0, f32(b))),
    "v_mul_f32_e32": lambda a, b: b32(product(f32(a), f32(b))),
    "v_max_f32_e32": lambda a, b: b32(larger(f32(a), f32(b))),
    "v_min_f32_e32": lambda a, b: b32(-larger(-f32(a), -f32(b))),
    "v_ldexp_f32": lambda a, b: b32(scaled(f32(a), s32(b))),
    "v_pack_b32_f16": lambda a, b: a & 0xFFFF | (b & 0xFFFF) << 16,
    "v_cvt_pkrtz_f16_f32_e64": lambda a, b: rtz16(f32(a)) | rtz16(f32(b)) << 16,
    "v_mbcnt_lo_u32_b32": lambda _a, _b: -1,
    "v_mbcnt_hi_u32_b32": lambda _a, _b: -1,
}
THREE: dict[str, Callable[[int, int, int], int]] = {
    "v_add3_u32": lambda a, b, c: a + b + c,
    "v_or3_b32": lambda a, b, c: a | b | c,
    "v_and_or_b32": lambda a, b, c: a & b | c,
    "v_lshl_add_u32": lambda a, b, c: (a << (b & 31)) + c,
    "v_add_lshl_u32": lambda a, b, c: (a + b & M32) << (c & 31),
    "v_lshl_or_b32": lambda a, b, c: a << (b & 31) | c,
    "v_xad_u32": lambda a, b, c: (a ^ b) + c,
    "v_bfe_u32": bfe,
    "v_bfe_i32": lambda a, b, c: signed_field(a, b & 31, c & 31),
    "v_bfi_b32": lambda a, b, c: a & b | ~a & c,
    "v_alignbit_b32": lambda a, b, c: (a << 32 | b) >> (c & 31),
    "v_alignbyte_b32": lambda a, b, c: (a << 32 | b) >> 8 * (c & 3),
    "v_perm_b32": perm,
    "v_min3_i32": lambda a, b, c: min(s32(a), s32(b), s32(c)),
    "v_max3_u32": max,
    "v_min3_u32": min,
    "v_max3_i32": lambda a, b, c: max(s32(a), s32(b), s32(c)),
    "v_med3_u32": lambda a, b, c: sorted((a, b, c))[1],
    "v_mad_i32_i24": lambda a, b, c: low24(a) * low24(b) + c,
    "v_fma_f16": lambda a, b, c: b16(fma(f16(a), f16(b), f16(c), 11, -24)),
    "v_min3_f32": lambda a, b, c: b32(-larger(larger(-f32(a), -f32(b)), -f32(c))),
    "v_med3_f32": lambda a, b, c: b32(middle(f32(a), f32(b), f32(c))),
    "v_fma_mix_f32": lambda a, b, c: b32(fma(f32(a), f32(b), f32(c))),
    "v_med3_i32": lambda a, b, c: sorted((s32(a), s32(b), s32(c)))[1],
    "v_mad_u32_u24": lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c,
    "v_fma_f32": lambda a, b, c: b32(fma(f32(a), f32(b), f32(c))),
    "v_max3_f32": lambda a, b, c: b32(larger(larger(f32(a), f32(b)), f32(c))),
}


def clamped(value: float, low: int, high: int) -> int:
    if math.isnan(value):
        return 0
    return int(min(max(value, low), high)) if math.isfinite(value) else (low if value < 0 else high)


def whole(value: float, run: Callable[[float], int]) -> int:
    return b32(math.copysign(float(run(value)), value) if math.isfinite(value) else value)


def low24(value: int) -> int:
    return (value & 0xFFFFFF) - (1 << 24 if value >> 23 & 1 else 0)


def signed_field(a: int, offset: int, width: int) -> int:
    value = bfe(a, offset, width)
    kept = min(width, 32 - offset)
    return value - (1 << kept) if kept and value >> (kept - 1) & 1 else value


def product(a: float, b: float, bits: int = 24, least: int = -149) -> float:
    found = a * b
    if not math.isfinite(found) or found == 0:
        return found
    exact = rounded(Fraction(a) * Fraction(b), bits, least)
    return exact or math.copysign(0.0, found)


def larger(a: float, b: float) -> float:
    if math.isnan(a) or math.isnan(b):
        return b if math.isnan(a) else a
    return max(a, b) if a != b else (a if math.copysign(1, a) > 0 else b)


def middle(a: float, b: float, c: float) -> float:
    least = -larger(larger(-a, -b), -c)
    if any(map(math.isnan, (a, b, c))):
        return least
    return sorted((a, b, c), key=lambda each: (each, math.copysign(1, each)))[1]


def scaled(a: float, power: int) -> float:
    if not math.isfinite(a) or a == 0:
        return a
    power = min(max(power, -400), 400)
    found = rounded(Fraction(a) * Fraction(2) ** power, 24, -149)
    return found or math.copysign(0.0, a)
