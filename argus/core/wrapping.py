"""Integers modulo 2^n: what a type of n bits makes of an integer, in rational numbers and in float64."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np

from argus.core.dtype import DTYPES

WRAPPED = "wrapped "
"""Begins the name of the function that wraps around in a type of integers, whose name follows."""
BITS = {f"{WRAPPED}{dtype}": dtype.bits for dtype in DTYPES if dtype.family == "int"}
"""The bits of the type, by the name of the function."""
_EXACT = 2.0**53
"""Integers below are exact in float64."""


def wrapped_exactly(value: Fraction, bits: int) -> Fraction:
    """What differs from the value by a multiple of 2^bits, from -2^(bits - 1) to 2^(bits - 1), exclusive."""
    half = 1 << (bits - 1)
    return value - (floor((value + half) / (2 * half)) << bits)


def wrapped(value: np.float64, bits: int) -> np.float64:
    """The same in float64; NaN where that may not have the value exactly."""
    period = 2.0**bits
    with np.errstate(all="ignore"):
        found = value - np.floor((value + period / 2) / period) * period
    return np.float64(np.where(np.abs(value) < _EXACT, found, np.nan))


def is_at_an_end(value: float, bits: int) -> bool:
    """Whether an integer next to the value may wrap around once more, or float64 has not all integers there."""
    half = 2.0 ** (bits - 1)
    return not abs(value) < _EXACT or half - abs((value + half) % (2 * half) - half) <= 1
