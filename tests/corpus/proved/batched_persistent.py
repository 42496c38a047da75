# verdict: proved
"""C[b] = A[b] @ B[b]^T with a ring; two persistent blocks take the tiles of the whole batch alternately."""

from argus.language import (
    Ring, Tensor, assert_covers, assert_written_once, assume, bf16, ceil_div, copy, eq, f32, kernel, loop, mma,
    persistent, registers, role, shared, sm_90a, tag, tma, warpgroup, wgmma,
)


@kernel(target=sm_90a, threads=256)
def batched(A: Tensor["L M K", bf16], B: Tensor["L N K", bf16], C: Tensor["L M N", bf16]):
    (L, M, K), N = A.shape, B.shape[1]
    tag(A, lambda b, m, k: dict(b=b, m=m, k=k))
    tag(B, lambda b, n, k: dict(b=b, n=n, k=k))
    assume(K >= 1, K % 8 == 0, N % 8 == 0, M >= 1, N >= 1, L >= 1)
    assume(L * M * K < 1 << 40, L * N * K < 1 << 40, L * M * N < 1 << 40)
    assume(L * ceil_div(M, 64) * ceil_div(N, 16) < 1 << 20, L * ceil_div(N, 16) < 1 << 20)
    mm = wgmma(bf16, n=16)
    ring = Ring(4, a=shared(bf16, (64, 16), swizzle=32), b=shared(bf16, (16, 16), swizzle=32))
    tiles = persistent((L, ceil_div(M, 64), ceil_div(N, 16)), blocks=2)
    depth = ceil_div(K, 16)

    with role("load", warpgroup(0).elected, registers=40):
        for b, m, n in tiles:
            for k in loop(depth):
                with ring.fill() as slot:
                    copy(A[b].tile((64, 16), (m, k)), slot.a, via=tma, edge=0)
                    copy(B[b].tile((16, 16), (n, k)), slot.b, via=tma, edge=0)
        ring.finish()

    with role("math", warpgroup(1), registers=232):
        acc = registers(f32, mm.C)
        for b, m, n in tiles:
            for k in loop(depth):
                slot = ring.wait()
                mma(mm, acc, slot.a, slot.b, init=eq(k, 0))
                wgmma.wait(0)
                ring.release()
            assert_covers(acc.tag.k, 0, K)
            copy(acc.to(bf16), C[b].tile((64, 16), (m, n)), edge=0)
    assert_written_once(C, lambda b, m, n: dict(b=b, m=m, n=n))
