"""What grouped products with two matrices of each expert compute, as formulas."""

from __future__ import annotations

from collections.abc import Sequence

from argus.kernels.schedules.attention_packed import of_row
from argus.kernels.schedules.grouped import GroupedContraction
from argus.language import Int, Tensor, Value, assert_equals, elements, total


def claim_two_halves(problem: GroupedContraction, matrices: Tensor, made: Tensor) -> None:
    """Claim that made[i] is the product of the problem's rows with matrices[:, i]. made: (2, rows, N)."""
    a, w, (experts, _, _, depth) = elements(problem.A), elements(matrices), matrices.shape

    def value(i: Int, r: Int, n: Int) -> Value:
        return of_row(problem.starts, experts, r, lambda e, _: total(lambda k: a(r, k) * w(e, i, n, k), over=depth))

    assert_equals(made, value)


def claim_sum_of_halves(halves: Sequence[GroupedContraction]) -> None:
    """Claim the sum of two products of the same rows, which differ in A and B alone."""
    problem, _ = halves

    def element(e: Int, r: Int, n: Int) -> Value:
        (a, b), (c, d) = ((elements(each.A), elements(each.B)) for each in halves)
        return total(lambda k: a(r, k) * b(e, n, k) + c(r, k) * d(e, n, k), over=problem.A.shape[1])

    problem.claim(element)
