# verdict: refuted I12
"""The bulk store (async proxy) reads the box without a proxy fence after the generic-proxy writes."""

from argus.language import (
    Ring, Tensor, assert_covers, assert_written_once, assume, bf16, block_id, bulk, ceil_div, copy, elected, eq,
    f32, kernel, loop, mma, registers, role, shared, sm_90a, stmatrix, sync, tag, tma, warpgroup, wgmma,
)


@kernel(target=sm_90a, threads=256)
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= 1, K % 8 == 0, N % 8 == 0)
    mm = wgmma(bf16, n=32)
    ring = Ring(2, a=shared(bf16, (64, 16), swizzle=32), b=shared(bf16, (32, 16), swizzle=32))
    box = shared(bf16, (64, 16), swizzle=32)
    m, n = block_id((ceil_div(M, 64), ceil_div(N, 32)))
    depth = ceil_div(K, 16)

    with role("load", warpgroup(0).elected, registers=40):
        for k in loop(depth):
            with ring.fill() as slot:
                copy(A.tile((64, 16), (m, k)), slot.a, via=tma, edge=0)
                copy(B.tile((32, 16), (n, k)), slot.b, via=tma, edge=0)
        ring.finish()

    with role("math", warpgroup(1), registers=232):
        acc = registers(f32, mm.C)
        for k in loop(depth):
            slot = ring.wait()
            mma(mm, acc, slot.a, slot.b, init=eq(k, 0))
            wgmma.wait(0)
            ring.release()
        assert_covers(acc.tag.k, 0, K)
        for j in range(2):  # two pieces through one box
            with elected():
                bulk.wait(0, of="reads")
            sync()
            copy(acc.tile((64, 16), (0, j)).to(bf16), box, via=stmatrix.x4)
            sync()
            with elected():
                copy(box, C.tile((64, 16), (m, 2 * n + j)), via=tma, edge=0)
                bulk.commit()
        with elected():
            bulk.wait(0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
