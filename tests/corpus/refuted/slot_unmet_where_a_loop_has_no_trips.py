# verdict: refuted I5
"""The barrier before the release is in an earlier loop, which may have no trips: reads may still be in flight."""

from argus.language import (
    Tensor, assert_written_once, assume, barrier, ceil_div, copy, elected, f32, kernel, load, loop, role, shared,
    sm_90a, spread, sync, tag, tma, warpgroup,
)


@kernel(target=sm_90a, threads=256)
def first_columns(X: Tensor["M K", f32], Y: Tensor["M N", f32]):
    (M, K), N = X.shape, Y.shape[1]
    tag(X, lambda m, k: dict(m=m, k=k))
    assume(M >= 1, K >= 128, K % 128 == 0, K < 1 << 20, N % 4 == 0)
    x = shared(f32, (1, 1, 128))
    full, empty = barrier(1, of=1), barrier(1, of=1)
    depth = ceil_div(K, 128)
    half = (depth - 1) // 2
    with role("load", warpgroup(0).elected, registers=40):
        for n in loop(depth):
            empty[0].wait(n - 1)
            full[0].arrive(bytes=512)
            copy(X.tile((1, 128), (0, n)), x[0], via=tma, edge=0, signal=full[0])
        for s in range(1):
            empty[0].wait(depth - 1)
    with role("math", warpgroup(1)):
        by = spread((1, 128), threads=128, vector=1)
        full[0].wait(0)
        held = load(x[0], by)
        for n in loop(half):
            sync()
            with elected():
                empty[0].arrive()
            full[0].wait(n + 1)
            load(x[0], by)
            sync()
        for n in loop(half, depth - 1):
            with elected():
                empty[0].arrive()
            full[0].wait(n + 1)
            load(x[0], by)
            sync()
        sync()
        with elected():
            empty[0].arrive()
        copy(held, Y.tile((1, 128), (0, 0)), edge=0)
    assert_written_once(Y, lambda m, n: dict(m=m, k=n), where=lambda m, n: (m < 1) & (n < 128))
