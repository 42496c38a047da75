# verdict: refuted I14
"""No barrier after mbarrier initialisation: other threads may use it too early (a test edits the traced IR)."""

from argus.core.ir import Sync
from argus.language import (
    Ring, Tensor, assert_covers, assert_written_once, assume, bf16, block_id, bulk, ceil_div, copy, elected, eq,
    f32, fence, kernel, loop, mma, registers, role, shared, sm_90a, stmatrix, sync, tag, tma, warpgroup, wgmma,
)
from property_tests.faults import edited, without


@edited(lambda kernel: without(kernel, Sync, barrier="cta"))
@kernel(target=sm_90a, threads=256)
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= 1, K % 8 == 0, N % 8 == 0)
    mm = wgmma(bf16, n=16)
    ring = Ring(2, a=shared(bf16, (64, 16), swizzle=32), b=shared(bf16, (16, 16), swizzle=32))
    box = shared(bf16, (64, 16), swizzle=32)
    m, n = block_id((ceil_div(M, 64), ceil_div(N, 16)))
    depth = ceil_div(K, 16)

    with role("load", warpgroup(0).elected, registers=40):
        for k in loop(depth):
            with ring.fill() as slot:
                copy(A.tile((64, 16), (m, k)), slot.a, via=tma, edge=0)
                copy(B.tile((16, 16), (n, k)), slot.b, via=tma, edge=0)
        ring.finish()

    with role("math", warpgroup(1), registers=232):
        acc = registers(f32, mm.C)
        for k in loop(depth):
            slot = ring.wait()
            mma(mm, acc, slot.a, slot.b, init=eq(k, 0))
            wgmma.wait(0)
            ring.release()
        assert_covers(acc.tag.k, 0, K)
        copy(acc.to(bf16), box, via=stmatrix.x4)
        fence("async proxy")
        sync()
        with elected():
            copy(box, C.tile((64, 16), (m, n)), via=tma, edge=0)
            bulk.commit()
            bulk.wait(0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
