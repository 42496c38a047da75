"""Arithmetic of floating point as the machine rounds it, on NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from argus.interp.gfx942.state import Array

F16, F32, F64 = np.float16, np.float32, np.float64


def fused(a: Array, b: Array, c: Array, kind: type[np.floating] = F32) -> Array:
    """a * b + c, rounded once, for operands of at most 24 bits.

    The product is exact in f64. The sum is rounded there to odd (towards the last bit set), so that rounding it again
    does what rounding the exact sum does [Boldo and Melquiond 2008, "Emulation of FMA and correctly rounded sums"].
    """
    product = a.astype(F64) * b.astype(F64)
    return round_to_odd_sum(product, c.astype(F64)).astype(kind)


def round_to_odd_sum(left: Array, right: Array) -> Array:
    """The sum of f64 values, rounded to odd."""
    whole = left + right
    back = whole - left
    error = (left - (whole - back)) + (right - back)
    bits = np.ascontiguousarray(whole).view(np.int64)
    even = (bits & 1 == 0) & (error != 0) & np.isfinite(whole)
    step = np.where((error > 0) == (whole > 0), 1, -1)
    return np.where(even, bits + step, bits).view(F64)


def fused_wide(a: Array, b: Array, c: Array) -> Array:
    """a * b + c of f64, rounded once."""
    flat = [np.broadcast_to(each, np.broadcast_shapes(a.shape, b.shape, c.shape)).reshape(-1) for each in (a, b, c)]
    return np.array([_one_fused(*map(float, each)) for each in zip(*flat, strict=True)], F64).reshape(
        np.broadcast_shapes(a.shape, b.shape, c.shape)
    )


def _one_fused(a: float, b: float, c: float) -> float:
    if not all(map(np.isfinite, (a, b, c))) or (a * b == 0 and c == 0):
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    return float(exact) if exact else a * b + c


def largest(a: Array, b: Array) -> Array:
    """The larger one, +0 of two zeros; the other of a NaN."""
    return np.where(a == b, np.where(np.signbit(a), b, a), np.fmax(a, b))


def least(a: Array, b: Array) -> Array:
    """The smaller one, -0 of two zeros; the other of a NaN."""
    return np.where(a == b, np.where(np.signbit(a), a, b), np.fmin(a, b))


def flushed(value: Array) -> Array:
    """Subnormals as zeros of their sign."""
    return np.where(np.abs(value) < np.finfo(F32).tiny, np.copysign(F32(0), value), value)


def approximate(run: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A function that the machine computes within 1 ulp and without subnormals: rounded from f64 here."""
    return lambda a: flushed(run(flushed(a).astype(F64)).astype(F32)).astype(F32)


def toward_zero_f16(value: Array) -> Array:
    """f32 to f16, rounded towards zero."""
    near = value.astype(F16)
    beyond = np.abs(near.astype(F32)) > np.abs(value)
    bits = near.view(np.uint16)
    return np.where(beyond & np.isfinite(value), bits - np.uint16(1), bits).view(F16)


def to_integer(value: Array, kind: type[np.integer]) -> Array:
    """Truncated towards zero and clamped to the range; NaN gives 0."""
    bounds = np.iinfo(kind)
    wide = np.where(np.isnan(value), 0.0, np.trunc(value.astype(F64)))
    return np.clip(wide, bounds.min, bounds.max).astype(np.int64 if bounds.bits <= 32 else kind).astype(kind)


def scaled(value: Array, exponent: Array | int) -> Array:
    """value * 2 ** exponent of f32, rounded once."""
    steps = np.clip(exponent, -400, 400)
    return np.ldexp(value.astype(F64), steps).astype(F32)


def exponent_of(value: Array) -> Array:
    """The exponent field of f32."""
    return (value.view(np.uint32) >> np.uint32(23) & np.uint32(0xFF)).astype(np.int64)


def subnormal(value: Array) -> Array:
    return (value != 0) & (np.abs(value) < np.finfo(value.dtype).tiny)


def division_scale(a: Array, denominator: Array, numerator: Array) -> tuple[Array, Array]:
    """`v_div_scale_f32`: scales an operand of a division so that no step under- or overflows; whether to undo it.

    The ISA tests 1 / denominator for a subnormal of f64, which that of an f32 never is. A subnormal of f32 is meant,
    and a large denominator is scaled down: only so is the quotient right, and `division_steps` undoes it.
    """
    a, denominator, numerator = np.broadcast_arrays(a, denominator, numerator)
    up, down = scaled(a, 64), scaled(a, -64)
    inverse = 1.0 / denominator.astype(F64)
    quotient = (numerator.astype(F64) / denominator.astype(F64)).astype(F32)
    tiny_inverse, tiny_quotient = np.abs(inverse) < np.finfo(F32).tiny, subnormal(quotient) | (quotient == 0)
    far = exponent_of(numerator) - exponent_of(denominator) >= 96
    of_denominator, of_numerator = a == denominator, a == numerator
    zero = (numerator == 0) | (denominator == 0)
    cases = [
        zero,
        far,
        subnormal(denominator),
        tiny_inverse & tiny_quotient,
        tiny_inverse,
        tiny_quotient,
        exponent_of(numerator) <= 23,
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
    return found.astype(F32), undone


def division_steps(a: Array, b: Array, c: Array, undo: Array) -> Array:
    """`v_div_fmas_f32`: undoes the scale of a quotient, which is large if the denominator was scaled up.

    The ISA prints a factor of 2 ** 32, which undoes none of the scales of `v_div_scale_f32`.
    """
    found = fused(a, b, c)
    undone = np.where(exponent_of(c) > 127, scaled(found, 64), scaled(found, -64))
    return np.where(undo, undone, found).astype(F32)


def division_fixup(quotient: Array, denominator: Array, numerator: Array) -> Array:
    """`v_div_fixup_f32`: the special cases of a division."""
    negative = np.signbit(denominator) ^ np.signbit(numerator)
    sign = np.where(negative, F32(-1), F32(1))
    invalid = (denominator == 0) & (numerator == 0) | np.isinf(denominator) & np.isinf(numerator)
    near = exponent_of(numerator) - exponent_of(denominator)
    return np.select(
        [
            np.isnan(numerator) | np.isnan(denominator) | invalid,
            (denominator == 0) | np.isinf(numerator),
            np.isinf(denominator) | (numerator == 0),
            near < -150,
            exponent_of(denominator) == 255,
        ],
        [
            np.full_like(quotient, np.nan),
            sign * F32(np.inf),
            sign * F32(0),
            sign * F32(0),
            sign * F32(np.inf),
        ],
        np.copysign(np.abs(quotient), sign),
    ).astype(F32)
