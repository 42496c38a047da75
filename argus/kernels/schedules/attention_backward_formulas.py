"""What the launches of attention's gradients claim of their outputs."""

from __future__ import annotations

from argus.kernels.schedules.attention_backward import LN_2, LOG2_E, AttentionBackward, Place
from argus.language import Int, Tensor, Value, assert_equals, elements, exp2, total, where


def claim_rows(O: Tensor, dO: Tensor, LSE: Tensor, L: Tensor, Delta: Tensor) -> None:  # noqa: E741 reason: its name
    """Delta[b, h, q] = dO[b, h, q] . O[b, h, q] and L[b, h, q] = LSE[b, h, q] / ln(2) of S queries, 0 of others."""
    (_, _, queries, depth), o, d_o, lse = O.shape, elements(O), elements(dO), elements(LSE)

    def products(b: Int, h: Int, q: Int) -> Value:
        return where(q < queries, total(lambda e: o(b, h, q, e) * d_o(b, h, q, e), over=depth), 0)

    assert_equals(Delta, products)
    assert_equals(L, lambda b, h, q: where(q < queries, lse(b, h, q) * LOG2_E, 0))


def claim_keys(problem: AttentionBackward, dK: Tensor | None, dV: Tensor | None) -> None:
    """The gradients of keys and values, of those that are given, are the sums that `AttentionBackward` states."""
    over, group = (problem.group, problem.Q.shape[2]), problem.group

    def of_values(b: Int, g: Int, t: Int, e: Int) -> Value:
        def from_query(j: Int, q: Int) -> Value:
            h = g * group + j
            return _weight(problem, (b, h, g), q, t) * elements(problem.dO)(b, h, q, e)

        return total(from_query, over=over)

    def of_keys(b: Int, g: Int, t: Int, d: Int) -> Value:
        def from_query(j: Int, q: Int) -> Value:
            h = g * group + j
            return _change(problem, (b, h, g), q, t) * elements(problem.Q)(b, h, q, d)

        return total(from_query, over=over) * (elements(problem.scale)(0) * LN_2)

    if dV is not None:
        assert_equals(dV, of_values)
    if dK is not None:
        assert_equals(dK, of_keys)


def claim_queries(problem: AttentionBackward, dQ: Tensor) -> None:
    """The gradients of queries are the sums that `AttentionBackward` states."""

    def of_queries(b: Int, h: Int, q: Int, d: Int) -> Value:
        g = h // problem.group

        def from_key(t: Int) -> Value:
            return _change(problem, (b, h, g), q, t) * elements(problem.K)(b, g, t, d)

        return total(from_key, over=problem.K.shape[2]) * (elements(problem.scale)(0) * LN_2)

    assert_equals(dQ, of_queries)


def _weight(of: AttentionBackward, at: Place, q: Int, t: Int) -> Value:
    """P. at: batch, head of queries, and its group."""
    (b, h, g), queries, keys, scale, logarithms = at, *map(elements, (of.Q, of.K, of.scale, of.L))
    score = total(lambda d: keys(b, g, t, d) * queries(b, h, q, d), over=of.Q.shape[3])
    return where(of.sees(q, t), exp2(score * scale(0) - logarithms(b, h, q)), 0)


def _change(of: AttentionBackward, at: Place, q: Int, t: Int) -> Value:
    """dS."""
    (b, h, g), values, gradients, products = at, *map(elements, (of.V, of.dO, of.Delta))
    product = total(lambda e: values(b, g, t, e) * gradients(b, h, q, e), over=of.Q.shape[3])
    return _weight(of, at, q, t) * (product - products(b, h, q))
