"""Vector arithmetic of 16-bit elements, single and packed, sums of products, and sums of differences.

[MI300 ISA, "Instructions": VOP1, VOP2, VOP3, VOP3P.] Functions that the machine approximates are rounded from f64.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from argus.interp.gfx942.division import fixup_half
from argus.interp.gfx942.rounding import (
    F16,
    F32,
    F64,
    fraction,
    frexp_exponent,
    frexp_mantissa,
    fused,
    largest,
    least,
    to_integer,
)
from argus.interp.gfx942.row import Formula, Row, row
from argus.interp.gfx942.state import Array

U16, I16, U32, I32, I64 = np.uint16, np.int16, np.uint32, np.int32, np.int64


def _one(name: str, number: int, signature: str, run: Formula) -> Row:
    return row(name, "VOP1", number, signature, run)


def _two(name: str, number: int, signature: str, run: Formula) -> Row:
    return row(name, "VOP2", number, signature, run)


def _long(name: str, number: int, signature: str, run: Formula) -> Row:
    return row(name, "VOP3", number, signature, run)


def _rounded(run: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda a: run(a.astype(F64)).astype(F16)


def _turns(run: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return _rounded(lambda a: run(2 * np.pi * (a - np.trunc(a))))


def _low(a: Array) -> Array:
    return a & a.dtype.type(15)


def _middle(a: Array, b: Array, c: Array) -> Array:
    return np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))


def _middle_float(a: Array, b: Array, c: Array) -> Array:
    """The median; the least, if one is NaN."""
    ordered = largest(least(a, b), least(largest(a, b), c))
    nan = np.isnan(a) | np.isnan(b) | np.isnan(c)
    return np.where(nan, least(least(a, b), c), ordered)


def _clamped(kind: npt.DTypeLike) -> Callable[[Array, Array], Array]:
    """Two integers clamped to 16 bits, in one register."""
    bounds = np.iinfo(kind)

    def run(a: Array, b: Array) -> Array:
        low, high = (np.clip(each, bounds.min, bounds.max).astype(kind).view(U16).astype(U32) for each in (a, b))
        return low | high << U32(16)

    return run


def _parts(a: Array, count: int, signed: bool) -> list[Array]:
    """A register as so many integers."""
    bits = 32 // count
    shift = I64(64 - bits)
    wide = a.astype(np.uint32).astype(I64)
    found = [(wide >> I64(bits * number) & I64((1 << bits) - 1)) for number in range(count)]
    return [(each << shift) >> shift for each in found] if signed else found


def _products(count: int, signed: bool) -> Callable[[Array, Array, Array], Array]:
    def run(a: Array, b: Array, c: Array) -> Array:
        total = c.astype(I64)
        for left, right in zip(_parts(a, count, signed), _parts(b, count, signed), strict=True):
            total = total + left * right
        return total.astype(I32) if signed else total.astype(U32)

    return run


def _float_products(a: Array, b: Array, c: Array) -> Array:
    """The machine rounds in an order that AMD does not publish; in f64, and rounded once here."""
    left, right = a.astype(F64), b.astype(F64)
    return (left[0] * right[0] + left[1] * right[1] + c).astype(F32)


def _differences(count: int, shift: int = 0, masked: bool = False) -> Callable[[Array, Array, Array], Array]:
    """c plus the absolute differences of parts, shifted; with `masked`, of those parts of b that are not 0."""

    def run(a: Array, b: Array, c: Array) -> Array:
        total = np.zeros(np.broadcast_shapes(a.shape, b.shape), I64)
        for left, right in zip(_parts(a, count, signed=False), _parts(b, count, signed=False), strict=True):
            total = total + np.where((right != 0) | (not masked), np.abs(left - right), 0)
        return (c.astype(I64) + (total << I64(shift))).astype(U32)

    return run


def _averages(a: Array, b: Array, c: Array) -> Array:
    """`v_lerp_u8`: (a + b + the low bit of c) / 2 of each byte."""
    found = np.zeros(np.broadcast_shapes(a.shape, b.shape, c.shape), I64)
    for number, (x, y, z) in enumerate(zip(*(_parts(each, 4, signed=False) for each in (a, b, c)), strict=True)):
        found = found | (x + y + (z & I64(1))) >> I64(1) << I64(8 * number)
    return found.astype(U32)


def _put_byte(a: Array, where: Array, c: Array) -> Array:
    """`v_cvt_pk_u8_f32`: a float as a byte of c."""
    value = np.where(np.isnan(a), 0.0, np.clip(np.rint(a.astype(F64)), 0, 255)).astype(U32)
    shift = (where & U32(3)) * U32(8)
    return (c & ~(U32(0xFF) << shift)) | value << shift


def _packed_fused(a: Array, b: Array, c: Array) -> Array:
    shape = np.broadcast_shapes(a.shape, b.shape, c.shape)
    left, right, added = (np.ascontiguousarray(np.broadcast_to(each, shape)).view(F16) for each in (a, b, c))
    found: Array = fused(left, right, added, F16)
    return found.view(U32)


def _saturated_bytes(a: Array) -> Array:
    low, high = (np.clip(each, 0, 255).astype(U32) for each in _parts(a, 2, signed=True))
    return low | high << U32(8)


def _integers(name: str, first: int, kind: str) -> tuple[Row, ...]:
    """Least, greatest and median of three; `first` is the opcode of the least, each three further."""
    signature = f"{kind} = {kind} {kind} {kind}"
    return (
        _long(f"v_min3_{name}", first, signature, lambda a, b, c: np.minimum(np.minimum(a, b), c)),
        _long(f"v_max3_{name}", first + 3, signature, lambda a, b, c: np.maximum(np.maximum(a, b), c)),
        _long(f"v_med3_{name}", first + 6, signature, _middle),
    )


def _pairs(name: str, number: int, kind: str, run: Formula) -> Row:
    return row(f"v_pk_{name}", "VOP3P", number, f"v2{kind} = v2{kind} v2{kind}", run)


_SINGLE: tuple[Row, ...] = (
    _one("v_cvt_f16_u16", 57, "f16 = u16", lambda a: a.astype(F16)),
    _one("v_cvt_f16_i16", 58, "f16 = i16", lambda a: a.astype(F16)),
    _one("v_cvt_u16_f16", 59, "u16 = f16", lambda a: to_integer(a, U16)),
    _one("v_cvt_i16_f16", 60, "i16 = f16", lambda a: to_integer(a, I16)),
    _one("v_rcp_f16", 61, "f16 = f16", _rounded(lambda a: 1 / a)),
    _one("v_sqrt_f16", 62, "f16 = f16", _rounded(np.sqrt)),
    _one("v_rsq_f16", 63, "f16 = f16", _rounded(lambda a: 1 / np.sqrt(a))),
    _one("v_log_f16", 64, "f16 = f16", _rounded(np.log2)),
    _one("v_exp_f16", 65, "f16 = f16", _rounded(np.exp2)),
    _one("v_frexp_mant_f16", 66, "f16 = f16", frexp_mantissa),
    _one("v_frexp_exp_i16_f16", 67, "i16 = f16", lambda a: frexp_exponent(a).astype(I16)),
    _one("v_floor_f16", 68, "f16 = f16", np.floor),
    _one("v_ceil_f16", 69, "f16 = f16", np.ceil),
    _one("v_trunc_f16", 70, "f16 = f16", np.trunc),
    _one("v_rndne_f16", 71, "f16 = f16", np.rint),
    _one("v_fract_f16", 72, "f16 = f16", fraction),
    _one("v_sin_f16", 73, "f16 = f16", _turns(np.sin)),
    _one("v_cos_f16", 74, "f16 = f16", _turns(np.cos)),
    _one("v_sat_pk_u8_i16", 79, "b32 = u32", _saturated_bytes),
    _two("v_subrev_u16", 40, "u16 = u16 u16", lambda a, b: b - a),
    _two("v_lshlrev_b16", 42, "u16 = u16 u16", lambda a, b: b << _low(a)),
    _two("v_lshrrev_b16", 43, "u16 = u16 u16", lambda a, b: b >> _low(a)),
    _two("v_ashrrev_i16", 44, "i16 = i16 i16", lambda a, b: b >> _low(a)),
    _two("v_ldexp_f16", 51, "f16 = f16 i16", lambda a, b: np.ldexp(a.astype(F64), b.astype(I32)).astype(F16)),
    _long("v_mad_u32_u16", 497, "u32 = u16 u16 u32", lambda a, b, c: a.astype(U32) * b.astype(U32) + c),
    _long("v_mad_i32_i16", 498, "i32 = i16 i16 i32", lambda a, b, c: a.astype(I32) * b.astype(I32) + c),
    *_integers("i16", 501, "i16"),
    *_integers("u16", 502, "u16"),
    _long("v_min3_f16", 500, "f16 = f16 f16 f16", lambda a, b, c: least(least(a, b), c)),
    _long("v_max3_f16", 503, "f16 = f16 f16 f16", lambda a, b, c: largest(largest(a, b), c)),
    _long("v_med3_f16", 506, "f16 = f16 f16 f16", _middle_float),
    _long("v_mad_u16", 516, "u16 = u16 u16 u16", lambda a, b, c: a * b + c),
    _long("v_mad_i16", 517, "i16 = i16 i16 i16", lambda a, b, c: a * b + c),
    _long("v_div_fixup_f16", 519, "f16 = f16 f16 f16", fixup_half),
    _long("v_add_i16", 670, "i16 = i16 i16", lambda a, b: a + b),
    _long("v_sub_i16", 671, "i16 = i16 i16", lambda a, b: a - b),
)
_OF_PARTS: tuple[Row, ...] = (
    _long("v_lerp_u8", 461, "u32 = u32 u32 u32", _averages),
    _long("v_sad_u8", 473, "u32 = u32 u32 u32", _differences(4)),
    _long("v_sad_hi_u8", 474, "u32 = u32 u32 u32", _differences(4, shift=16)),
    _long("v_sad_u16", 475, "u32 = u32 u32 u32", _differences(2)),
    _long("v_sad_u32", 476, "u32 = u32 u32 u32", _differences(1)),
    _long("v_cvt_pk_u8_f32", 477, "u32 = f32 u32 u32", _put_byte),
    _long("v_msad_u8", 484, "u32 = u32 u32 u32", _differences(4, masked=True)),
    _long("v_cvt_pk_u16_u32", 663, "b32 = u32 u32", _clamped(U16)),
    _long("v_cvt_pk_i16_i32", 664, "b32 = i32 i32", _clamped(I16)),
)
_PACKED: tuple[Row, ...] = (
    row("v_pk_mad_i16", "VOP3P", 0, "v2i16 = v2i16 v2i16 v2i16", lambda a, b, c: a * b + c),
    _pairs("mul_lo_u16", 1, "u16", lambda a, b: a * b),
    _pairs("add_i16", 2, "i16", lambda a, b: a + b),
    _pairs("sub_i16", 3, "i16", lambda a, b: a - b),
    _pairs("lshlrev_b16", 4, "u16", lambda a, b: b << _low(a)),
    _pairs("lshrrev_b16", 5, "u16", lambda a, b: b >> _low(a)),
    _pairs("ashrrev_i16", 6, "i16", lambda a, b: b >> _low(a)),
    _pairs("max_i16", 7, "i16", np.maximum),
    _pairs("min_i16", 8, "i16", np.minimum),
    row("v_pk_mad_u16", "VOP3P", 9, "v2u16 = v2u16 v2u16 v2u16", lambda a, b, c: a * b + c),
    _pairs("add_u16", 10, "u16", lambda a, b: a + b),
    _pairs("sub_u16", 11, "u16", lambda a, b: a - b),
    _pairs("max_u16", 12, "u16", np.maximum),
    _pairs("min_u16", 13, "u16", np.minimum),
    row("v_dot2_f32_f16", "VOP3P", 35, "f32 = v2f16 v2f16 f32", _float_products),
    row("v_dot2_i32_i16", "VOP3P", 38, "i32 = u32 u32 i32", _products(2, signed=True)),
    row("v_dot2_u32_u16", "VOP3P", 39, "u32 = u32 u32 u32", _products(2, signed=False)),
    row("v_dot4_i32_i8", "VOP3P", 40, "i32 = u32 u32 i32", _products(4, signed=True)),
    row("v_dot4_u32_u8", "VOP3P", 41, "u32 = u32 u32 u32", _products(4, signed=False)),
    row("v_dot8_i32_i4", "VOP3P", 42, "i32 = u32 u32 i32", _products(8, signed=True)),
    row("v_dot8_u32_u4", "VOP3P", 43, "u32 = u32 u32 u32", _products(8, signed=False)),
    row("v_pk_fmac_f16", "VOP2", 60, "b32 = b32 b32 old", _packed_fused),
    row("v_pk_mov_b32", "VOP3P", 51, "v2b32 = v2b32 v2b32", lambda a, b: np.stack(np.broadcast_arrays(a[0], b[0]))),
)


ROWS: tuple[Row, ...] = (*_SINGLE, *_OF_PARTS, *_PACKED)
