# verdict: refuted I28
"""The place in a table is a quotient of a product of up to 2^44, which is computed in 32 bits."""

from __future__ import annotations

from argus.language import (
    Tensor, assume, block_id, copy, f32, i32, kernel, load, promise, scalar, sm_90a, spread, when,
)


@kernel(target=sm_90a, threads=128)
def placed(
    X: Tensor["R 128", f32],
    T: Tensor["N", i32],  # noqa: UP037 reason: the name of a size
    Y: Tensor["N 128", f32],
):
    (R, _), (N,) = X.shape, T.shape
    promise(T, lambda row: (row >= 0) & (row < R))
    assume(R < 1 << 28, N >= 1 << 16, N < 1 << 28)
    (b,) = block_id((N,))
    with when(R >= 1):
        row = scalar(T[65536 * b // N])
        copy(load(X[row].tile((128,), (0,)), spread((128,), threads=128, vector=1)), Y[b].tile((128,), (0,)))
