"""Vector arithmetic of floating point, conversions included: VOP1, VOP2, VOP3, VOP3P.

[MI300 ISA, chapter "Instructions".] Functions that the machine approximates (exponential, logarithm, reciprocal, roots,
sine) are rounded from f64: the machine may differ by an ulp.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from argus.interp.gfx942 import division
from argus.interp.gfx942.rounding import (
    F16,
    F32,
    approximate,
    fraction,
    frexp_exponent,
    frexp_mantissa,
    fused,
    largest,
    least,
    scaled,
    to_integer,
    toward_zero_f16,
)
from argus.interp.gfx942.row import Formula, Row, row
from argus.interp.gfx942.state import Array

U16, U32 = np.uint16, np.uint32


def _two(name: str, number: int, kind: str, run: Formula) -> Row:
    return row(name, "VOP2", number, f"{kind} = {kind} {kind}", run)


def _one(name: str, number: int, signature: str, run: Formula) -> Row:
    return row(name, "VOP1", number, signature, run)


def _middle(a: Array, b: Array, c: Array) -> Array:
    """The median; the least, if one is NaN."""
    ordered = largest(least(a, b), least(largest(a, b), c))
    nan = np.isnan(a) | np.isnan(b) | np.isnan(c)
    return np.where(nan, least(least(a, b), c), ordered)


def _fused_low(a: Array, b: Array, c: Array, old: Array) -> Array:
    return _fused_f16(a, b, c).view(U16).astype(U32) | old & U32(0xFFFF0000)


def _fused_high(a: Array, b: Array, c: Array, old: Array) -> Array:
    return _fused_f16(a, b, c).view(U16).astype(U32) << U32(16) | old & U32(0xFFFF)


def _packed_truncation(a: Array, b: Array) -> Array:
    low, high = (toward_zero_f16(each).view(U16).astype(U32) for each in (a, b))
    return low | high << U32(16)


def _packed_norm(kind: type[np.integer], least_: int, most: int) -> Callable[[Array, Array], Array]:
    """Two values of [-1, 1] or [0, 1] as whole parts of the largest integer."""

    def run(a: Array, b: Array) -> Array:
        low, high = (
            np.where(np.isnan(each), 0, np.clip(np.rint(each.astype(np.float64) * most), least_, most))
            for each in (a, b)
        )
        low, high = (each.astype(np.int64).astype(kind).view(U16).astype(U32) for each in (low, high))
        return low | high << U32(16)

    return run


def _fused_f16(a: Array, b: Array, c: Array) -> Array:
    return fused(a, b, c, F16)


def _turns(run: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return approximate(lambda a: run(2 * np.pi * (a - np.trunc(a))))


ROWS: tuple[Row, ...] = (
    _one("v_cvt_f32_i32", 5, "f32 = i32", lambda a: a.astype(F32)),
    _one("v_cvt_f32_u32", 6, "f32 = u32", lambda a: a.astype(F32)),
    _one("v_cvt_u32_f32", 7, "u32 = f32", lambda a: to_integer(a, U32)),
    _one("v_cvt_i32_f32", 8, "i32 = f32", lambda a: to_integer(a, np.int32)),
    _one("v_cvt_f16_f32", 10, "f16 = f32", lambda a: a.astype(F16)),
    _one("v_cvt_f32_f16", 11, "f32 = f16", lambda a: a.astype(F32)),
    _one("v_trunc_f32", 28, "f32 = f32", np.trunc),
    _one("v_ceil_f32", 29, "f32 = f32", np.ceil),
    _one("v_rndne_f32", 30, "f32 = f32", np.rint),
    _one("v_floor_f32", 31, "f32 = f32", np.floor),
    _one("v_fract_f32", 27, "f32 = f32", fraction),
    _one("v_frexp_exp_i32_f32", 51, "i32 = f32", frexp_exponent),
    _one("v_frexp_mant_f32", 52, "f32 = f32", frexp_mantissa),
    _one("v_cvt_rpi_i32_f32", 12, "i32 = f32", lambda a: to_integer(np.floor(a.astype(np.float64) + 0.5), np.int32)),
    _one("v_cvt_flr_i32_f32", 13, "i32 = f32", lambda a: to_integer(np.floor(a), np.int32)),
    _one("v_exp_f32", 32, "f32 = f32", approximate(np.exp2)),
    _one("v_log_f32", 33, "f32 = f32", approximate(np.log2)),
    _one("v_rcp_f32", 34, "f32 = f32", approximate(lambda a: 1 / a)),
    _one("v_rcp_iflag_f32", 35, "f32 = f32", approximate(lambda a: 1 / a)),
    _one("v_rsq_f32", 36, "f32 = f32", approximate(lambda a: 1 / np.sqrt(a))),
    _one("v_sqrt_f32", 39, "f32 = f32", approximate(np.sqrt)),
    _one("v_sin_f32", 41, "f32 = f32", _turns(np.sin)),
    _one("v_cos_f32", 42, "f32 = f32", _turns(np.cos)),
    _two("v_add_f32", 1, "f32", lambda a, b: a + b),
    _two("v_sub_f32", 2, "f32", lambda a, b: a - b),
    _two("v_subrev_f32", 3, "f32", lambda a, b: b - a),
    _two("v_mul_f32", 5, "f32", lambda a, b: a * b),
    _two("v_min_f32", 10, "f32", least),
    _two("v_max_f32", 11, "f32", largest),
    row("v_fmamk_f32", "VOP2", 23, "f32 = f32 k f32", fused),
    row("v_fmaak_f32", "VOP2", 24, "f32 = f32 f32 k", fused),
    _two("v_add_f16", 31, "f16", lambda a, b: a + b),
    _two("v_sub_f16", 32, "f16", lambda a, b: a - b),
    _two("v_subrev_f16", 33, "f16", lambda a, b: b - a),
    _two("v_mul_f16", 34, "f16", lambda a, b: a * b),
    _two("v_max_f16", 45, "f16", largest),
    _two("v_min_f16", 46, "f16", least),
    row("v_fmac_f32", "VOP2", 59, "f32 = f32 f32 old", fused),
    row("v_fma_f32", "VOP3", 459, "f32 = f32 f32 f32", fused),
    row("v_min3_f32", "VOP3", 464, "f32 = f32 f32 f32", lambda a, b, c: least(least(a, b), c)),
    row("v_max3_f32", "VOP3", 467, "f32 = f32 f32 f32", lambda a, b, c: largest(largest(a, b), c)),
    row("v_med3_f32", "VOP3", 470, "f32 = f32 f32 f32", _middle),
    row("v_div_fixup_f32", "VOP3", 478, "f32 = f32 f32 f32", division.fixup(division.SHORT)),
    row("v_div_scale_f32", "VOP3", 480, "f32 mask = f32 f32 f32", division.scale(division.SHORT)),
    row("v_div_fmas_f32", "VOP3", 482, "f32 = f32 f32 f32 vcc", division.steps(division.SHORT)),
    row("v_fma_f16", "VOP3", 518, "f16 = f16 f16 f16", _fused_f16),
    row("v_ldexp_f32", "VOP3", 648, "f32 = f32 i32", scaled),
    row("v_cvt_pknorm_i16_f32", "VOP3", 660, "b32 = f32 f32", _packed_norm(np.int16, -32767, 32767)),
    row("v_cvt_pknorm_u16_f32", "VOP3", 661, "b32 = f32 f32", _packed_norm(np.uint16, 0, 65535)),
    row("v_mul_legacy_f32", "VOP3", 673, "f32 = f32 f32", lambda a, b: np.where((a == 0) | (b == 0), F32(0), a * b)),
    row("v_cvt_pkrtz_f16_f32", "VOP3", 662, "b32 = f32 f32", _packed_truncation),
    row("v_pk_fma_f16", "VOP3P", 14, "v2f16 = v2f16 v2f16 v2f16", _fused_f16),
    row("v_pk_add_f16", "VOP3P", 15, "v2f16 = v2f16 v2f16", lambda a, b: a + b),
    row("v_pk_mul_f16", "VOP3P", 16, "v2f16 = v2f16 v2f16", lambda a, b: a * b),
    row("v_pk_min_f16", "VOP3P", 17, "v2f16 = v2f16 v2f16", least),
    row("v_pk_max_f16", "VOP3P", 18, "v2f16 = v2f16 v2f16", largest),
    row("v_fma_mix_f32", "VOP3P", 32, "f32 = mix mix mix", fused),
    row("v_fma_mixlo_f16", "VOP3P", 33, "b32 = mix mix mix old", _fused_low),
    row("v_fma_mixhi_f16", "VOP3P", 34, "b32 = mix mix mix old", _fused_high),
    row("v_pk_fma_f32", "VOP3P", 48, "v2f32 = v2f32 v2f32 v2f32", fused),
    row("v_pk_mul_f32", "VOP3P", 49, "v2f32 = v2f32 v2f32", lambda a, b: a * b),
    row("v_pk_add_f32", "VOP3P", 50, "v2f32 = v2f32 v2f32", lambda a, b: a + b),
)
