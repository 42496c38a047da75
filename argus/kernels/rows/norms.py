"""RMS norm and layer norm of rows, also of the sum of two tensors, such as a residual stream and a layer's output."""

# Without `from __future__ import annotations`: those that name a type are evaluated where they stand.

from argus.kernels.rows import formulas
from argus.kernels.rows.configs import TYPES, row_kernel
from argus.kernels.schedules.rows import Block, Chunks, Rows
from argus.language import (
    DType,
    Fragment,
    IntLike,
    Template,
    Tensor,
    add,
    assert_equals,
    elements,
    f32,
    fma,
    replicated,
    rsqrt,
    thread,
    where,
)


def moments(block: Block, x: Chunks, eps: Tensor) -> tuple[Fragment, Fragment]:
    """The mean of each row, and 1 / sqrt(variance + eps) by the squared deviations from that mean."""
    least = block.load(eps[0], replicated(block.cfg.threads))
    if block.cfg.whole and block.cfg.blocks > 1:
        mean, variance = _of_blocks(block, x)
        return mean, rsqrt(variance + least)
    mean = block.sum(x) / block.count

    def deviation(chunk: IntLike) -> Fragment:
        v = x(chunk)
        if block.cfg.whole:
            return v - mean
        return where(block.within(v, chunk), v - mean, 0.0)  # beyond the end of a row, v is 0 and not the mean

    return mean, rsqrt(block.sum_of_squares(deviation) / block.count + least)


def _of_blocks(block: Block, x: Chunks) -> tuple[Fragment, Fragment]:
    """The mean and variance of whole rows that blocks share: one exchange, of the means and variances of their parts.

    The squared deviations from the mean are those from a block's mean, and its number of elements times the square of
    the difference of both means (Chan, Golub, LeVeque 1979).
    """
    count, blocks = block.cfg.width, block.cfg.blocks
    own = block.of_own(x, add) / count
    means, sums = block.exchanged(own, block.squares_of_own(lambda chunk: x(chunk) - own))
    mean = means.sum(1, within=thread) / blocks
    off = means - mean
    return mean, (sums + off * off * count).sum(1, within=thread) / (count * blocks)


def normed(block: Block, dtype: DType, x: Chunks, weight: Chunks, bias: Chunks, eps: Tensor) -> Chunks:
    """The norm of each row by its mean and variance, times a weight, plus a bias."""
    mean, scale = moments(block, x, eps)
    if dtype is f32:
        return lambda chunk: fma((x(chunk) - mean) * scale, weight(chunk), bias(chunk))
    # x has at most 11 bits, so that the difference of products of 24 bits is exact enough
    below = -(mean * scale)
    return lambda chunk: fma(fma(x(chunk), scale, below), weight(chunk), bias(chunk))


def rms_normed(block: Block, x: Chunks, G: Tensor, eps: Tensor) -> Chunks:
    """The RMS norm of each row, times the weight of its column."""
    g, least = block.columns(G), block.load(eps[0], replicated(block.cfg.threads))
    scale = rsqrt(block.sum_of_squares(x) / block.count + least)
    return lambda chunk: x(chunk) * scale * g(chunk)


def layer_normed(block: Block, x: Chunks, G: Tensor, B: Tensor, eps: Tensor) -> Chunks:
    """The layer norm of each row, times the weight of its column, plus its bias."""
    return normed(block, G.dtype, x, block.columns(G), block.columns(B), eps)


def store_with_sums(block: Block, sums: Chunks, S: Tensor, found: Chunks, Y: Tensor) -> None:
    """Store sums, and what is computed from them."""

    def finish(chunk: IntLike) -> None:
        block.store(sums(chunk), S, chunk)
        block.store(found(chunk), Y, chunk)

    block.each(finish)


def rms_norm(dtype: DType) -> Template:
    """Y[r, n] = X[r, n] G[n] / sqrt(mean of X[r]^2 + eps)."""

    @row_kernel("rms_norm", dtype, "squared")
    def made(
        X: Tensor["R N", dtype], G: Tensor["N", dtype], eps: Tensor["1", f32], Y: Tensor["R N", dtype], *, cfg: Rows
    ) -> None:
        R, N = X.shape
        block = Block(cfg, R, N)
        found = rms_normed(block, block.rows(X), G, eps)
        block.each(lambda chunk: block.store(found(chunk), Y, chunk))
        assert_equals(Y, formulas.rms_norm(elements(X), G, eps, N))

    return made


def rms_norm_of_sum(dtype: DType) -> Template:
    """S = X + Z, and Y its RMS norm: of S as it is stored, rounded to its type."""

    @row_kernel("rms_norm_of_sum", dtype, "two")
    def made(
        X: Tensor["R N", dtype],
        Z: Tensor["R N", dtype],
        G: Tensor["N", dtype],
        eps: Tensor["1", f32],
        S: Tensor["R N", dtype],
        Y: Tensor["R N", dtype],
        *,
        cfg: Rows,
    ) -> None:
        R, N = X.shape
        block = Block(cfg, R, N)
        x = block.sums(X, Z)
        store_with_sums(block, x, S, rms_normed(block, x, G, eps), Y)
        sums = formulas.added(elements(X), elements(Z))
        assert_equals(S, sums)
        assert_equals(Y, formulas.rms_norm(sums, G, eps, N))

    return made


def layer_norm(dtype: DType) -> Template:
    """Y[r, n] = (X[r, n] - mean) G[n] / sqrt(variance + eps) + B[n], where mean and variance are those of X[r]."""

    @row_kernel("layer_norm", dtype, "thrice")
    def made(
        X: Tensor["R N", dtype],
        G: Tensor["N", dtype],
        B: Tensor["N", dtype],
        eps: Tensor["1", f32],
        Y: Tensor["R N", dtype],
        *,
        cfg: Rows,
    ) -> None:
        R, N = X.shape
        block = Block(cfg, R, N)
        found = layer_normed(block, block.rows(X), G, B, eps)
        block.each(lambda chunk: block.store(found(chunk), Y, chunk))
        assert_equals(Y, formulas.layer_norm(elements(X), G, B, eps, N))

    return made


def layer_norm_of_sum(dtype: DType) -> Template:
    """S = X + Z, and Y its layer norm: of S as it is stored, rounded to its type."""

    @row_kernel("layer_norm_of_sum", dtype, "two")
    def made(
        X: Tensor["R N", dtype],
        Z: Tensor["R N", dtype],
        G: Tensor["N", dtype],
        B: Tensor["N", dtype],
        eps: Tensor["1", f32],
        S: Tensor["R N", dtype],
        Y: Tensor["R N", dtype],
        *,
        cfg: Rows,
    ) -> None:
        R, N = X.shape
        block = Block(cfg, R, N)
        x = block.sums(X, Z)
        store_with_sums(block, x, S, layer_normed(block, x, G, B, eps), Y)
        sums = formulas.added(elements(X), elements(Z))
        assert_equals(S, sums)
        assert_equals(Y, formulas.layer_norm(sums, G, B, eps, N))

    return made


rms_norm_bf16, rms_norm_f16, rms_norm_f32 = map(rms_norm, TYPES)
rms_norm_of_sum_bf16, rms_norm_of_sum_f16, rms_norm_of_sum_f32 = map(rms_norm_of_sum, TYPES)
layer_norm_bf16, layer_norm_f16, layer_norm_f32 = map(layer_norm, TYPES)
layer_norm_of_sum_bf16, layer_norm_of_sum_f16, layer_norm_of_sum_f32 = map(layer_norm_of_sum, TYPES)
