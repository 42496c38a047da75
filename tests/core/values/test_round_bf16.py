"""Rounding to bf16 as a function of formulas: its numbers, its value of 0, and that parts sum to what they are of."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from argus.core import algebra
from argus.core.elementwise import ELEMENT_OPS
from argus.core.index import Symbol
from argus.core.rounding import is_between, round_bf16, round_exactly
from argus.core.values.equality import Equal, equal
from argus.core.values.expr import Expr, choose, element, expr, fn, reduce_

K, k = Symbol("K", "size", 0, 1 << 20), Symbol("k", "fresh", 0)


def test_it_is_the_nearest_bf16() -> None:
    x = np.random.default_rng(0).standard_normal(2000).astype(np.float32)
    x = np.concatenate(
        [x, x * np.float32(2.0**-70), np.array([0, -0.0, 1.00390625, 1.01171875, np.inf, np.nan], np.float32)]
    )
    nearest = x.astype(ml_dtypes.bfloat16).astype(np.float32)
    for given in (x, x.astype(np.float64)):
        assert np.array_equal(round_bf16(given), nearest, equal_nan=True)
    assert all(round_exactly(Fraction(float(a))) == Fraction(float(b)) for a, b in zip(x[:-2], nearest, strict=False))
    assert ELEMENT_OPS["round_bf16"].meaning(x).dtype == np.float32


@pytest.mark.parametrize(("a", "found"), [(1 + 2.0**-8, True), (1 + 3 * 2.0**-8, True), (1.0, False), (1.003, False)])
def test_numbers_between_two_are_known(a: float, found: bool) -> None:
    assert is_between(a, 1e-9) is found


def parts(x: Expr) -> tuple[Expr, Expr, Expr]:
    high = fn("round_bf16", x)
    middle = fn("round_bf16", fn("sub", x, high))
    return high, middle, fn("sub", fn("sub", x, high), middle)


def total(body: Expr, high: algebra.IndexLike) -> Expr:
    return reduce_("sum", k, 0, high, body)


def test_parts_sum_to_the_operand_and_pairs_to_the_product() -> None:
    a, b = (element(name, algebra.sym(k)) for name in "AB")
    held = expr(0)
    for one in parts(a):
        for other in parts(b):
            held = fn("add", held, fn("mul", one, other))
    assert isinstance(equal(total(held, algebra.sym(K)), total(fn("mul", a, b), algebra.sym(K))), Equal)
    missing = fn("sub", held, fn("mul", parts(a)[2], parts(b)[2]))
    assert not isinstance(equal(total(missing, algebra.sym(K)), total(fn("mul", a, b), algebra.sym(K))), Equal)


def test_it_is_0_of_padding_and_no_identity() -> None:
    here = algebra.sym(k)
    padded = choose(algebra.lt(here, algebra.sym(K)), element("A", here), 0)
    longer = algebra.add(algebra.sym(K), 7)
    rounded = total(fn("round_bf16", padded), longer)
    assert isinstance(equal(rounded, total(fn("round_bf16", element("A", here)), algebra.sym(K))), Equal)
    assert not isinstance(equal(rounded, total(element("A", here), algebra.sym(K))), Equal)
