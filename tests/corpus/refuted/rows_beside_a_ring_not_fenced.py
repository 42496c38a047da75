# verdict: refuted I12
"""Rows that a role copies beside a ring are multiplied without a fence of the async proxy."""

from argus.language import (
    Ring, Tensor, assert_equals, assume, bf16, ceil_div, copy, cp_async, elements, eq, f32, fence, i32, kernel, loop, minimum, mma,
    persistent, promise, registers, role, scalar, shared, sm_90a, spread, sync, tma, total, warpgroup, wgmma, when,
)


@kernel(target=sm_90a, threads=256)
def gathered(X: Tensor["T K", bf16], tokens: Tensor["R", i32], B: Tensor["N K", bf16], C: Tensor["N R", bf16]):
    (T, K), (N, _), R = X.shape, B.shape, tokens.shape[0]
    assume(K >= 1, K % 8 == 0, R >= 1, R % 8 == 0, N % 8 == 0, T < 1 << 28, R < 1 << 20, N < 1 << 20, N * K < 1 << 40)
    promise(tokens, lambda t: (t >= 0) & (t < T))
    mm = wgmma(bf16, n=16)
    ring = Ring(4, b=shared(bf16, (64, 64), swizzle=128))
    boxes = shared(bf16, (3, 16, 64), swizzle=128)
    by = spread((16, 64), threads=128, vector=8)
    depth = ceil_div(K, 64)
    tiles = persistent((ceil_div(R, 16), ceil_div(N, 64)))

    with role("load", warpgroup(0).elected):
        for m, n in tiles:
            for k in loop(depth):
                with ring.fill() as slot:
                    copy(B.tile((64, 64), (n, k)), slot.b, via=tma, edge=0)
        ring.finish()

    with role("math", warpgroup(1)):
        acc = registers(f32, mm.C)

        def start(m, k):
            with when(k < depth):
                rows = X.gather((16, 64), lambda i, c: (scalar(tokens[minimum(16 * m + i, R - 1)]), 64 * k + c))
                copy(rows, boxes[k % 3], via=cp_async, by=by, edge=0)
            cp_async.commit()

        for m, n in tiles:
            for k in range(2):
                start(m, k)
            for k in loop(depth):
                slot = ring.wait()
                cp_async.wait(1)
                sync()
                mma(mm, acc, slot.b, boxes[k % 3], init=eq(k, 0))
                start(m, k + 2)
                wgmma.wait(0)
                ring.release()
            cp_async.wait(0)
            sync()
            copy(acc.to(bf16), C.tile((64, 16), (n, m)), edge=0)

    assert_equals(C, lambda n, r: total(lambda k: elements(X)(scalar(tokens[r]), k) * elements(B)(n, k), over=K))
