"""Signs and numbers by the shape of an expression, compared with values at random numbers."""

from __future__ import annotations

from fractions import Fraction

import pytest

from argus.core import algebra
from argus.core.values.atoms import Poly
from argus.core.values.conditions import not_negative, positive
from argus.core.values.expr import Expr, element, expr, fn, infinity
from argus.core.values.normal import Normaliser
from argus.core.values.numbers import above_zero, is_number, number_where, unscaled

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


MAXIMA: dict[str, tuple[Expr, bool, bool]] = {
    "with a number above 0": (fn("max", X, LEAST), True, True),
    "with 0": (fn("max", X, 0), False, True),
    "with a number below 0": (fn("max", X, -1), False, False),
    "with 0, and a number added": (fn("add", fn("max", X, 0), LEAST), True, True),
    "with a power, and an element less": (fn("sub", fn("max", X, fn("add", X, fn("exp", Y))), X), True, True),
    "times a number below 0": (fn("mul", fn("max", X, LEAST), -1), False, False),
}


@pytest.mark.parametrize("name", MAXIMA)
def test_the_sign_of_a_maximum_is_at_least_that_of_its_parts(name: str) -> None:
    of, above, least = MAXIMA[name]
    form = Normaliser().value(of)
    assert isinstance(form, Poly)
    assert (positive(form) == ()) == above
    assert (not_negative(form) == ()) == least
