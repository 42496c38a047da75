"""Bit patterns of results, and digests of them that machines can compare."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[Any]
LARGEST_NUMBERS = {"bf16": 0x7F80, "f16": 0x7C00, "f32": 0x7F80_0000, "e4m3": 0x7E}
"""Bit patterns above these, ignoring the sign, are NaN."""


def words_of(values: Words) -> Words:
    """The bit patterns of numbers, as integers of their width."""
    return np.ascontiguousarray(values).view(np.dtype(f"i{values.dtype.itemsize}"))


def is_nan(words: Words, dtype: str) -> npt.NDArray[np.bool_]:
    """Which bit patterns of a type are NaN."""
    sign = 1 << (8 * words.dtype.itemsize - 1)
    return (words.astype(np.int64) & (sign - 1)) > LARGEST_NUMBERS[dtype]


def digest(dtype: str, words: Words) -> str:
    """A digest of bit patterns in which all NaNs are one."""
    return sha256(np.where(is_nan(words, dtype), -1, words).astype(words.dtype).tobytes()).hexdigest()[:16]
