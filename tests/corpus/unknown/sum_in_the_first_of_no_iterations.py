# verdict: unknown
"""The first of N iterations adds a sum of eight elements; there may be no iteration."""

from argus.language import (
    TV, Layout, Tensor, assert_covers, assert_written_once, assume, block_id, copy, f32, kernel, load, loop, registers,
    sm_90a, tag, thread, where,
)


@kernel(target=sm_90a, threads=32)
def sums(X: Tensor["R 8", f32], S: Tensor["N", f32], Y: Tensor["R", f32]):
    (R, _), (N,) = X.shape, S.shape
    tag(X, lambda r, n: dict(r=r, n=n))
    assume(R % 32 == 0)
    (i,) = block_id((R // 32,))
    x = load(X.tile((32, 8), (i, 0)), TV(Layout((32,), (1,)), Layout((8,), (32,)), (32, 8)))
    own, total = x.sum(1, within=thread), registers(f32, TV(Layout((32,), (1,)), Layout((1,), (0,)), (32,)))
    total[:] = 0.0
    for k in loop(N):
        total[:] = total + where(0 * own.index[0] + k < 1, own, 0.0)
    assert_covers(total.tag.n, 0, 8)
    copy(total, Y.tile((32,), (i,)))
    assert_written_once(Y, lambda r: dict(r=r))
