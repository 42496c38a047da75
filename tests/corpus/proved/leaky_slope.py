# verdict: proved
"""A matrix product with a slope for negative sums: one of two values, chosen by a comparison of elements."""

from argus.language import (
    Ring, Tensor, assert_covers, assert_written_once, assume, bf16, block_id, ceil_div, copy, eq, f32, kernel, loop,
    mma, registers, role, shared, sm_90a, tag, tma, warpgroup, wgmma, where,
)


@kernel(target=sm_90a, threads=256)
def leaky(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= 1, K % 8 == 0, N % 8 == 0)
    mm = wgmma(bf16, n=16)
    ring = Ring(2, a=shared(bf16, (64, 16), swizzle=32), b=shared(bf16, (16, 16), swizzle=32))
    m, n = block_id((ceil_div(M, 64), ceil_div(N, 16)))

    with role("load", warpgroup(0).elected):
        for k in loop(ceil_div(K, 16)):
            with ring.fill() as slot:
                copy(A.tile((64, 16), (m, k)), slot.a, via=tma, edge=0)
                copy(B.tile((16, 16), (n, k)), slot.b, via=tma, edge=0)

    with role("math", warpgroup(1)):
        acc = registers(f32, mm.C)
        for k in loop(ceil_div(K, 16)):
            slot = ring.wait()
            mma(mm, acc, slot.a, slot.b, init=eq(k, 0))
            wgmma.wait(0)
            ring.release()
        assert_covers(acc.tag.k, 0, K)
        y = where(acc < 0.0, acc * 0.125, acc)
        copy(y.to(bf16), C.tile((64, 16), (m, n)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
