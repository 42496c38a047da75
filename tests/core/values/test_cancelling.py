"""Which tests of numbers are decided over the reals, and which are those of an unknown number."""

from __future__ import annotations

import pytest

from argus.core.algebra import coord, le
from argus.core.values.cancelling import IN_FLOATS, with_tests_in_floats
from argus.core.values.expr import Expr, choose, compare, element, expr, fn, infinity
from argus.core.values.numbers import ROUNDED
from argus.core.values.rewriting import nodes
from tests.core.values.formulas import greatest, size, total

ROW, SIZE = coord(0), size("N")
X, Z = element("X", ROW), element("Z", ROW)
ONE = expr(1)
SUM = total(0, SIZE, lambda j: element("X", j))
MOST = greatest(0, SIZE, lambda j: element("X", j))
POSITIVE = fn("max", X, ONE)


def differences(of: Expr) -> Expr:
    return fn("sub", fn("add", of, ONE), of)


def balanced(name: str, numbers: range) -> Expr:
    """The operation on all these elements of Z, which no deep recursion is needed for."""
    if len(numbers) == 1:
        return element("Z", numbers[0])
    half = len(numbers) // 2
    return fn(name, balanced(name, numbers[:half]), balanced(name, numbers[half:]))


CANCEL = {
    "one more than itself": (fn("add", X, ONE), X),
    "a difference from itself": (differences(X), ONE),
    "a reciprocal of itself": (fn("mul", POSITIVE, fn("div", ONE, POSITIVE)), ONE),
    "factors divided by": (fn("div", fn("div", fn("mul", X, Z), X), Z), ONE),
    "exponentials of opposite sign": (fn("mul", fn("exp", X), fn("exp", fn("neg", X))), ONE),
    "a product with a sum": (fn("mul", X, fn("sub", expr(2), X)), ONE),
    "an integer times its reciprocal": (fn("mul", expr(SIZE), fn("div", ONE, expr(SIZE))), ONE),
    "a fused sum": (fn("fma", X, Z, fn("neg", fn("mul", X, Z))), ONE),
    "a sum of differences": (total(0, SIZE, lambda j: differences(element("X", j))), expr(16)),
    "sums of unlike elements": (total(0, SIZE, lambda j: fn("add", element("X", j), ONE)), SUM),
    "a sum less one of its elements": (fn("sub", SUM, X), ONE),
    "one more than the greatest": (fn("add", MOST, ONE), X),
    "a difference against 0": (differences(X), expr(0)),
    "a difference of positive numbers against 0": (fn("sub", fn("exp", X), fn("exp", fn("mul", X, X))), expr(0)),
    "a sum of positive numbers": (fn("add", fn("exp", X), fn("exp", fn("neg", X))), ONE),
    "a sum less one of its terms": (fn("sub", fn("add", X, Z), X), expr(0)),
    "a sum less a sum of its terms": (fn("sub", total(0, SIZE, lambda j: fn("add", element("X", j), Z)), SUM), expr(0)),
    "a logarithm's exponential less the number": (fn("sub", fn("exp", fn("log", X)), X), expr(0)),
    "a third of an extremum": (fn("sub", fn("mul", fn("max", fn("div", X, 3), Z), 3), X), expr(0)),
    "a difference and the greatest": (differences(X), greatest(0, SIZE, lambda j: differences(element("X", j)))),
    "a number and the greatest of others": (X, greatest(0, SIZE, lambda j: fn("exp", element("X", j)))),
    "an integer of any size and the next": (fn("add", fn("floor", X), ONE), fn("floor", X)),
    "an integer that f32 has not": (fn("add", choose(compare("<", Z, X), 1 << 24, 1 << 25), ONE), expr(1 << 24)),
    "one side chosen": (choose(le(ROW, SIZE), differences(X), ONE), ONE),
    "a reciprocal's reciprocal of an extremum": (fn("div", ONE, fn("div", ONE, fn("max", X, expr(41)))), expr(41)),
    "a third of a number chosen": (fn("mul", fn("div", choose(compare("<", Z, X), 41, X), 3), 3), expr(41)),
    "a product of a rounded constant": (fn("mul", fn("div", ONE, 41), 41), ONE),
    "a sum of extrema": (total(0, SIZE, lambda j: fn("max", element("X", j), ONE)), expr(SIZE)),
    "more parts than are looked at": (balanced("add", range(600)), ONE),
}
DECIDED = {
    "an element": (X, ONE),
    "two elements": (X, Z),
    "itself": (fn("exp", X), fn("exp", X)),
    "extrema of the same element": (POSITIVE, X),
    "the greatest and one of them": (MOST, X),
    "a square": (fn("mul", X, X), ONE),
    "a third power": (fn("mul", fn("mul", X, X), X), ONE),
    "an element relative to the greatest": (fn("exp", fn("sub", X, MOST)), ONE),
    "a rounded part": (fn("sub", X, fn("round_bf16", X)), ONE),
    "a product of others": (fn("mul", X, Z), ONE),
    "a sum": (SUM, ONE),
    "a sum of exponentials": (total(0, SIZE, lambda j: fn("exp", element("X", j))), ONE),
    "a sum of positive numbers against 0": (fn("add", fn("exp", X), fn("exp", fn("neg", X))), expr(0)),
    "sums of exponentials against 0": (total(0, SIZE, lambda j: fn("exp", differences(element("X", j)))), expr(0)),
    "a product against 0": (fn("mul", fn("exp", X), fn("exp", fn("neg", X))), expr(0)),
    "a product of sums and a residual": (
        fn("add", total(0, SIZE, lambda j: fn("mul", element("X", j), element("W", j))), X),
        expr(0),
    ),
    "a square and the number": (fn("sub", fn("mul", X, X), fn("mul", X, Z)), ONE),
    "a score and the greatest": (
        fn("div", ONE, fn("add", fn("exp", X), ONE)),
        greatest(0, SIZE, lambda j: fn("div", ONE, fn("add", fn("exp", element("X", j)), ONE))),
    ),
    "small integers": (fn("add", choose(compare("<", Z, X), 1, 0), ONE), ONE),
    "a count": (total(0, SIZE, lambda j: choose(compare("<", element("X", j), Z), 1, 0)), ONE),
    "a rounded integer": (fn(f"{ROUNDED}bf16", choose(compare("<", 0, X), 256, 0)), ONE),
    "an infinity": (differences(X), infinity(-1)),
    "a great extremum": (fn("max", X, balanced("max", range(600))), X),
}


def is_unknown(left: Expr, right: Expr) -> bool:
    found = with_tests_in_floats(choose(compare("<", right, left), ONE, X))
    return IN_FLOATS in {getattr(each, "name", "") for each in nodes(found)}


@pytest.mark.parametrize(("left", "right"), CANCEL.values(), ids=CANCEL)
def test_a_test_in_which_numbers_cancel_is_that_of_an_unknown_number(left: Expr, right: Expr) -> None:
    assert is_unknown(left, right)


@pytest.mark.parametrize(("left", "right"), DECIDED.values(), ids=DECIDED)
def test_a_test_in_which_nothing_cancels_is_kept(left: Expr, right: Expr) -> None:
    assert not is_unknown(left, right)


@pytest.mark.parametrize(("left", "right"), CANCEL.values(), ids=CANCEL)
def test_a_step_of_a_number_that_cancels_is_that_of_an_unknown_number(left: Expr, right: Expr) -> None:
    found = with_tests_in_floats(fn("floor", fn("sub", left, right)))
    assert IN_FLOATS in {getattr(each, "name", "") for each in nodes(found)}


CANCELS = differences(X)
CONTINUOUS = {
    "a maximum": choose(compare("<", fn("add", X, ONE), X), X, fn("add", X, ONE)),
    "a leaky relu": choose(compare("<", 0, CANCELS), CANCELS, fn("mul", CANCELS, expr(2))),
    "an absolute value": choose(compare("<", CANCELS, 0), fn("neg", CANCELS), CANCELS),
}
NOT_CONTINUOUS = {
    "a step": choose(compare("<", 0, CANCELS), CANCELS, ONE),
    "a relu from 1": choose(compare("<", 1, CANCELS), CANCELS, expr(0)),
    "a multiple of another": choose(compare("<", 0, CANCELS), CANCELS, fn("mul", X, expr(2))),
}


@pytest.mark.parametrize("choice", CONTINUOUS.values(), ids=CONTINUOUS)
def test_a_choice_of_branches_that_meet_is_kept(choice: Expr) -> None:
    assert with_tests_in_floats(choice) is choice


@pytest.mark.parametrize("choice", NOT_CONTINUOUS.values(), ids=NOT_CONTINUOUS)
def test_one_of_branches_that_do_not_meet_is_of_an_unknown_number(choice: Expr) -> None:
    assert with_tests_in_floats(choice) is not choice
