# verdict: refuted I6
"""Ping-pong switches to a second pair of barriers for its second loop, but does not restart the phase count."""
from argus.language import (
    Ring, Tensor, assert_covers, assert_written_once, assume, barrier, bf16, block_id, ceil_div, copy, elected, f32,
    kernel, loop, mma, role, shared, sm_90a, tag, tma, warpgroup, warpgroups, wgmma, zeros,
)


@kernel(target=sm_90a, threads=384)
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= 1, K % 8 == 0, N % 8 == 0, M <= 2**18, N <= 2**18)
    mm = wgmma(bf16, n=16)
    ring = Ring(2, a=shared(bf16, (128, 16), swizzle=32), b=shared(bf16, (16, 16), swizzle=32))
    turn = barrier(1, of=2)
    again = barrier(1, of=2)
    m, n = block_id((ceil_div(M, 128), ceil_div(N, 16)))
    depth = ceil_div(K, 16)
    half = ceil_div(depth, 2)

    with role("load", warpgroup(0).elected, registers=40):
        for k in loop(depth):
            with ring.fill() as slot:
                copy(A.tile((128, 16), (m, k)), slot.a, via=tma, edge=0)
                copy(B.tile((16, 16), (n, k)), slot.b, via=tma, edge=0)

    with role("math", warpgroups(1, 2), registers=232) as wg:
        acc = zeros(f32, mm.C)
        for k in loop(half):
            turn[wg].wait(k + wg - 1)
            slot = ring.wait()
            mma(mm, acc, slot.a.tile((64, 16), (wg, 0)), slot.b)
            with elected():
                turn[(wg + 1) % 2].arrive()
            wgmma.wait(0)
            ring.release()
        for k in loop(half, depth):
            again[wg].wait(k + wg - 1)
            slot = ring.wait()
            mma(mm, acc, slot.a.tile((64, 16), (wg, 0)), slot.b)
            with elected():
                again[(wg + 1) % 2].arrive()
            wgmma.wait(0)
            ring.release()
        assert_covers(acc.tag.k, 0, K)
        copy(acc.to(bf16), C.tile((64, 16), (2 * m + wg, n)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
