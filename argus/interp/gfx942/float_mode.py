"""Floating point in another mode than the default one: directed rounding, subnormals as zeros.

[MI300 ISA, "Mode register".] MODE has the rounding of f32 in bits 1:0, of f16 and f64 in bits 3:2 (0 to nearest even, 1
towards +inf, 2 towards -inf, 3 towards zero); whether subnormal sources and results are kept in bits 5:4 and 7:6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from argus.interp.gfx942.rounding import F16, F32, F64, round_to_odd_sum
from argus.interp.gfx942.row import Row
from argus.interp.gfx942.state import Array
from argus.interp.gfx942.unmodelled import not_modelled

_NEAREST, _UP, _DOWN = 0, 1, 2
_KINDS: dict[str, Any] = {"f16": F16, "f32": F32}
_ROUNDED = frozenset({"fma", "fmac", "fmamk", "fmaak", "fma_mix", "fma_mixlo", "fma_mixhi"})
_ORDERS: dict[str, Callable[[Array, Array], tuple[Array, Array, Array]]] = {
    "add": lambda a, b: (a, _one(a), b),
    "sub": lambda a, b: (b, -_one(a), a),
    "subrev": lambda a, b: (a, -_one(a), b),
    "mul": lambda a, b: (a, b, -0.0 * _one(a)),
}
"""Sums, differences and products as a * b + c."""
_CONVERSIONS = frozenset(
    {"v_cvt_f16_f32", "v_cvt_f32_f64", "v_cvt_f32_i32", "v_cvt_f32_u32", "v_cvt_f16_i16", "v_cvt_f16_u16"}
)
_UNROUNDED = (
    "min", "max", "med", "cmp", "trunc", "floor", "ceil", "rndne", "fract", "frexp", "cvt_i", "cvt_u", "cvt_f32_f16",
    "cvt_f32_ubyte", "cvt_f64", "cvt_flr", "cvt_rpi", "cvt_pk", "exp", "log", "rcp", "rsq", "sqrt", "sin", "cos",
    "div_scale", "div_fixup", "cvt_f32_fp8", "cvt_f32_bf8",
)  # fmt: skip
"""Beginnings of the names of those that do not round, round in a way of their own, or are approximate."""


def _one(a: Array) -> Array:
    return np.ones((1,) * a.ndim, F64)


def flushed(label: str, mode: int, *, result: bool) -> Callable[[Array], Array] | None:
    """What makes subnormal values of an operand zeros of their sign; None if the mode keeps them, or for no float."""
    kind = "f32" if label in {"mix", "k"} else label.lstrip("v0123456789") if label.startswith("v") else label
    if not kind.startswith("f"):
        return None
    kept = mode >> (4 if kind == "f32" else 6) & (2 if result else 1)
    if kept:
        return None

    def run(value: Array) -> Array:
        tiny = np.finfo(value.dtype).tiny
        return np.where(np.abs(value) < tiny, np.copysign(value.dtype.type(0), value), value)

    return run


def rounding(row: Row, mode: int, address: int) -> Callable[..., Any]:
    """What an instruction computes in a mode. Raises ArgusError (E502) for a rounding that is not modelled."""
    label = row.results[0] if row.results else "mask"
    kind = label.lstrip("v0123456789") if label.startswith("v") else label
    chosen = mode & 3 if kind == "f32" else mode >> 2 & 3
    stem = row.name.removeprefix("v_").removeprefix("pk_")
    if chosen == _NEAREST or not kind.startswith("f") or stem.startswith(_UNROUNDED):
        return row.run
    if kind in _KINDS:
        operation = "cvt" if row.name in _CONVERSIONS else stem.rpartition("_")[0]
        if operation in _ORDERS:
            return _ordered(_ORDERS[operation], _KINDS[kind], chosen)
        if operation == "cvt" or operation in _ROUNDED:
            return _plain(_KINDS[kind], chosen)
    raise not_modelled(f"the rounding mode {chosen} of `{row.name}`", 0, 0, address)


def _ordered(
    order: Callable[[Array, Array], tuple[Array, Array, Array]],
    kind: npt.DTypeLike,
    mode: int,
) -> Callable[[Array, Array], Array]:
    return lambda a, b: _fused(*order(a.astype(F64), b.astype(F64)), kind, mode)


def _plain(kind: npt.DTypeLike, mode: int) -> Callable[..., Array]:
    """A conversion of one value, or a fused operation of three."""

    def run(a: Array, b: Array | None = None, c: Array | None = None) -> Array:
        if b is None or c is None:
            return directed(a.astype(F64), kind, mode)
        return _fused(a, b, c, kind, mode)

    return run


def _fused(a: Array, b: Array, c: Array, kind: npt.DTypeLike, mode: int) -> Array:
    product = a.astype(F64) * b.astype(F64)
    added = c.astype(F64)
    found = directed(round_to_odd_sum(*np.broadcast_arrays(product, added)), kind, mode)
    if mode == _DOWN:
        cancelled = (found == 0) & (np.signbit(product) != np.signbit(added))
        return np.where(cancelled, np.asarray(-0.0, kind), found)
    return found


def directed(value: Array, kind: npt.DTypeLike, mode: int) -> Array:
    """f64 values, exact or rounded to odd, in a narrower type."""
    near = value.astype(kind)
    wide = near.astype(F64)
    up, down = np.nextafter(near, np.asarray(np.inf, kind)), np.nextafter(near, np.asarray(-np.inf, kind))
    if mode == _UP:
        return np.where(wide < value, up, near)
    if mode == _DOWN:
        return np.where(wide > value, down, near)
    beyond = np.abs(wide) > np.abs(value)
    return np.where(beyond, np.where(value > 0, down, up), near)
