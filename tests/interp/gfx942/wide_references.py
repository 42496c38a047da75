"""What arithmetic of f64, of 16-bit elements and of parts of registers computes, in Python integers and fractions."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from tests.interp.gfx942.references import M32, clamped, fma, larger, rounded, s16, s32

Value = Any  # an int or a float, as the kinds of the case say
Reference = Callable[[Any], Value] | Callable[[Any, Any], Value] | Callable[[Any, Any, Any], Value]


def f64(bits: int) -> float:
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def b64(value: float) -> int:
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def exact64(a: float, b: float, c: float) -> float:
    try:
        return fma(a, b, c, 53, -1074)
    except OverflowError:
        return math.inf if Fraction(a) * Fraction(b) + Fraction(c) > 0 else -math.inf


def times(a: float, b: float) -> float:
    return a * b


def whole(run: Callable[[float], int]) -> Reference:
    def found(a: float) -> float:
        return math.copysign(float(run(a)), a) if math.isfinite(a) else a

    return found


def part(digits: int) -> Reference:
    """Of a finite value, what is above its floor, and below 1. digits: of the mantissa."""

    def found(a: float) -> float:
        return min(abs(a - math.floor(a)), 1 - 2.0**-digits) if math.isfinite(a) else math.nan

    return found


def inverse(a: float) -> float:
    return 1 / a if a else math.copysign(math.inf, a)


def root(a: float) -> float:
    return math.sqrt(a) if a >= 0 else (a if a == 0 else math.nan)


def power(a: float, b: int) -> float:
    if not math.isfinite(a) or a == 0:
        return a
    found = Fraction(a) * Fraction(2) ** max(min(b, 3000), -3000)
    size = abs(found)
    if size >= Fraction(2) ** 1024:
        return math.copysign(math.inf, a)
    return rounded(found, 53, -1074) if size > Fraction(2) ** -1080 else math.copysign(0.0, a)


def half_power(a: float, b: int) -> float:
    if not math.isfinite(a) or a == 0:
        return a
    found = Fraction(a) * Fraction(2) ** max(min(b, 100), -100)
    return math.copysign(math.inf, a) if abs(found) >= 65520 else math.copysign(rounded(found, 11, -24), a)


def mantissa(a: float) -> float:
    return math.frexp(a)[0] if math.isfinite(a) else a


def exponent(a: float) -> int:
    return math.frexp(a)[1] if math.isfinite(a) else 0


def fields(a: int, count: int, signed: bool) -> list[int]:
    bits = 32 // count
    found = [a >> bits * n & (1 << bits) - 1 for n in range(count)]
    return [each - (1 << bits) if signed and each >> (bits - 1) else each for each in found]


def dot(count: int, signed: bool) -> Reference:
    def run(a: int, b: int, c: int) -> int:
        return c + sum(x * y for x, y in zip(fields(a, count, signed), fields(b, count, signed), strict=True))

    return run


def differences(count: int, shift: int = 0, masked: bool = False) -> Reference:
    def run(a: int, b: int, c: int) -> int:
        both = zip(fields(a, count, signed=False), fields(b, count, signed=False), strict=True)
        return c + (sum(abs(x - y) for x, y in both if y or not masked) << shift)

    return run


def pairs(run: Callable[[int, int], int]) -> Reference:
    """Of the halves of two registers, as unsigned integers."""

    def both(a: int, b: int) -> int:
        return packed(run(a & 0xFFFF, b & 0xFFFF), run(a >> 16, b >> 16))

    return both


def triples(run: Callable[[int, int, int], int]) -> Reference:
    def both(a: int, b: int, c: int) -> int:
        return packed(run(a & 0xFFFF, b & 0xFFFF, c & 0xFFFF), run(a >> 16, b >> 16, c >> 16))

    return both


def multiplied_and_added(a: int, b: int, c: int) -> int:
    return a * b + c


def median(a: int, b: int, c: int) -> int:
    return sorted((a, b, c))[1]


def saturated(a: int) -> int:
    return sum(min(max(each, 0), 255) << 8 * n for n, each in enumerate(fields(a, 2, signed=True)))


def to_i32(a: float, added: Fraction) -> int:
    """The floor of a sum, clamped."""
    return clamped(math.floor(Fraction(a) + added) if math.isfinite(a) else a, -(1 << 31), (1 << 31) - 1)


def averages(a: int, b: int, c: int) -> int:
    def one(at: int) -> int:
        x, y, z = (each >> at & 0xFF for each in (a, b, c))
        return (x + y + (z & 1)) >> 1

    return sum(one(at) << at for at in (0, 8, 16, 24))


def put(a: float, where: int, c: int) -> int:
    at = 8 * (where & 3)
    value = 0 if math.isnan(a) else round(min(max(a, 0.0), 255.0))
    return c & ~(0xFF << at) | value << at


def packed(low: int, high: int) -> int:
    return low & 0xFFFF | (high & 0xFFFF) << 16


def norm(most: int, least: int) -> Reference:
    def one(a: float) -> int:
        if math.isnan(a):
            return 0
        return round(min(max(Fraction(min(max(a, -2.0), 2.0)) * most, least), most))

    def both(a: float, b: float) -> int:
        return packed(one(a), one(b))

    return both


def middle(a: float, b: float, c: float) -> float:
    if any(map(math.isnan, (a, b, c))):
        return -larger(larger(-a, -b), -c)
    most = larger(larger(a, b), c)
    return larger(b, c) if most == a else larger(a, c) if most == b else larger(a, b)


def divided(quotient: float, below: float, above: float) -> float:
    sign = math.copysign(1, below) * math.copysign(1, above)
    if math.isnan(below) or math.isnan(above) or below == above == 0 or (math.isinf(below) and math.isinf(above)):
        return math.nan
    if below == 0 or math.isinf(above):
        return sign * math.inf
    if above == 0 or math.isinf(below):
        return sign * 0.0
    vanishes = math.frexp(above)[1] - math.frexp(below)[1] < -1075
    return sign * 0.0 if vanishes else math.copysign(quotient, sign)


# For each: kinds of the result and the sources, and the result of the sources. h, f, d: floats of 16, 32, 64 bits;
# w, s: integers of 16 bits without and with sign; u, i: of 32 bits.
CASES: dict[str, tuple[str, Reference]] = {
    "v_cvt_i32_f64": ("i=d", lambda a: clamped(a, -(1 << 31), (1 << 31) - 1)),
    "v_cvt_u32_f64": ("u=d", lambda a: clamped(a, 0, M32)),
    "v_cvt_f64_i32": ("d=i", float),
    "v_cvt_f64_u32": ("d=u", float),
    "v_cvt_f32_f64": ("f=d", lambda a: a),
    "v_cvt_f64_f32": ("d=f", lambda a: a),
    "v_trunc_f64": ("d=d", whole(math.trunc)),
    "v_ceil_f64": ("d=d", whole(math.ceil)),
    "v_rndne_f64": ("d=d", whole(round)),
    "v_floor_f64": ("d=d", whole(math.floor)),
    "v_rcp_f64": ("d=d", inverse),
    "v_rsq_f64": ("d=d", lambda a: inverse(root(a))),
    "v_sqrt_f64": ("d=d", root),
    "v_frexp_exp_i32_f64": ("i=d", exponent),
    "v_frexp_mant_f64": ("d=d", mantissa),
    "v_fract_f64": ("d=d", part(53)),
    "v_fmac_f64": ("d=dd", exact64),
    "v_fma_f64": ("d=ddd", exact64),
    "v_add_f64": ("d=dd", lambda a, b: a + b),
    "v_mul_f64": ("d=dd", times),
    "v_min_f64": ("d=dd", lambda a, b: -larger(-a, -b)),
    "v_max_f64": ("d=dd", larger),
    "v_ldexp_f64": ("d=di", power),
    "v_div_fixup_f64": ("d=ddd", divided),
    "v_fract_f32": ("f=f", part(24)),
    "v_frexp_exp_i32_f32": ("i=f", exponent),
    "v_frexp_mant_f32": ("f=f", mantissa),
    "v_cvt_rpi_i32_f32": ("i=f", lambda a: to_i32(a, Fraction(1, 2))),
    "v_cvt_flr_i32_f32": ("i=f", lambda a: to_i32(a, Fraction(0))),
    "v_mul_legacy_f32": ("f=ff", lambda a, b: 0.0 if a == 0 or b == 0 else a * b),
    "v_cvt_pknorm_i16_f32": ("u=ff", norm(32767, -32767)),
    "v_cvt_pknorm_u16_f32": ("u=ff", norm(65535, 0)),
    "v_cvt_f16_u16": ("h=w", float),
    "v_cvt_f16_i16": ("h=s", float),
    "v_cvt_u16_f16": ("w=h", lambda a: clamped(a, 0, 65535)),
    "v_cvt_i16_f16": ("s=h", lambda a: clamped(a, -32768, 32767)),
    "v_rcp_f16": ("h=h", inverse),
    "v_sqrt_f16": ("h=h", root),
    "v_rsq_f16": ("h=h", lambda a: inverse(root(a))),
    "v_log_f16": ("h=h", lambda a: math.log2(a) if a > 0 else (-math.inf if a == 0 else math.nan)),
    "v_exp_f16": ("h=h", lambda a: a if math.isnan(a) else 2.0**a if a < 100 else math.inf),
    "v_frexp_mant_f16": ("h=h", mantissa),
    "v_frexp_exp_i16_f16": ("s=h", exponent),
    "v_floor_f16": ("h=h", whole(math.floor)),
    "v_ceil_f16": ("h=h", whole(math.ceil)),
    "v_trunc_f16": ("h=h", whole(math.trunc)),
    "v_rndne_f16": ("h=h", whole(round)),
    "v_fract_f16": ("h=h", part(11)),
    "v_sin_f16": ("h=h", lambda a: math.sin(2 * math.pi * math.fmod(a, 1)) if math.isfinite(a) else math.nan),
    "v_cos_f16": ("h=h", lambda a: math.cos(2 * math.pi * math.fmod(a, 1)) if math.isfinite(a) else math.nan),
    "v_ffbh_i32": ("i=i", lambda a: -1 if a in {0, -1} else 32 - (a if a > 0 else ~a).bit_length()),
    "v_sat_pk_u8_i16": ("u=u", saturated),
    "v_mul_hi_i32_i24": ("i=uu", lambda a, b: (s32(a << 8 & M32) >> 8) * (s32(b << 8 & M32) >> 8) >> 32),
    "v_subrev_u16": ("w=ww", lambda a, b: b - a),
    "v_lshlrev_b16": ("w=ww", lambda a, b: b << (a & 15)),
    "v_lshrrev_b16": ("w=ww", lambda a, b: b >> (a & 15)),
    "v_ashrrev_i16": ("s=ws", lambda a, b: b >> (a & 15)),
    "v_ldexp_f16": ("h=hs", half_power),
    "v_mad_u32_u16": ("u=wwu", lambda a, b, c: a * b + c),
    "v_mad_i32_i16": ("i=ssi", lambda a, b, c: a * b + c),
    **{f"v_{name}3_{kind}": (f"{letter}={3 * letter}", run)
       for kind, letter in (("i16", "s"), ("u16", "w"))
       for name, run in (("min", min), ("max", max), ("med", median))},
    "v_min3_f16": ("h=hhh", lambda a, b, c: -larger(larger(-a, -b), -c)),
    "v_max3_f16": ("h=hhh", lambda a, b, c: larger(larger(a, b), c)),
    "v_med3_f16": ("h=hhh", middle),
    "v_mad_u16": ("w=www", lambda a, b, c: a * b + c),
    "v_mad_i16": ("s=sss", lambda a, b, c: a * b + c),
    "v_div_fixup_f16": ("h=hhh", divided),
    "v_add_i16": ("s=ss", lambda a, b: a + b),
    "v_sub_i16": ("s=ss", lambda a, b: a - b),
    "v_lerp_u8": ("u=uuu", averages),
    "v_sad_u8": ("u=uuu", differences(4)),
    "v_sad_hi_u8": ("u=uuu", differences(4, 16)),
    "v_sad_u16": ("u=uuu", differences(2)),
    "v_sad_u32": ("u=uuu", differences(1)),
    "v_msad_u8": ("u=uuu", differences(4, masked=True)),
    "v_cvt_pk_u8_f32": ("u=fuu", put),
    "v_cvt_pk_u16_u32": ("u=uu", lambda a, b: packed(min(a, 65535), min(b, 65535))),
    "v_cvt_pk_i16_i32": ("u=ii", lambda a, b: packed(*(min(max(each, -32768), 32767) for each in (a, b)))),
    "v_pk_mad_i16": ("u=uuu", triples(multiplied_and_added)),
    "v_pk_mad_u16": ("u=uuu", triples(multiplied_and_added)),
    "v_pk_mul_lo_u16": ("u=uu", pairs(lambda a, b: a * b)),
    "v_pk_add_i16": ("u=uu", pairs(lambda a, b: a + b)),
    "v_pk_sub_i16": ("u=uu", pairs(lambda a, b: a - b)),
    "v_pk_add_u16": ("u=uu", pairs(lambda a, b: a + b)),
    "v_pk_sub_u16": ("u=uu", pairs(lambda a, b: a - b)),
    "v_pk_lshlrev_b16": ("u=uu", pairs(lambda a, b: b << (a & 15))),
    "v_pk_lshrrev_b16": ("u=uu", pairs(lambda a, b: b >> (a & 15))),
    "v_pk_ashrrev_i16": ("u=uu", pairs(lambda a, b: s16(b) >> (a & 15))),
    "v_pk_max_i16": ("u=uu", pairs(lambda a, b: max(s16(a), s16(b)))),
    "v_pk_min_i16": ("u=uu", pairs(lambda a, b: min(s16(a), s16(b)))),
    "v_pk_max_u16": ("u=uu", pairs(max)),
    "v_pk_min_u16": ("u=uu", pairs(min)),
    "v_dot2_i32_i16": ("i=uui", dot(2, signed=True)),
    "v_dot2_u32_u16": ("u=uuu", dot(2, signed=False)),
    "v_dot4_i32_i8": ("i=uui", dot(4, signed=True)),
    "v_dot4_u32_u8": ("u=uuu", dot(4, signed=False)),
    "v_dot8_i32_i4": ("i=uui", dot(8, signed=True)),
    "v_dot8_u32_u4": ("u=uuu", dot(8, signed=False)),
}  # fmt: skip
