"""Sums and means of rows, and the cross entropy of rows of scores."""

# ruff: noqa: UP037
# Reason: an extent in quotes is an extent.

from __future__ import annotations

from math import inf

from argus.kernels.rows import formulas
from argus.kernels.rows.configs import CONFIGS
from argus.kernels.rows.formulas import LOG2_E, elements
from argus.kernels.rows.softmax import maximum_and_sum
from argus.kernels.schedules.rows import Block, Rows
from argus.language import (
    Int,
    Tensor,
    assert_equals,
    assume,
    bf16,
    f16,
    f32,
    i32,
    kernel,
    log2,
    maximum,
    minimum,
    scalar,
)


def row_sum(X: Tensor, Y: Tensor, cfg: Rows) -> None:
    """Y[r] = the sum of X[r], in f32 before it is stored."""
    R, N = X.shape
    block = Block(cfg, R, N)
    block.store_one(block.sum(block.rows(X)), Y)
    assert_equals(Y, formulas.summed(elements(X), N))


def row_mean(X: Tensor, Y: Tensor, cfg: Rows) -> None:
    """Y[r] = the mean of X[r]."""
    R, N = X.shape
    block = Block(cfg, R, N)
    block.store_one(block.sum(block.rows(X)) / N, Y)
    assert_equals(Y, formulas.mean(elements(X), N))


def cross_entropy(X: Tensor, target: Tensor, Y: Tensor, cfg: Rows) -> None:
    """Y[r] = log(sum over j of exp(X[r, j])) - X[r, t], where t is target[r, 0], or the nearest column to it.

    target: 64-bit integers as pairs of 32 bits, low ones first; only the low ones are read.
    """
    R, N = X.shape
    assume(N >= 1)
    block = Block(cfg, R, N)
    top, sums = maximum_and_sum(block, block.rows(X, -inf))

    def column(r: Int) -> Int:
        return maximum(0, minimum(scalar(target[r, 0]), N - 1))

    picked = block.of_rows(X.gather((R,), lambda r: (r, column(minimum(r, R - 1)))))
    block.store_one(log2(sums) / LOG2_E + (top - picked), Y)
    assert_equals(Y, formulas.cross_entropy(elements(X), column, N))


@kernel(configs=CONFIGS[2])
def row_sum_bf16(X: Tensor["R N", bf16], Y: Tensor["R", bf16], *, cfg: Rows) -> None:
    row_sum(X, Y, cfg)


@kernel(configs=CONFIGS[2])
def row_sum_f16(X: Tensor["R N", f16], Y: Tensor["R", f16], *, cfg: Rows) -> None:
    row_sum(X, Y, cfg)


@kernel(configs=CONFIGS[4])
def row_sum_f32(X: Tensor["R N", f32], Y: Tensor["R", f32], *, cfg: Rows) -> None:
    row_sum(X, Y, cfg)


@kernel(configs=CONFIGS[2])
def row_mean_bf16(X: Tensor["R N", bf16], Y: Tensor["R", bf16], *, cfg: Rows) -> None:
    row_mean(X, Y, cfg)


@kernel(configs=CONFIGS[2])
def row_mean_f16(X: Tensor["R N", f16], Y: Tensor["R", f16], *, cfg: Rows) -> None:
    row_mean(X, Y, cfg)


@kernel(configs=CONFIGS[4])
def row_mean_f32(X: Tensor["R N", f32], Y: Tensor["R", f32], *, cfg: Rows) -> None:
    row_mean(X, Y, cfg)


@kernel(configs=CONFIGS[2])
def cross_entropy_bf16(X: Tensor["R N", bf16], target: Tensor["R 2", i32], Y: Tensor["R", f32], *, cfg: Rows) -> None:
    cross_entropy(X, target, Y, cfg)


@kernel(configs=CONFIGS[2])
def cross_entropy_f16(X: Tensor["R N", f16], target: Tensor["R 2", i32], Y: Tensor["R", f32], *, cfg: Rows) -> None:
    cross_entropy(X, target, Y, cfg)


@kernel(configs=CONFIGS[4])
def cross_entropy_f32(X: Tensor["R N", f32], target: Tensor["R 2", i32], Y: Tensor["R", f32], *, cfg: Rows) -> None:
    cross_entropy(X, target, Y, cfg)
