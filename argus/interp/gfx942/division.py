"""Division of floating point: the three instructions around the refinement of a reciprocal [MI300 ISA, VOP3]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import frozen

from argus.interp.gfx942.rounding import F32, F64, fused, fused_wide, subnormal
from argus.interp.gfx942.state import Array


@frozen
class Format:
    """far: the difference of exponents from which a quotient needs scales, powers of two of `step`. low: the greatest
    exponent field of a numerator that is scaled. least: the difference below which a quotient is zero.
    """

    kind: Any
    far: int
    step: int
    low: int
    least: int
    bias: int
    fused: Callable[[Array, Array, Array], Array]


SHORT = Format(F32, 96, 64, 23, -150, 127, fused)
LONG = Format(F64, 768, 128, 53, -1075, 1023, fused_wide)


def exponent_of(value: Array) -> Array:
    """The exponent field."""
    bits, mantissa, mask = (np.uint32, 23, 0xFF) if value.dtype == F32 else (np.uint64, 52, 0x7FF)
    return (value.view(bits) >> bits(mantissa) & bits(mask)).astype(np.int64)


def _scaled(form: Format, value: Array, exponent: int) -> Array:
    """value * 2 ** exponent, rounded once."""
    if form.kind == F32:
        return np.ldexp(value.astype(F64), exponent).astype(F32)
    return np.ldexp(value, exponent)


def scale(form: Format) -> Callable[[Array, Array, Array], tuple[Array, Array]]:
    """`v_div_scale`: scales an operand of a division so that no step under- or overflows; whether to undo it.

    The ISA tests 1 / denominator for a subnormal of f64, which that of an f32 never is. A subnormal of f32 is meant,
    and a large denominator is scaled down: only so is the quotient right, and `steps` undoes it.
    """

    def run(a: Array, denominator: Array, numerator: Array) -> tuple[Array, Array]:
        a, denominator, numerator = (
            np.ascontiguousarray(each) for each in np.broadcast_arrays(a, denominator, numerator)
        )
        up, down = _scaled(form, a, form.step), _scaled(form, a, -form.step)
        tiny = np.finfo(form.kind).tiny
        inverse = 1.0 / denominator.astype(F64)
        quotient = (numerator.astype(F64) / denominator.astype(F64)).astype(form.kind)
        tiny_inverse, tiny_quotient = np.abs(inverse) < tiny, subnormal(quotient) | (quotient == 0)
        far = exponent_of(numerator) - exponent_of(denominator) >= form.far
        of_denominator, of_numerator = a == denominator, a == numerator
        zero = (numerator == 0) | (denominator == 0)
        cases = [
            zero,
            far,
            subnormal(denominator),
            tiny_inverse & tiny_quotient,
            tiny_inverse,
            tiny_quotient,
            exponent_of(numerator) <= form.low,
        ]
        found = np.select(
            cases,
            [
                np.full_like(a, np.nan),
                np.where(of_denominator, up, a),
                up,
                np.where(of_denominator, down, a),
                down,
                np.where(of_numerator, up, a),
                up,
            ],
            a,
        )
        undone = ~zero & (far | ~subnormal(denominator) & tiny_quotient)
        return found.astype(form.kind), undone

    return run


def steps(form: Format) -> Callable[[Array, Array, Array, Array], Array]:
    """`v_div_fmas`: undoes the scale of a quotient, which is large if the denominator was scaled up.

    The ISA prints a factor of 2 ** 32 for f32, which undoes none of the scales of `v_div_scale_f32`.
    """

    def run(a: Array, b: Array, c: Array, undo: Array) -> Array:
        found = form.fused(a, b, c)
        large = exponent_of(np.ascontiguousarray(c)) > form.bias
        undone = np.where(large, _scaled(form, found, form.step), _scaled(form, found, -form.step))
        return np.where(undo, undone, found).astype(form.kind)

    return run


def fixup(form: Format) -> Callable[[Array, Array, Array], Array]:
    """`v_div_fixup`: the special cases of a division."""

    def run(quotient: Array, denominator: Array, numerator: Array) -> Array:
        below, beyond = (exponent_of(np.ascontiguousarray(each)) for each in (denominator, numerator))
        return special(quotient, denominator, numerator, beyond - below < form.least)

    return run


def special(quotient: Array, denominator: Array, numerator: Array, vanishes: Array) -> Array:
    """A quotient, or what the division of zeros, infinities and NaN gives. vanishes: where it is zero otherwise."""
    sign = np.ones(quotient.shape, quotient.dtype)
    sign[...] = np.where(np.signbit(denominator) ^ np.signbit(numerator), -1, 1)
    invalid = (denominator == 0) & (numerator == 0) | np.isinf(denominator) & np.isinf(numerator)
    found: Array = np.select(
        [
            np.isnan(numerator) | np.isnan(denominator) | invalid,
            (denominator == 0) | np.isinf(numerator),
            np.isinf(denominator) | (numerator == 0) | vanishes,
        ],
        [np.full_like(quotient, np.nan), sign * np.inf, sign * 0],
        np.copysign(np.abs(quotient), sign),
    )
    return found.astype(quotient.dtype)


def fixup_half(quotient: Array, denominator: Array, numerator: Array) -> Array:
    """`v_div_fixup_f16`, whose quotient comes from f32."""
    return special(quotient, denominator, numerator, np.zeros(quotient.shape, np.bool_))
