# verdict: refuted I9
"""The producer makes at most one trip per tile, the consumer one per K slice: the consumer hangs."""

from argus.language import (
    Ring, Tensor, assert_covers, assert_written_once, assume, bf16, bulk, ceil_div, copy, elected, eq, f32, fence,
    kernel, loop, minimum, mma, registers, role, shared, sm_90a, stmatrix, sync, tag, tma, warpgroup, wgmma,
)


from argus.language import *


@kernel(target=sm_90a, threads=256)
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= 1, K % 8 == 0, N % 8 == 0, ceil_div(M, 64) * ceil_div(N, 16) < 1 << 24)
    mm = wgmma(bf16, n=16)
    ring = Ring(2, a=shared(bf16, (64, 16), swizzle=32), b=shared(bf16, (16, 16), swizzle=32))
    tile = shared(bf16, (64, 16), swizzle=32)
    columns, depth = ceil_div(N, 16), ceil_div(K, 16)
    count = ceil_div(M, 64) * columns  # one persistent block takes all tiles

    with role("load", warpgroup(0).elected, registers=40):
        for t in loop(count):
            for k in loop(minimum(1, depth)):
                with ring.fill() as slot:
                    copy(A.tile((64, 16), (t // columns, k)), slot.a, via=tma, edge=0)
                    copy(B.tile((16, 16), (t % columns, k)), slot.b, via=tma, edge=0)
        ring.finish()

    with role("math", warpgroup(1), registers=232):
        acc = registers(f32, mm.C)
        for t in loop(count):
            for k in loop(depth):
                slot = ring.wait()
                mma(mm, acc, slot.a, slot.b, init=eq(k, 0))
                wgmma.wait(0)
                ring.release()
            assert_covers(acc.tag.k, 0, K)
            with elected():
                bulk.wait(0)
            sync()
            copy(acc.to(bf16), tile, via=stmatrix.x4)
            fence("async proxy")
            sync()
            with elected():
                copy(tile, C.tile((64, 16), (t // columns, t % columns)), via=tma, edge=0)
                bulk.commit()
        with elected():
            bulk.wait(0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
