"""Sums and means of rows, and the cross entropy of rows of scores."""

# Without `from __future__ import annotations`: those that name a type are evaluated where they stand.

from math import inf

from argus.kernels.rows import formulas
from argus.kernels.rows.configs import TYPES, row_kernel
from argus.kernels.rows.formulas import LOG2_E
from argus.kernels.rows.softmax import maximum_and_sum
from argus.kernels.schedules.rows import Block, Rows
from argus.language import (
    DType,
    Int,
    Template,
    Tensor,
    assert_equals,
    assume,
    elements,
    f32,
    i32,
    log2,
    maximum,
    minimum,
    scalar,
)


def row_sum(dtype: DType) -> Template:
    """Y[r] = the sum of X[r], in f32 before it is stored."""

    @row_kernel("row_sum", dtype, "summed")
    def made(X: Tensor["R N", dtype], Y: Tensor["R", dtype], *, cfg: Rows) -> None:
        R, N = X.shape
        block = Block(cfg, R, N)
        block.store_one(block.sum(block.rows(X)), Y)
        assert_equals(Y, formulas.summed(elements(X), N))

    return made


def row_mean(dtype: DType) -> Template:
    """Y[r] = the mean of X[r]."""

    @row_kernel("row_mean", dtype, "summed")
    def made(X: Tensor["R N", dtype], Y: Tensor["R", dtype], *, cfg: Rows) -> None:
        R, N = X.shape
        block = Block(cfg, R, N)
        block.store_one(block.sum(block.rows(X)) / N, Y)
        assert_equals(Y, formulas.mean(elements(X), N))

    return made


def cross_entropy(dtype: DType) -> Template:
    """Y[r] = log(sum over j of exp(X[r, j])) - X[r, t], where t is target[r, 0], or the nearest column to it.

    target: 64-bit integers as pairs of 32 bits, low ones first; only the low ones are read.
    """

    @row_kernel("cross_entropy", dtype, "once")
    def made(X: Tensor["R N", dtype], target: Tensor["R 2", i32], Y: Tensor["R", f32], *, cfg: Rows) -> None:
        R, N = X.shape
        assume(N >= 1)
        block = Block(cfg, R, N)
        scores = block.rows(X, -inf)

        def column(r: Int) -> Int:
            return maximum(0, minimum(scalar(target[r, 0]), N - 1))

        picked = block.of_rows(X.gather((R,), lambda r: (r, column(minimum(r, R - 1)))))
        top, sums = maximum_and_sum(block, scores)
        block.store_one(log2(sums) / LOG2_E + (top - picked), Y)
        assert_equals(Y, formulas.cross_entropy(elements(X), column, N))

    return made


row_sum_bf16, row_sum_f16, row_sum_f32 = map(row_sum, TYPES)
row_mean_bf16, row_mean_f16, row_mean_f32 = map(row_mean, TYPES)
cross_entropy_bf16, cross_entropy_f16, cross_entropy_f32 = map(cross_entropy, TYPES)
