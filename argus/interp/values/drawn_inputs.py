"""Contents of tensors that tell programs apart: floats that are random, one a row, distinct primes, or equal, and
integers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from argus.core.dtype import DType

Array = npt.NDArray[Any]
Kind = Literal["random", "one element a row", "primes", "few values"]
KINDS: tuple[Kind, ...] = ("random", "one element a row", "primes", "few values")
_DIGITS = {"f32": 12, "f16": 11, "bf16": 8, "e4m3": 4, "e4m3fnuz": 4, "e5m2fnuz": 3}
"""The binary digits of the primes that each type holds exactly."""
SMALL = 8
"""Integers of tensors that may hold indices are below this."""


def kind_of(draw: int) -> Kind:
    """The kind of floats of a draw."""
    return KINDS[draw % len(KINDS)]


def rounded_kind(draw: int) -> str:
    """The kind of floats of a draw whose numbers are to be rounded."""
    return "random, of unlike sizes" if draw % 2 else "random, near 1"


def drawn_floats(dtype: DType, shape: tuple[int, ...], random: np.random.Generator, draw: int) -> Array:
    """Values that the type holds exactly.

    Primes are distinct as far as the type has them, and scaled to less than 1, so that no exponential overflows. Of few
    values several are equal: which of them a kernel takes matters where it compares values for a place.
    """
    match kind_of(draw):
        case "random":
            return random.standard_normal(shape).astype(dtype.numpy)
        case "one element a row":
            return _sparse(shape, random).astype(dtype.numpy)
        case "primes":
            digits = _DIGITS.get(dtype.name, 4)
            known = _primes(1 << digits)
            places = random.permutation(int(np.prod(shape))) % len(known)
            return (known[places].reshape(shape) / (1 << digits)).astype(dtype.numpy)
        case "few values":
            return (random.integers(-1, 2, shape) / 2).astype(dtype.numpy)


def drawn_to_be_rounded(dtype: DType, shape: tuple[int, ...], random: np.random.Generator, draw: int) -> Array:
    """Values that the type holds exactly, and of which sums and narrower types lose digits.

    They have all the type's digits, and are of unlike sizes, up to 2^30 (2^8 in 16 bits, 2^2 in 8), or near 1.
    """
    digits, largest = _PRECISION.get(dtype.name, (4, 2))
    leading = 1 << (digits - 1)
    numbers = (random.integers(leading, 2 * leading, shape) | 1) / leading
    sizes = random.integers(-largest, largest + 1, shape) if draw % 2 else np.zeros(shape, np.int64)
    signs = random.choice((-1.0, 1.0), shape) if draw % 2 else np.ones(shape)
    return (signs * np.ldexp(numbers, sizes)).astype(dtype.numpy)


_PRECISION = {"f32": (24, 30), "f16": (11, 8), "bf16": (8, 8), "e4m3": (4, 2), "e4m3fnuz": (4, 2), "e5m2fnuz": (3, 2)}
"""The binary digits of each type's numbers, and the greatest exponent of those that are drawn."""


def drawn_integers(dtype: DType, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Small numbers, as of indices; of 8 bits, operands of products, every number of the type."""
    numbers = dtype.integers if dtype.bits == 8 else range(SMALL)
    return random.integers(numbers.start, numbers.stop, shape).astype(dtype.numpy)


def _sparse(shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """1 at one place of the last axis, 0 elsewhere."""
    found = np.zeros(shape, np.float64)
    if found.size:
        rows = found.reshape(-1, shape[-1])
        rows[np.arange(len(rows)), random.integers(0, shape[-1], len(rows))] = 1.0
    return found


@lru_cache
def _primes(below: int) -> npt.NDArray[np.int64]:
    """The odd primes below a bound, which no power of 2 makes equal."""
    sieve = np.ones(below, np.bool_)
    sieve[:2] = False
    for each in range(2, int(below**0.5) + 1):
        if sieve[each]:
            sieve[each * each :: each] = False
    return np.flatnonzero(sieve)[1:]
