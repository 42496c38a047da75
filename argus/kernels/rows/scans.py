"""Cumulative sums of rows."""

# Reason: an extent in quotes is an extent.

from __future__ import annotations

from argus.kernels.rows import formulas
from argus.kernels.rows.configs import CONFIGS
from argus.kernels.rows.formulas import elements
from argus.kernels.schedules.rows import Block, Rows
from argus.language import Tensor, assert_equals, bf16, f16, f32, kernel


def cumsum(X: Tensor, Y: Tensor, cfg: Rows) -> None:
    """Y[r, n] = the sum of X[r, j] over j <= n, in f32 before it is stored."""
    R, N = X.shape
    block = Block(cfg, R, N, cfg.in_order)
    x = block.rows(X)
    block.each_prefix(x, lambda chunk, sums: block.store(sums, Y, chunk))
    assert_equals(Y, formulas.cumulative_sum(elements(X)))


@kernel(configs=CONFIGS[2])
def cumsum_bf16(X: Tensor["R N", bf16], Y: Tensor["R N", bf16], *, cfg: Rows) -> None:
    cumsum(X, Y, cfg)


@kernel(configs=CONFIGS[2])
def cumsum_f16(X: Tensor["R N", f16], Y: Tensor["R N", f16], *, cfg: Rows) -> None:
    cumsum(X, Y, cfg)


@kernel(configs=CONFIGS[4])
def cumsum_f32(X: Tensor["R N", f32], Y: Tensor["R N", f32], *, cfg: Rows) -> None:
    cumsum(X, Y, cfg)
