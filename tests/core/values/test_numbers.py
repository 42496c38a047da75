"""Signs and numbers by the shape of an expression, such as that of a scale."""

from __future__ import annotations

from fractions import Fraction

import pytest

from argus.core import algebra
from argus.core.values.expr import Expr, element, expr, fn, infinity
from argus.core.values.numbers import above_zero, at_least_zero, is_number, number_where, unscaled

X, Y = element("X", algebra.const(0)), element("Y", algebra.const(0))
LEAST = expr(Fraction(1, 8))

SCALES: dict[str, tuple[Expr, bool]] = {
    "a number": (LEAST, True),
    "a number below 0": (expr(-1), False),
    "a number kept above 0": (fn("max", X, LEAST), True),
    "one of two numbers above 0": (fn("min", fn("exp", X), LEAST), True),
    "one that may be below 0": (fn("min", X, LEAST), False),
    "a maximum with 0": (fn("max", X, 0), False),
    "a power": (fn("exp2", X), True),
    "a product of both": (fn("mul", fn("exp", X), fn("max", Y, 1)), True),
    "an element": (X, False),
    "infinity": (infinity(1), False),
}


@pytest.mark.parametrize("name", SCALES)
def test_scales_are_numbers_above_0(name: str) -> None:
    scale, known = SCALES[name]
    masked = infinity(-1)
    assert unscaled(fn("mul", masked, scale)) is (masked if known else None)
    assert unscaled(fn("mul", scale, masked)) is (masked if known else None)
    assert unscaled(fn("div", masked, scale)) is (masked if known else None)
    assert (number_where(fn("mul", masked, scale)) == ()) == known
    assert (is_number(scale) and above_zero(scale) == ()) == known


def test_parts_that_are_shared_are_read_once() -> None:
    """Read once for each use, 60 rounds would take 2^60 steps."""
    shared = fn("exp", X)
    for _ in range(60):
        shared = fn("add", fn("max", shared, Y), fn("exp", fn("add", shared, Y)))
    known = [of(shared) == (algebra.TRUE,) for of in (above_zero, at_least_zero)]
    assert known == [True, True]
