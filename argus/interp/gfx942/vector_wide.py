"""Vector arithmetic of f64, conversions from and to it included: VOP1, VOP2, VOP3 [MI300 ISA, "Instructions"].

The machine approximates reciprocals and roots of f64 to about 2 ** -27; they are rounded exactly here.
"""

from __future__ import annotations

import numpy as np

from argus.interp.gfx942.division import LONG, fixup, scale, steps
from argus.interp.gfx942.rounding import (
    F32,
    F64,
    fraction,
    frexp_exponent,
    frexp_mantissa,
    fused_wide,
    largest,
    least,
    to_integer,
)
from argus.interp.gfx942.row import Formula, Row, row
from argus.interp.gfx942.state import Array


def _one(name: str, number: int, signature: str, run: Formula) -> Row:
    return row(name, "VOP1", number, signature, run)


def _long(name: str, number: int, signature: str, run: Formula) -> Row:
    return row(name, "VOP3", number, signature, run)


def _scaled(value: Array, exponent: Array) -> Array:
    return np.ldexp(value, np.clip(exponent, -5000, 5000))


ROWS: tuple[Row, ...] = (
    _one("v_cvt_i32_f64", 3, "i32 = f64", lambda a: to_integer(a, np.int32)),
    _one("v_cvt_f64_i32", 4, "f64 = i32", lambda a: a.astype(F64)),
    _one("v_cvt_f32_f64", 15, "f32 = f64", lambda a: a.astype(F32)),
    _one("v_cvt_f64_f32", 16, "f64 = f32", lambda a: a.astype(F64)),
    _one("v_cvt_u32_f64", 21, "u32 = f64", lambda a: to_integer(a, np.uint32)),
    _one("v_cvt_f64_u32", 22, "f64 = u32", lambda a: a.astype(F64)),
    _one("v_trunc_f64", 23, "f64 = f64", np.trunc),
    _one("v_ceil_f64", 24, "f64 = f64", np.ceil),
    _one("v_rndne_f64", 25, "f64 = f64", np.rint),
    _one("v_floor_f64", 26, "f64 = f64", np.floor),
    _one("v_rcp_f64", 37, "f64 = f64", lambda a: 1 / a),
    _one("v_rsq_f64", 38, "f64 = f64", lambda a: 1 / np.sqrt(a)),
    _one("v_sqrt_f64", 40, "f64 = f64", np.sqrt),
    _one("v_frexp_exp_i32_f64", 48, "i32 = f64", frexp_exponent),
    _one("v_frexp_mant_f64", 49, "f64 = f64", frexp_mantissa),
    _one("v_fract_f64", 50, "f64 = f64", fraction),
    row("v_fmac_f64", "VOP2", 4, "f64 = f64 f64 old", fused_wide),
    _long("v_fma_f64", 460, "f64 = f64 f64 f64", fused_wide),
    _long("v_div_fixup_f64", 479, "f64 = f64 f64 f64", fixup(LONG)),
    _long("v_div_scale_f64", 481, "f64 mask = f64 f64 f64", scale(LONG)),
    _long("v_div_fmas_f64", 483, "f64 = f64 f64 f64 vcc", steps(LONG)),
    _long("v_add_f64", 640, "f64 = f64 f64", lambda a, b: a + b),
    _long("v_mul_f64", 641, "f64 = f64 f64", lambda a, b: a * b),
    _long("v_min_f64", 642, "f64 = f64 f64", least),
    _long("v_max_f64", 643, "f64 = f64 f64", largest),
    _long("v_ldexp_f64", 644, "f64 = f64 i32", _scaled),
)
