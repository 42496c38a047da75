"""Numbers rounded to bf16, as a function on numbers: to 8 significant bits, ties to even."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from argus.core.dtype import bf16

_BITS = 8
_SINGLE = 4
"""Bytes of an element in single precision."""


def round_bf16(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The nearest number with 8 significant bits, in the operand's type.

    In single precision that is the nearest bf16, which has the same range of exponents. In double precision, in which
    claims are checked, exponents have no limit.
    """
    if x.dtype.itemsize <= _SINGLE:
        return x.astype(bf16.numpy).astype(x.dtype)
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.rint(np.ldexp(mantissa, _BITS)), exponent - _BITS)


def round_exactly(a: Fraction) -> Fraction:
    """The nearest number with 8 significant bits."""
    if not a:
        return a
    exponent = abs(a.numerator).bit_length() - a.denominator.bit_length()
    exponent -= abs(a) < Fraction(2) ** exponent  # so that 2^exponent <= |a| < 2^(exponent + 1)
    unit = Fraction(2) ** (exponent - _BITS + 1)
    return round(a / unit) * unit


def is_between(a: float, close: float) -> bool:
    """Whether a number is about as close to two such numbers."""
    scaled = np.ldexp(np.frexp(a)[0], _BITS)
    return bool(abs(scaled - np.floor(scaled) - 0.5) < close)
