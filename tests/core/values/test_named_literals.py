"""Literals that stand for multiples of log2(e) and ln(2): those that are their nearest floats, and no others."""

from __future__ import annotations

from fractions import Fraction
from math import log, log2, nextafter, pi

import numpy as np
import pytest

from argus.core.values.drawn import seeded
from argus.core.values.equality import near
from argus.core.values.evaluation import Evaluation
from argus.core.values.expr import Fn, element, expr, fn
from argus.core.values.named_literals import named_literals, rounded_literals

LOG2_E = 1 / log(2)
NAMED = [
    LOG2_E,
    LOG2_E / 8,
    -LOG2_E,
    0.3 * 10 * LOG2_E,
    log(2),
    float(np.float32(LOG2_E)),
    float(np.float32(log(2) / 4)),
]
PLAIN = [0.0, 1.0, 0.5, 1.44, 0.693, nextafter(LOG2_E, 2) + 1e-15, pi, log2(10), 1 / 3, 0.1, 1e-5]


def stands(value: float) -> bool:
    return bool(named_literals(fn("exp2", expr(Fraction(value))))[1])


@pytest.mark.parametrize("value", NAMED)
def test_nearest_floats_of_multiples_stand_for_them(value: float) -> None:
    found, words = named_literals(fn("exp2", fn("mul", element("X", 0), expr(Fraction(value)))))
    assert len(words) == 1
    assert isinstance(found, Fn)
    assert isinstance(found.args[0], Fn)
    exact = found.args[0].args[1]
    assert abs(float(Evaluation({}, seeded(1)).value(exact)) / value - 1) < 2**-23


@pytest.mark.parametrize("value", PLAIN)
def test_other_literals_stand_for_themselves(value: float) -> None:
    assert not stands(value)


def test_random_floats_stand_for_themselves() -> None:
    drawn = np.random.default_rng(20).uniform(-4, 4, 2000)
    assert not any(stands(float(value)) for value in drawn)
    assert not any(stands(float(value)) for value in drawn.astype(np.float32))


def test_outside_a_change_of_base_they_are_numbers() -> None:
    x, number = element("X", 0), expr(Fraction(LOG2_E))
    assert not named_literals(fn("sub", fn("mul", x, number), x))[1]
    assert named_literals(fn("mul", fn("log2", x), expr(Fraction(log(2)))))[1]


def test_rounding_of_constants_may_not_be_amplified() -> None:
    x, e, two = element("X", 0), expr(Fraction(LOG2_E)), expr(Fraction(log(2)))
    power = fn("exp2", fn("mul", x, e))
    gone = fn("sub", fn("mul", fn("mul", x, e), two), x)
    large = fn("exp2", fn("mul", gone, 10**25))
    assert near(rounded_literals(power), named_literals(power)[0])
    assert near(rounded_literals(fn("exp2", gone)), named_literals(fn("exp2", gone))[0])
    assert not near(rounded_literals(large), named_literals(large)[0])


def test_a_logarithm_plus_a_number_is_in_another_base_too() -> None:
    x, y, two = element("X", 0), element("Y", 0), expr(Fraction(log(2)))
    lse = fn("mul", fn("add", fn("log2", fn("exp", x)), fn("mul", y, 3)), two)
    assert named_literals(lse)[1]
    assert near(rounded_literals(lse), named_literals(lse)[0])
    assert not named_literals(fn("mul", fn("add", fn("exp", fn("log2", x)), y), two))[1]
