"""Comparisons of values with 0 that the signs of their parts decide: a sum of powers is above 0."""

from __future__ import annotations

from collections.abc import Callable

from argus.core.index import Cond
from argus.core.values.expr import Compare, Expr, expr
from argus.core.values.numbers import above_zero, is_number

_ZERO = expr(0)


def decided_by_sign(test: Compare, holds: Callable[[Cond], bool]) -> bool | None:
    """Whether the comparison holds, of a number that is above 0 with 0; None if that is not known.

    holds: whether a condition on integers provably holds. What has no value, such as inf - inf, is not decided.
    """

    def above(of: Expr) -> bool:
        found = above_zero(of) if is_number(of) else None
        return found is not None and all(map(holds, found))

    if test.right is _ZERO and above(test.left):
        return False  # x < 0, x <= 0, x == 0
    if test.left is _ZERO and above(test.right):
        return test.op != "=="
    return None
