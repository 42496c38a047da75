# verdict: refuted I5
"""The held rows are released while their first product may still be reading them."""

from argus.language import (
    Ring, Tensor, assert_covers, assert_written_once, assume, bf16, ceil_div, copy, eq, f32, kernel, loop, mma,
    persistent, registers, role, shared, sm_90a, tag, tma, warpgroup, wgmma,
)


@kernel(target=sm_90a, threads=256)
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K <= 64, K >= 1, K % 8 == 0, N % 8 == 0, M <= 2**18, N <= 2**18)
    mm = wgmma(bf16, n=16)
    rows = Ring(1, a=shared(bf16, (64, 64), swizzle=128))
    columns = Ring(2, b=shared(bf16, (16, 16), swizzle=32))
    tiles = persistent((ceil_div(M, 64), ceil_div(N, 16)), blocks=1)

    with role("load", warpgroup(0).elected, registers=40):
        for m, n in tiles:
            with rows.fill() as slot:
                copy(A.tile((64, 64), (m, 0)), slot.a, via=tma, edge=0)
            for k in loop(4):
                with columns.fill() as slot:
                    copy(B.tile((16, 16), (n, k)), slot.b, via=tma, edge=0)

    with role("math", warpgroup(1), registers=232):
        acc = registers(f32, mm.C)
        for m, n in tiles:
            left = rows.wait()
            rows.release()
            for k in loop(4):
                right = columns.wait()
                mma(mm, acc, left.a.tile((64, 16), (0, k)), right.b, init=eq(k, 0))
                wgmma.wait(0)
                columns.release()
            assert_covers(acc.tag.k, 0, K)
            copy(acc.to(bf16), C.tile((64, 16), (m, n)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
