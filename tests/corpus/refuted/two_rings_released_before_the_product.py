# verdict: refuted I10
"""One of a product's two slots is released while the product still reads it."""

from argus.language import (
    Ring, Tensor, assert_covers, assert_written_once, assume, bf16, block_id, ceil_div, copy, eq, f32, kernel, loop,
    mma, registers, role, shared, sm_90a, tag, tma, warpgroup, wgmma,
)


@kernel(target=sm_90a, threads=256)
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= 1, K % 8 == 0, N % 8 == 0)
    mm = wgmma(bf16, n=16)
    rows = Ring(2, a=shared(bf16, (64, 16), swizzle=32))
    columns = Ring(3, b=shared(bf16, (16, 16), swizzle=32))
    m, n = block_id((ceil_div(M, 64), ceil_div(N, 16)))
    depth = ceil_div(K, 16)

    with role("load", warpgroup(0).elected, registers=40):
        for k in loop(depth):
            with rows.fill() as slot:
                copy(A.tile((64, 16), (m, k)), slot.a, via=tma, edge=0)
            with columns.fill() as slot:
                copy(B.tile((16, 16), (n, k)), slot.b, via=tma, edge=0)

    with role("math", warpgroup(1), registers=232):
        acc = registers(f32, mm.C)
        for k in loop(depth):
            left = rows.wait()
            right = columns.wait()
            mma(mm, acc, left.a, right.b, init=eq(k, 0))
            rows.release()
            wgmma.wait(0)
            columns.release()
        assert_covers(acc.tag.k, 0, K)
        copy(acc.to(bf16), C.tile((64, 16), (m, n)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
