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
    assert_equals,
    elements,
    f32,
    replicated,
    rsqrt,
    where,
)


def moments(block: Block, x: Chunks, eps: Tensor) -> tuple[Fragment, Fragment]:
    """The mean of each row, and 1 / sqrt(variance + eps) by the squared deviations from that mean."""
    mean = block.sum(x) / block.length

    def squared(chunk: IntLike) -> Fragment:
        v = x(chunk)
        if block.cfg.whole:
            return (v - mean) * (v - mean)
        off = where(block.within(v, chunk), v - mean, 0.0)  # beyond the end of a row, v is 0 and not the mean
        return off * off

    return mean, inverse_root(block, squared, eps)


def inverse_root(block: Block, squared: Chunks, eps: Tensor) -> Fragment:
    """1 / sqrt(mean + eps) of squares along each row."""
    least = block.load(eps[0], replicated(block.cfg.threads))
    return rsqrt(block.sum(squared) / block.length + least)


def rms_normed(block: Block, x: Chunks, G: Tensor, eps: Tensor) -> Chunks:
    """The RMS norm of each row, times the weight of its column."""
    g = block.columns(G)
    scale = inverse_root(block, lambda chunk: x(chunk) * x(chunk), eps)
    return lambda chunk: x(chunk) * scale * g(chunk)


def layer_normed(block: Block, x: Chunks, G: Tensor, B: Tensor, eps: Tensor) -> Chunks:
    """The layer norm of each row, times the weight of its column, plus its bias."""
    g, b = block.columns(G), block.columns(B)
    mean, scale = moments(block, x, eps)
    return lambda chunk: (x(chunk) - mean) * scale * g(chunk) + b(chunk)


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
