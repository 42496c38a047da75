"""Operands that change nothing are left out."""

from __future__ import annotations

import pytest

from argus.core import algebra
from argus.core.proof.values.held.terms import without_neutral
from argus.core.values.expr import Expr, element, expr, fn, infinity

X, ZERO = element("X", algebra.const(0)), expr(0)
LEFT_OUT = {
    "a sum with 0": fn("add", X, ZERO),
    "a difference to 0": fn("sub", X, ZERO),
    "a maximum with the least": fn("max", X, infinity(-1)),
    "a minimum with the greatest": fn("min", infinity(1), X),
}
STAYS = {
    "0 less a value": fn("sub", ZERO, X),
    "a maximum with 0": fn("max", X, ZERO),
    "a product with 0": fn("mul", X, ZERO),
}


@pytest.mark.parametrize("of", LEFT_OUT.values(), ids=LEFT_OUT)
def test_an_operand_that_changes_nothing_is_left_out(of: Expr) -> None:
    assert without_neutral(of) is X


@pytest.mark.parametrize("of", STAYS.values(), ids=STAYS)
def test_another_operand_stays(of: Expr) -> None:
    assert without_neutral(of) is of
