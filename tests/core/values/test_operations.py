from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from argus.core.values.drawn import seeded
from argus.core.values.equality import Equal, equal
from argus.core.values.evaluation import Evaluation, NoExactValueError
from argus.core.values.expr import Number, element, expr, fn
from argus.core.values.operations import OPERATIONS, Operation

_POINTS = (Fraction(1, 4), Fraction(3, 2), Fraction(5), Fraction(-3, 4), Fraction(-2))
_AT = Evaluation({}, seeded(0))


def _numbers(entry: Operation) -> list[tuple[Fraction, ...]]:
    return list(product(_POINTS, repeat=entry.arity))


@pytest.mark.parametrize("entry", [each for each in OPERATIONS.values() if each.definition], ids=lambda each: each.name)
def test_a_definition_is_the_operation(entry: Operation) -> None:
    assert entry.definition is not None
    for numbers in _numbers(entry):
        with np.errstate(all="ignore"):
            meant = float(entry.number(*map(np.float64, numbers)))

        assert _AT.value(entry.definition(*map(expr, numbers))) == pytest.approx(
            meant, rel=1e-12, abs=1e-12, nan_ok=True
        )


@pytest.mark.share(8)
@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(each, marks=pytest.mark.share(8) if each.name == "philox" else (), id=each.name)
        for each in OPERATIONS.values()
        if each.exact
    ],
)
def test_exact_values_are_those_of_float64(entry: Operation) -> None:
    assert entry.exact is not None
    for numbers in _numbers(entry):
        assert float(entry.exact(*numbers)) == pytest.approx(float(entry.number(*map(np.float64, numbers))), rel=1e-12)


@pytest.mark.parametrize("entry", [each for each in OPERATIONS.values() if each.neutral], ids=lambda each: each.name)
def test_neutral_padding_changes_nothing(entry: Operation) -> None:
    assert entry.neutral is not None
    value = element("V")

    assert isinstance(equal(fn(entry.name, value, entry.neutral), value), Equal)
    assert not isinstance(equal(fn(entry.name, value, 2), value), Equal)


@pytest.mark.parametrize("name", [*OPERATIONS, "mystery"])
def test_every_operation_is_equal_to_itself_and_not_to_another_of_its_arguments(name: str) -> None:
    arity = OPERATIONS[name].arity if name in OPERATIONS else 1
    numbers = [fn("exp", element("V", each)) for each in range(arity)]  # above 0: roots and logarithms have values
    numbers = [*numbers[:1], expr(2)] if name == "pow" else numbers
    others = [fn("exp", element("W")), *numbers[1:]]

    assert isinstance(equal(fn(name, *numbers), fn(name, *numbers)), Equal)
    if name not in ("sign", "relu", "abs"):
        assert not isinstance(equal(fn(name, *others), fn(name, *numbers)), Equal)


def test_an_exact_value_needs_exact_operations() -> None:
    exact = Evaluation({}, seeded(0), exact=True)

    assert exact.value(expr(1) / 3 + expr(Fraction(1, 6))) == Fraction(1, 2)
    assert exact.value(fn("mystery", 1)) == exact.value(fn("mystery", expr(3) / 3))
    with pytest.raises(NoExactValueError):
        exact.value(expr(1) / 0)


def test_numbers_that_are_not_exact_are_refused() -> None:
    assert isinstance(expr(Fraction(1, 3)), Number)
    with pytest.raises(TypeError, match=r"0\.5"):
        expr(0.5)
