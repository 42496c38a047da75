"""What weights of experts are, as a formula."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Literal

from argus.kernels.rows.formulas import LOG2_E
from argus.language import Int, Tensor, Value, elements, exp2, least, maximum, minimum, scalar, total, where

Scoring = Literal["softmax", "sigmoid"]


def expert_of(ids: Tensor, experts: Int, r: Int, j: Int) -> Int:
    """The expert of a token's j-th choice, or the nearest to it."""
    return maximum(0, minimum(scalar(ids[r, j]), experts - 1))


def weight_of(
    X: Tensor, ids: Tensor, F: Tensor, scoring: Scoring, B: Tensor | None, *, renormalised: bool
) -> Callable[[Int, Int], Value]:
    """The weight of a token's j-th choice: infinite where the chosen are not those of the largest scores, in order."""
    (_, experts), choices = X.shape, ids.shape[1]
    x, given = elements(X), elements(ids)
    b = None if B is None else elements(B)

    def formula(r: Int, j: Int) -> Value:
        def column(i: Int) -> Int:
            return expert_of(ids, experts, r, i)

        def key(e: Int) -> Value:
            return x(r, e) if b is None else logistic(x(r, e)) + b(e)

        def own(i: Int) -> Value:
            return key(column(i))

        def rises(i: Int) -> Value:
            equal = (own(i) == own(i + 1)) & (given(r, i) < given(r, i + 1))
            return where((own(i) > own(i + 1)) | equal, 0, 1)

        def strays(i: Int) -> Value:
            return where((given(r, i) >= 0) & (given(r, i) < experts), 0, 1)

        def weight(e: Int) -> Value:
            return exp2(x(r, e) * LOG2_E) if scoring == "softmax" else logistic(x(r, e))

        lowest = least(own, over=choices)
        last = given(r, choices - 1)

        def ahead(e: Int) -> Value:
            place = where(key(e) == lowest, e, inf)
            return where((key(e) > lowest) | (place <= last), 1, 0)

        places = total(ahead, over=experts)
        disorder, outside = total(rises, over=choices - 1), total(strays, over=choices)
        found = weight(column(j))
        if renormalised:
            found = found / total(lambda i: weight(column(i)), over=choices)
        elif scoring == "softmax":
            found = found / total(weight, over=experts)
        return where((places == choices) & (disorder == 0) & (outside == 0), found * elements(F)(0), inf)

    return formula


def logistic(x: Value) -> Value:
    """1 / (1 + exp(-x)), of the base 2^LOG2_E."""
    return 1 / (exp2(x * -LOG2_E) + 1)
