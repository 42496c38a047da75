"""`fma` rounds once, as the hardware does; so does `rsqrt`."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from argus.core.dtype import DType, bf16, f16
from argus.core.elementwise import ELEMENT_OPS


def nearest(exact: Fraction) -> np.float32:
    """The number of single precision that is nearest, of two that are, the even one."""
    near = np.float32(float(exact))
    around = [np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf))]
    return min(around, key=lambda x: (abs(Fraction(float(x)) - exact), int(x.view(np.uint32)) & 1))


def test_a_product_is_added_with_one_rounding() -> None:
    draw = np.random.default_rng(0)
    a, b = (draw.standard_normal(2000).astype(np.float32) for _ in range(2))
    # Sums near half a unit of the product's last place are where two roundings differ from one.
    c = (a.astype(np.float64) * b * 2.0 ** draw.integers(-30, 30, 2000)).astype(np.float32)

    found = ELEMENT_OPS["fma"].meaning(a, b, c)

    exact = [
        nearest(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))) for x, y, z in zip(a, b, c, strict=True)
    ]
    assert found.dtype == np.float32
    assert np.array_equal(found, np.array(exact))


def test_two_roundings_would_differ() -> None:
    """1 + 2^-24 lies between two numbers, and a product a little larger than 2^-24 decides."""
    tiny = np.float32(2.0**-12)
    a, b, c = np.array([tiny]), np.array([tiny * np.float32(1 + 2.0**-23)]), np.ones(1, np.float32)
    assert ELEMENT_OPS["fma"].meaning(a, b, c)[0] == np.float32(1 + 2.0**-23)


@pytest.mark.parametrize(
    ("operands", "result"), [((np.inf, 0.0, 1.0), np.nan), ((np.inf, 2.0, 1.0), np.inf), ((0.0, -1.0, 0.0), 0.0)]
)
def test_what_is_not_finite_stays_so(operands: tuple[float, float, float], result: float) -> None:
    given = [np.array([each], np.float32) for each in operands]
    with np.errstate(invalid="ignore"):
        assert np.array_equal(ELEMENT_OPS["fma"].meaning(*given), np.array([result], np.float32), equal_nan=True)


@pytest.mark.parametrize("dtype", [f16, bf16])
def test_one_over_a_root_of_16_bits_is_rounded_once(dtype: DType) -> None:
    numbers = np.arange(1, 65)

    found = ELEMENT_OPS["rsqrt"].meaning(numbers.astype(dtype.numpy))

    assert found.dtype == dtype.numpy
    assert np.array_equal(found, (1 / np.sqrt(numbers)).astype(dtype.numpy))
    assert not np.array_equal(found, np.reciprocal(np.sqrt(numbers.astype(dtype.numpy))))
