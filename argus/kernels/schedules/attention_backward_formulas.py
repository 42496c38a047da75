"""What the launches of attention's gradients claim of their outputs."""

from __future__ import annotations

from attrs import frozen

from argus.kernels.schedules.attention_backward import (
    LN_2,
    LOG2_E,
    AttentionBackward,
    Elements,
    Formula,
    SeenBlocks,
)
from argus.kernels.schedules.attention_backward_packed import PackedBackward
from argus.language import Int, Tensor, Value, assert_equals, elements, exp2, total, where

Problem = AttentionBackward | PackedBackward


@frozen
class Inputs:
    """What a program is given for the gradients of queries: in its formulas, L and Delta are what LSE, O and dO say."""

    Q: Tensor
    K: Tensor
    V: Tensor
    O: Tensor  # noqa: E741 reason: its name
    dO: Tensor  # noqa: N815 reason: as above
    LSE: Tensor
    scale: Tensor
    causal: bool

    @property
    def group(self) -> Int:
        """The number of query heads for each head of keys and values."""
        return self.Q.shape[1] // self.K.shape[1]

    def seen(self, _b: Int) -> SeenBlocks:
        """Which keys a query of a sequence sees."""
        return SeenBlocks(self.Q.shape[2], self.K.shape[2], self.causal)

    def elements(self, b: Int, h: Int, g: Int) -> Elements:
        """The elements of one head of a sequence, in a formula. g: its head of keys and values."""
        q, k, v, o, do, lse = map(elements, (self.Q, self.K, self.V, self.O, self.dO, self.LSE))
        return Elements(
            lambda row, d: q(b, h, row, d),
            lambda row, d: k(b, g, row, d),
            lambda row, e: v(b, g, row, e),
            lambda row, e: do(b, h, row, e),
            lambda row: lse(b, h, row) * LOG2_E,
            lambda row: total(lambda e: o(b, h, row, e) * do(b, h, row, e), over=self.O.shape[3]),
        )

    def claim_queries(self, dQ: Tensor, formula: Formula) -> None:
        """Claim the gradient of each query."""
        assert_equals(dQ, formula)


def claim_rows(O: Tensor, dO: Tensor, LSE: Tensor, L: Tensor, Delta: Tensor) -> None:  # noqa: E741 reason: its name
    """Delta[b, h, q] = dO[b, h, q] . O[b, h, q] and L[b, h, q] = LSE[b, h, q] / ln(2) of S queries, 0 of others."""
    o, d_o, lse = elements(O), elements(dO), elements(LSE)
    if is_packed(O):
        rows, _, width = O.shape

        def of_packed(h: Int, q: Int) -> Value:
            return where(q < rows, total(lambda e: o(q, h, e) * d_o(q, h, e), over=width), 0)

        assert_equals(Delta, of_packed)
        assert_equals(L, lambda h, q: where(q < rows, lse(h, q) * LOG2_E, 0))
        return
    _, _, queries, depth = O.shape

    def products(b: Int, h: Int, q: Int) -> Value:
        return where(q < queries, total(lambda e: o(b, h, q, e) * d_o(b, h, q, e), over=depth), 0)

    assert_equals(Delta, products)
    assert_equals(L, lambda b, h, q: where(q < queries, lse(b, h, q) * LOG2_E, 0))


def is_packed(O: Tensor) -> bool:  # noqa: E741 reason: as above
    """Whether an output is of packed sequences, (rows, heads, elements), and not (batch, heads, rows, elements)."""
    return len(O.shape) == 3


def claim_keys(problem: Problem, dK: Tensor | None, dV: Tensor | None) -> None:
    """The gradients of keys and values, of those that are given, are the sums that `AttentionBackward` states."""
    group = problem.group

    def of_values(b: Int, g: Int, t: Int, e: Int) -> Value:
        def from_query(j: Int, q: Int) -> Value:
            of = problem.elements(b, g * group + j, g)
            return _weight(problem, b, of, q, t) * of.do(q, e)

        return total(from_query, over=(group, problem.seen(b).queries))

    def of_keys(b: Int, g: Int, t: Int, d: Int) -> Value:
        def from_query(j: Int, q: Int) -> Value:
            of = problem.elements(b, g * group + j, g)
            return _change(problem, b, of, q, t) * of.q(q, d)

        over = group, problem.seen(b).queries
        return total(from_query, over=over) * (elements(problem.scale)(0) * LN_2)

    if dV is not None:
        problem.claim_keys(dV, of_values)
    if dK is not None:
        problem.claim_keys(dK, of_keys)


def claim_queries(problem: Problem | Inputs, dQ: Tensor) -> None:
    """The gradients of queries are the sums that `AttentionBackward` states."""

    def of_queries(b: Int, h: Int, q: Int, d: Int) -> Value:
        of = problem.elements(b, h, h // problem.group)

        def from_key(t: Int) -> Value:
            return _change(problem, b, of, q, t) * of.k(t, d)

        return total(from_key, over=problem.seen(b).keys) * (elements(problem.scale)(0) * LN_2)

    problem.claim_queries(dQ, of_queries)


def _weight(problem: Problem | Inputs, b: Int, of: Elements, q: Int, t: Int) -> Value:
    """P of one head of sequence b."""
    score = total(lambda d: of.k(t, d) * of.q(q, d), over=problem.Q.shape[-1])
    return where(problem.seen(b).sees(q, t), exp2(score * elements(problem.scale)(0) - of.sums(q)), 0)


def _change(problem: Problem | Inputs, b: Int, of: Elements, q: Int, t: Int) -> Value:
    """dS of one head of sequence b."""
    product = total(lambda e: of.v(t, e) * of.do(q, e), over=problem.Q.shape[-1])
    return _weight(problem, b, of, q, t) * (product - of.delta(q))
