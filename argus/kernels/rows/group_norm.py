"""Group norm: of the channels of each group, with a weight and a bias for each channel."""

# ruff: noqa: UP037
# Reason: an extent in quotes is an extent.

from __future__ import annotations

from argus.kernels.rows import formulas
from argus.kernels.rows.configs import CONFIGS
from argus.kernels.rows.formulas import elements
from argus.kernels.rows.norms import moments
from argus.kernels.schedules.rows import Block, Rows
from argus.language import Int, Tensor, assert_equals, assume, bf16, f16, f32, kernel


def group_norm(X: Tensor, W: Tensor, B: Tensor, eps: Tensor, Y: Tensor, S: Int, cfg: Rows) -> None:
    """Y[r, n] = (X[r, n] - mean) W[g, k] / sqrt(variance + eps) + B[g, k], with mean and variance of X[r].

    A row is a group of one sample: its K channels, each of S elements. Row r is of group g = r % G, and column n of
    the group's channel k = n // S, which is (n // v) // (S // v) for the v elements of an access, which divide S.
    """
    (R, N), (G, K) = X.shape, W.shape
    assume(G >= 1)
    assume(S >= 1)
    assume(S % cfg.vector == 0)
    assume(N == K * S)
    vectors = S // cfg.vector

    def channel(r: Int, n: Int) -> tuple[Int, Int]:
        return r % G, n // cfg.vector // vectors

    block = Block(cfg, R, N)
    x, w, b = block.rows(X), block.chosen(W, channel), block.chosen(B, channel)
    mean, scale = moments(block, x, eps)
    block.each(lambda chunk: block.store((x(chunk) - mean) * scale * w(chunk) + b(chunk), Y, chunk))
    assert_equals(Y, formulas.group_norm(elements(X), W, B, eps, N, cfg.vector, vectors))


@kernel(configs=CONFIGS[2])
def group_norm_bf16(
    X: Tensor["R N", bf16],
    W: Tensor["G K", bf16],
    B: Tensor["G K", bf16],
    eps: Tensor["1", f32],
    Y: Tensor["R N", bf16],
    *,
    S: Int,
    cfg: Rows,
) -> None:
    group_norm(X, W, B, eps, Y, S, cfg)


@kernel(configs=CONFIGS[2])
def group_norm_f16(
    X: Tensor["R N", f16],
    W: Tensor["G K", f16],
    B: Tensor["G K", f16],
    eps: Tensor["1", f32],
    Y: Tensor["R N", f16],
    *,
    S: Int,
    cfg: Rows,
) -> None:
    group_norm(X, W, B, eps, Y, S, cfg)


@kernel(configs=CONFIGS[4])
def group_norm_f32(
    X: Tensor["R N", f32],
    W: Tensor["G K", f32],
    B: Tensor["G K", f32],
    eps: Tensor["1", f32],
    Y: Tensor["R N", f32],
    *,
    S: Int,
    cfg: Rows,
) -> None:
    group_norm(X, W, B, eps, Y, S, cfg)
