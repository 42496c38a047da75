# verdict: unknown
"""Rows of a table by an integer each; the loads have no `edge`, so that they are not read as a gather."""

from argus.language import (
    Tensor, assert_equals, assume, bf16, block_id, copy, i32, kernel, load, promise, scalar, sm_90a, spread,
)


@kernel(target=sm_90a, threads=128)
def embedding(table: Tensor["V D", bf16], ids: Tensor["T", i32], Y: Tensor["T D", bf16]):
    (V, D), (T,) = table.shape, ids.shape
    promise(ids, lambda i: (0 <= i) & (i < V))
    assume(D % 64 == 0, T % 16 == 0)
    t, d = block_id((T // 16, D // 64))
    by = spread((16, 64), threads=128, vector=8)
    x = load(table.gather((16, 64), lambda i, j: (scalar(ids[16 * t + i]), 64 * d + j)), by)
    copy(x, Y.tile((16, 64), (t, d)))
    assert_equals(Y, lambda t, d: table[scalar(ids[t]), d])
