"""RMS norm and layer norm of rows, also of the sum of two tensors, such as a residual stream and a layer's output."""

# ruff: noqa: UP037
# Reason: an extent in quotes is an extent.

from __future__ import annotations

from argus.kernels.rows import formulas
from argus.kernels.rows.configs import CONFIGS
from argus.kernels.rows.formulas import elements
from argus.kernels.schedules.rows import Block, Chunks, Rows
from argus.language import (
    Fragment,
    IntLike,
    Tensor,
    assert_equals,
    bf16,
    f16,
    f32,
    kernel,
    load,
    replicated,
    rsqrt,
    where,
)


def rms_norm(X: Tensor, G: Tensor, eps: Tensor, Y: Tensor, cfg: Rows) -> None:
    """Y[r, n] = X[r, n] G[n] / sqrt(mean of X[r]^2 + eps)."""
    R, N = X.shape
    block = Block(cfg, R, N)
    x, g = block.rows(X), block.columns(G)
    scale = inverse_root(block, lambda chunk: x(chunk) * x(chunk), eps)
    block.each(lambda chunk: block.store(x(chunk) * scale * g(chunk), Y, chunk))
    assert_equals(Y, formulas.rms_norm(elements(X), G, eps, N))


def rms_norm_of_sum(X: Tensor, Z: Tensor, G: Tensor, eps: Tensor, S: Tensor, Y: Tensor, cfg: Rows) -> None:
    """S = X + Z, and Y its RMS norm: of S as it is stored, rounded to its type."""
    R, N = X.shape
    block = Block(cfg, R, N)
    x, g = block.sums(X, Z), block.columns(G)
    scale = inverse_root(block, lambda chunk: x(chunk) * x(chunk), eps)

    def finish(chunk: IntLike) -> None:
        block.store(x(chunk), S, chunk)
        block.store(x(chunk) * scale * g(chunk), Y, chunk)

    block.each(finish)
    sums = formulas.added(elements(X), elements(Z))
    assert_equals(S, sums)
    assert_equals(Y, formulas.rms_norm(sums, G, eps, N))


def layer_norm(X: Tensor, G: Tensor, B: Tensor, eps: Tensor, Y: Tensor, cfg: Rows) -> None:
    """Y[r, n] = (X[r, n] - mean) G[n] / sqrt(variance + eps) + B[n], where mean and variance are those of X[r]."""
    R, N = X.shape
    block = Block(cfg, R, N)
    x, g, b = block.rows(X), block.columns(G), block.columns(B)
    mean, scale = moments(block, x, eps)
    block.each(lambda chunk: block.store((x(chunk) - mean) * scale * g(chunk) + b(chunk), Y, chunk))
    assert_equals(Y, formulas.layer_norm(elements(X), G, B, eps, N))


def layer_norm_of_sum(X: Tensor, Z: Tensor, G: Tensor, B: Tensor, eps: Tensor, S: Tensor, Y: Tensor, cfg: Rows) -> None:
    """S = X + Z, and Y its layer norm: of S as it is stored, rounded to its type."""
    R, N = X.shape
    block = Block(cfg, R, N)
    x, g, b = block.sums(X, Z), block.columns(G), block.columns(B)
    mean, scale = moments(block, x, eps)

    def finish(chunk: IntLike) -> None:
        block.store(x(chunk), S, chunk)
        block.store((x(chunk) - mean) * scale * g(chunk) + b(chunk), Y, chunk)

    block.each(finish)
    sums = formulas.added(elements(X), elements(Z))
    assert_equals(S, sums)
    assert_equals(Y, formulas.layer_norm(sums, G, B, eps, N))


def moments(block: Block, x: Chunks, eps: Tensor) -> tuple[Fragment, Fragment]:
    """The mean of each row, and 1 / sqrt(variance + eps) by the squared deviations from that mean."""
    mean = block.sum(x) / block.length

    def squared(chunk: IntLike) -> Fragment:
        v = x(chunk)
        off = where(block.within(v, chunk), v - mean, 0.0)  # beyond the end of a row, v is 0 and not the mean
        return off * off

    return mean, inverse_root(block, squared, eps)


def inverse_root(block: Block, squared: Chunks, eps: Tensor) -> Fragment:
    """1 / sqrt(mean + eps) of squares along each row."""
    least = load(eps[0], replicated(block.cfg.threads))
    return rsqrt(block.sum(squared) / block.length + least)


@kernel(configs=CONFIGS[2])
def rms_norm_bf16(
    X: Tensor["R N", bf16], G: Tensor["N", bf16], eps: Tensor["1", f32], Y: Tensor["R N", bf16], *, cfg: Rows
) -> None:
    rms_norm(X, G, eps, Y, cfg)


@kernel(configs=CONFIGS[2])
def rms_norm_f16(
    X: Tensor["R N", f16], G: Tensor["N", f16], eps: Tensor["1", f32], Y: Tensor["R N", f16], *, cfg: Rows
) -> None:
    rms_norm(X, G, eps, Y, cfg)


@kernel(configs=CONFIGS[4])
def rms_norm_f32(
    X: Tensor["R N", f32], G: Tensor["N", f32], eps: Tensor["1", f32], Y: Tensor["R N", f32], *, cfg: Rows
) -> None:
    rms_norm(X, G, eps, Y, cfg)


@kernel(configs=CONFIGS[2])
def rms_norm_of_sum_bf16(
    X: Tensor["R N", bf16],
    Z: Tensor["R N", bf16],
    G: Tensor["N", bf16],
    eps: Tensor["1", f32],
    S: Tensor["R N", bf16],
    Y: Tensor["R N", bf16],
    *,
    cfg: Rows,
) -> None:
    rms_norm_of_sum(X, Z, G, eps, S, Y, cfg)


@kernel(configs=CONFIGS[2])
def rms_norm_of_sum_f16(
    X: Tensor["R N", f16],
    Z: Tensor["R N", f16],
    G: Tensor["N", f16],
    eps: Tensor["1", f32],
    S: Tensor["R N", f16],
    Y: Tensor["R N", f16],
    *,
    cfg: Rows,
) -> None:
    rms_norm_of_sum(X, Z, G, eps, S, Y, cfg)


@kernel(configs=CONFIGS[4])
def rms_norm_of_sum_f32(
    X: Tensor["R N", f32],
    Z: Tensor["R N", f32],
    G: Tensor["N", f32],
    eps: Tensor["1", f32],
    S: Tensor["R N", f32],
    Y: Tensor["R N", f32],
    *,
    cfg: Rows,
) -> None:
    rms_norm_of_sum(X, Z, G, eps, S, Y, cfg)


@kernel(configs=CONFIGS[2])
def layer_norm_bf16(
    X: Tensor["R N", bf16],
    G: Tensor["N", bf16],
    B: Tensor["N", bf16],
    eps: Tensor["1", f32],
    Y: Tensor["R N", bf16],
    *,
    cfg: Rows,
) -> None:
    layer_norm(X, G, B, eps, Y, cfg)


@kernel(configs=CONFIGS[2])
def layer_norm_f16(
    X: Tensor["R N", f16],
    G: Tensor["N", f16],
    B: Tensor["N", f16],
    eps: Tensor["1", f32],
    Y: Tensor["R N", f16],
    *,
    cfg: Rows,
) -> None:
    layer_norm(X, G, B, eps, Y, cfg)


@kernel(configs=CONFIGS[4])
def layer_norm_f32(
    X: Tensor["R N", f32],
    G: Tensor["N", f32],
    B: Tensor["N", f32],
    eps: Tensor["1", f32],
    Y: Tensor["R N", f32],
    *,
    cfg: Rows,
) -> None:
    layer_norm(X, G, B, eps, Y, cfg)


@kernel(configs=CONFIGS[2])
def layer_norm_of_sum_bf16(
    X: Tensor["R N", bf16],
    Z: Tensor["R N", bf16],
    G: Tensor["N", bf16],
    B: Tensor["N", bf16],
    eps: Tensor["1", f32],
    S: Tensor["R N", bf16],
    Y: Tensor["R N", bf16],
    *,
    cfg: Rows,
) -> None:
    layer_norm_of_sum(X, Z, G, B, eps, S, Y, cfg)


@kernel(configs=CONFIGS[2])
def layer_norm_of_sum_f16(
    X: Tensor["R N", f16],
    Z: Tensor["R N", f16],
    G: Tensor["N", f16],
    B: Tensor["N", f16],
    eps: Tensor["1", f32],
    S: Tensor["R N", f16],
    Y: Tensor["R N", f16],
    *,
    cfg: Rows,
) -> None:
    layer_norm_of_sum(X, Z, G, B, eps, S, Y, cfg)


@kernel(configs=CONFIGS[4])
def layer_norm_of_sum_f32(
    X: Tensor["R N", f32],
    Z: Tensor["R N", f32],
    G: Tensor["N", f32],
    B: Tensor["N", f32],
    eps: Tensor["1", f32],
    S: Tensor["R N", f32],
    Y: Tensor["R N", f32],
    *,
    cfg: Rows,
) -> None:
    layer_norm_of_sum(X, Z, G, B, eps, S, Y, cfg)
