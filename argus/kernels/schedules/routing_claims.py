"""What weights of experts are, as a formula."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Literal

from argus.kernels.rows.formulas import LOG2_E
from argus.language import Int, Tensor, Value, elements, exp2, greatest, least, maximum, minimum, scalar, total, where

Scoring = Literal["softmax", "sigmoid"]


def expert_of(ids: Tensor, experts: Int, r: Int, j: Int) -> Int:
    """The expert of a token's j-th choice, or the nearest to it."""
    return maximum(0, minimum(scalar(ids[r, j]), experts - 1))


def key_of(X: Tensor, B: Tensor | None) -> Callable[..., Value]:
    """What experts are compared by: their scores, or with biases the sums of a sigmoid and the expert's bias.

    Of the coordinates of a token and an expert, by which B has an element, too.
    """
    x = elements(X)
    if B is None:
        return x
    b = elements(B)

    def key(t: Int, *expert: Int) -> Value:
        return logistic(x(t, *expert)) + b(*expert)

    return key


def weight_of(
    X: Tensor,
    ids: Tensor,
    F: Tensor,
    scoring: Scoring,
    B: Tensor | None,
    M: Tensor | None = None,
    *,
    renormalised: bool,
) -> Callable[[Int, Int], Value]:
    """The weight of a token's j-th choice: infinite where the chosen are not those of the largest scores, in order.

    M: if given, only experts of which it is positive may be chosen.
    """
    (_, experts), choices = X.shape, ids.shape[1]
    x, given = elements(X), elements(ids)
    compared, may = key_of(X, B), None if M is None else elements(M)

    def formula(r: Int, j: Int) -> Value:
        def column(i: Int) -> Int:
            return expert_of(ids, experts, r, i)

        def key(e: Int) -> Value:
            return compared(r, e)

        def own(i: Int) -> Value:
            return key(column(i))

        def rises(i: Int) -> Value:
            equal = (own(i) == own(i + 1)) & (column(i) < column(i + 1))
            return where((own(i) > own(i + 1)) | equal, 0, 1)

        def strays(i: Int) -> Value:
            known = (given(r, i) >= 0) & (given(r, i) < experts)
            return where(known if may is None else known & (may(r, column(i)) > 0), 0, 1)

        def weight(e: Int) -> Value:
            return exp2(x(r, e) * LOG2_E) if scoring == "softmax" else logistic(x(r, e))

        lowest = least(own, over=choices)
        last = given(r, choices - 1)

        def ahead(e: Int) -> Value:
            place = where(key(e) == lowest, e, inf)
            counts = (key(e) > lowest) | (place <= last)
            return where(counts if may is None else counts & (may(r, e) > 0), 1, 0)

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


def group_score(X: Tensor, B: Tensor | None) -> Callable[[Int, Int], Value]:
    """The score of a group of experts: its largest, or with biases the sum of the two largest.

    X: (tokens, groups, experts of a group). B: (groups, experts of a group).
    """
    size, key = X.shape[2], key_of(X, B)

    def score(t: Int, g: Int) -> Value:
        best = greatest(lambda i: key(t, g, i), over=size)
        if B is None:
            return best

        equal = total(lambda i: where(key(t, g, i) == best, 1, 0), over=size)
        below = greatest(lambda i: where(key(t, g, i) < best, key(t, g, i), -inf), over=size)
        return best + where(equal > 1, best, below)

    return score


def is_kept(S: Tensor, top: Int) -> Callable[[Int, Int, Int], Value]:
    """1 for the experts of a token's `top` groups with the largest scores, of equal ones the first; 0 for others."""
    score, groups = elements(S), S.shape[1]

    def kept(t: Int, g: Int, i: Int) -> Value:
        del i

        def before(h: Int) -> Value:
            return where((score(t, h) > score(t, g)) | ((score(t, h) == score(t, g)) & (h < g)), 1, 0)

        return where(total(before, over=groups) < top, 1, 0)

    return kept
