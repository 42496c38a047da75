"""What the launches of attention's gradients claim of their outputs."""

# pyright: reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false
# Reason: in a formula, an element of a tensor is a value; outside of one, the same expression is a view.
# ruff: noqa: ANN202
# Reason: values of formulas are made by the language alone, and have no public type.

from __future__ import annotations

from argus.kernels.schedules.attention_backward import LN_2, LOG2_E, AttentionBackward, Place
from argus.language import Int, Tensor, assert_equals, exp2, total, where


def claim_rows(O: Tensor, dO: Tensor, LSE: Tensor, L: Tensor, Delta: Tensor) -> None:  # noqa: E741 reason: its name
    """Delta[b, h, q] = dO[b, h, q] . O[b, h, q] and L[b, h, q] = LSE[b, h, q] / ln(2) of S queries, 0 of others."""
    _, _, queries, depth = O.shape

    def products(b: Int, h: Int, q: Int):
        return where(q < queries, total(lambda e: O[b, h, q, e] * dO[b, h, q, e], over=depth), 0)

    assert_equals(Delta, products)
    assert_equals(L, lambda b, h, q: where(q < queries, LSE[b, h, q] * LOG2_E, 0))


def claim_keys(problem: AttentionBackward, dK: Tensor, dV: Tensor) -> None:
    """The gradients of keys and values are the sums that `AttentionBackward` states."""
    over, group = (problem.group, problem.Q.shape[2]), problem.group

    def of_values(b: Int, g: Int, t: Int, e: Int):
        def from_query(j: Int, q: Int):
            h = g * group + j
            return _weight(problem, (b, h, g), q, t) * problem.dO[b, h, q, e]

        return total(from_query, over=over)

    def of_keys(b: Int, g: Int, t: Int, d: Int):
        def from_query(j: Int, q: Int):
            h = g * group + j
            return _change(problem, (b, h, g), q, t) * problem.Q[b, h, q, d]

        return total(from_query, over=over) * (problem.scale[0] * LN_2)

    assert_equals(dV, of_values)
    assert_equals(dK, of_keys)


def claim_queries(problem: AttentionBackward, dQ: Tensor) -> None:
    """The gradients of queries are the sums that `AttentionBackward` states."""

    def of_queries(b: Int, h: Int, q: Int, d: Int):
        g = h // problem.group

        def from_key(t: Int):
            return _change(problem, (b, h, g), q, t) * problem.K[b, g, t, d]

        return total(from_key, over=problem.K.shape[2]) * (problem.scale[0] * LN_2)

    assert_equals(dQ, of_queries)


def _weight(of: AttentionBackward, at: Place, q: Int, t: Int):
    """P. at: batch, head of queries, and its group."""
    b, h, g = at
    score = total(lambda d: of.K[b, g, t, d] * of.Q[b, h, q, d], over=of.Q.shape[3])
    return where(of.sees(q, t), exp2(score * of.scale[0] - of.L[b, h, q]), 0)


def _change(of: AttentionBackward, at: Place, q: Int, t: Int):
    """dS."""
    b, h, g = at
    product = total(lambda e: of.V[b, g, t, e] * of.dO[b, h, q, e], over=of.Q.shape[3])
    return _weight(of, at, q, t) * (product - of.Delta[b, h, q])
