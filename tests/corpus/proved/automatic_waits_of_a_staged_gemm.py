# verdict: proved
"""One text for both targets, here gfx942: the loads of the next step stay in flight during the products."""

from argus.language import (
    Swizzle, Tensor, assert_covers, assert_equals, assume, bf16, block_id, ceil_div, copy, eq, f32, gfx942, kernel, loop,
    mma, registers, shared, sm_90a, spread, sync, tag, total, warp_mma, when,
)


@kernel(target=(gfx942, sm_90a), warps=4, waits="automatic")
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= 1, K % 8 == 0, N % 2 == 0)
    mm = warp_mma(bf16).over(waves=(2, 2), tile=(64, 64), k=32)
    by = spread((64, 32), vector=8)
    box_a, box_b = (shared(bf16, (2, 64, 32), swizzle=Swizzle(2, 3, 3)) for _ in range(2))
    m, n = block_id((ceil_div(M, 64), ceil_div(N, 64)))
    depth = ceil_div(K, 32)
    next_a, next_b = registers(bf16, by), registers(bf16, by)
    a, b, acc = registers(bf16, mm.A), registers(bf16, mm.B), registers(f32, mm.C)

    def fetch(k):
        copy(A.tile((64, 32), (m, k)), next_a, edge=0)
        copy(B.tile((64, 32), (n, k)), next_b, edge=0)

    def stage(k):
        copy(next_a, box_a[k % 2])
        copy(next_b, box_b[k % 2])

    fetch(0)
    stage(0)
    sync()
    for k in loop(depth):
        with when(k + 1 < depth):
            fetch(k + 1)
        copy(box_a[k % 2], a)
        copy(box_b[k % 2], b)
        mma(mm, acc, a, b, init=eq(k, 0))
        with when(k + 1 < depth):
            stage(k + 1)
        sync()
    assert_covers(acc.tag.k, 0, K)
    copy(acc.to(bf16), C.tile((64, 64), (m, n)), edge=0)
    assert_equals(C, lambda m, n: total(lambda k: A[m, k] * B[n, k], over=K))
