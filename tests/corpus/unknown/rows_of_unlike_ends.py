# verdict: unknown
"""Two tiles that overlap: either flag alone keeps them apart, but block 0 by the one and block 1 by the other do not."""

from __future__ import annotations

from argus.language import (
    Tensor, block_id, copy, f32, i32, kernel, load, otherwise, scalar, sm_90a, spread, when,
)


@kernel(target=sm_90a, threads=256)
def apart(X: Tensor["192 64", f32], flags: Tensor["2", i32], Y: Tensor["192 64", f32]):  # noqa: UP037 reason: a size
    (b,) = block_id((2,))
    rows = load(X.rows(64 * b).tile((128, 64), (0, 0)), spread((128, 64), threads=256, vector=4), edge=0)
    with when(scalar(flags[b]) >= 1):
        copy(rows, Y.rows(64 * b, 128 * (1 - b)).tile((128, 64), (0, 0)), edge=0)
    with otherwise():
        copy(rows, Y.rows(64 * b, 64 * b + 64).tile((128, 64), (0, 0)), edge=0)
