"""The greatest number of an element type, of every type."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from argus.core.dtype import DTYPES, DType


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_greatest_number_is_in_the_type_and_the_next_is_not(dtype: DType) -> None:
    greatest = np.asarray(dtype.greatest, np.float64)
    rounded = greatest.astype(dtype.numpy).astype(np.float64)
    assert rounded == greatest
    assert dtype.holds(dtype.greatest)
    assert not dtype.holds(dtype.greatest * 2)
    if dtype.family == "float":
        every = np.arange(1 << min(dtype.bits, 16), dtype=np.uint32) << (dtype.bits - min(dtype.bits, 16))
        with np.errstate(all="ignore"):
            numbers = every.astype(f"u{dtype.bits // 8}").view(dtype.numpy).astype(np.float64)
        assert np.max(numbers, where=np.abs(numbers) < inf, initial=0.0) <= dtype.greatest
