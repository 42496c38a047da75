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
    """a * b + c of f64, rounded once: by error-free transformations, or in fractions where these may not hold
    [Boldo and Melquiond 2008, algorithm 5].
    """
    a, b, c = (np.ascontiguousarray(each) for each in np.broadcast_arrays(a, b, c))
    product, low = _exact_product(a, b)
    sum_, rest = _exact_sum(c, low)
    high, error = _exact_sum(product, sum_)
    found = high + round_to_odd_sum(rest, error)
    sizes = [np.abs(each) for each in (a, b, c)]
    plain = (sizes[0] > 2.0**-400) & (sizes[0] < 2.0**400) & (sizes[1] > 2.0**-400) & (sizes[1] < 2.0**400)
    others = ~(plain & (sizes[2] > 2.0**-800) & (sizes[2] < 2.0**900))
    for place in zip(*np.nonzero(others), strict=True):
        found[place] = _one_fused(float(a[place]), float(b[place]), float(c[place]))
    return found


def _exact_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """A sum, and what rounding it left out [Knuth]."""
    whole = a + b
    back = whole - a
    return whole, (a - (whole - back)) + (b - back)


def _exact_product(a: Array, b: Array) -> tuple[Array, Array]:
    """A product, and what rounding it left out [Dekker]."""
    whole = a * b
    (left, left_low), (right, right_low) = _halves(a), _halves(b)
    return whole, ((left * right - whole) + left * right_low + left_low * right) + left_low * right_low


def _halves(a: Array) -> tuple[Array, Array]:
    """The upper 26 bits, and the others."""
    scaled_ = a * 134217729.0
    high = scaled_ - (scaled_ - a)
    return high, a - high


def _one_fused(a: float, b: float, c: float) -> float:
    if not all(map(np.isfinite, (a, b, c))) or (a * b == 0 and c == 0):
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(exact) if exact else a * b + c
    except OverflowError:
        return np.inf if exact > 0 else -np.inf


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


def subnormal(value: Array) -> Array:
    return (value != 0) & (np.abs(value) < np.finfo(value.dtype).tiny)


def fraction(value: Array) -> Array:
    """value - floor(value), below 1."""
    found = value - np.floor(value)
    return np.minimum(found, np.nextafter(value.dtype.type(1), value.dtype.type(0)))


def frexp_exponent(value: Array) -> Array:
    """The exponent of a value as a mantissa of [0.5, 1) times a power of two; 0 of infinities and NaN."""
    return np.where(np.isfinite(value), np.frexp(value)[1], 0).astype(np.int32)


def frexp_mantissa(value: Array) -> Array:
    return np.frexp(value)[0]
