# verdict: unknown
"""Rows of a table, loaded without an `edge`, on the other target."""

from argus.language import (
    Tensor, assert_equals, assume, block_id, copy, f32, gfx942, i32, kernel, load, promise, scalar, spread, vmem,
)


@kernel(target=gfx942, threads=256)
def embedding(table: Tensor["V D", f32], ids: Tensor["T", i32], Y: Tensor["T D", f32]):
    (V, D), (T,) = table.shape, ids.shape
    promise(ids, lambda i: (0 <= i) & (i < V))
    assume(D % 64 == 0, T % 16 == 0)
    t, d = block_id((T // 16, D // 64))
    by = spread((16, 64), threads=256, vector=4)
    x = load(table.gather((16, 64), lambda i, j: (scalar(ids[16 * t + i]), 64 * d + j)), by)
    vmem.wait(0)
    copy(x, Y.tile((16, 64), (t, d)))
    assert_equals(Y, lambda t, d: table[scalar(ids[t]), d])
