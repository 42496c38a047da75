# verdict: proved
"""Grouped GEMM through LDS: a whole block either executes the barriers or skips them, depending on its expert."""

from argus.language import (
    Swizzle, Tensor, assert_covers, assert_written_once, assume, bf16, block_id, ceil_div, copy, ds_read_b128,
    ds_write_b128, eq, f32, gfx942, global_load, i32, kernel, lds, loop, mfma, mfma_f32_32x32x8_bf16, mma, promise,
    registers, scalar, shared, spread, sync, tag, vmem, when,
)


@kernel(target=gfx942, threads=256)
def grouped(A: Tensor["M K", bf16], W: Tensor["G N K", bf16], expert: Tensor["MB", i32], C: Tensor["M N", bf16]):
    (M, K), (G, N, _), (MB,) = A.shape, W.shape, expert.shape
    promise(expert, lambda e: (e == -1) | ((0 <= e) & (e < G)))
    tag(A, lambda m, k: dict(x=expert[m // 64], m=m, k=k))
    tag(W, lambda g, n, k: dict(x=g, n=n, k=k))
    assume(K >= 1, K % 8 == 0, eq(M, 64 * MB), G * N * K < 1 << 40)
    mm = mfma(mfma_f32_32x32x8_bf16).over(waves=(2, 2), tile=(64, 64), k=32, k_run=8)
    by = spread((64, 32), threads=256, vector=8)
    lds_a = shared(bf16, (64, 32), swizzle=Swizzle(2, 3, 3), banks=1)
    lds_b = shared(bf16, (64, 32), swizzle=Swizzle(2, 3, 3), banks=1)
    m, n = block_id((MB, ceil_div(N, 64)))
    depth = ceil_div(K, 32)
    next_a = registers(bf16, by)
    next_b = registers(bf16, by)
    a = registers(bf16, mm.A)
    b = registers(bf16, mm.B)
    acc = registers(f32, mm.C)

    x = scalar(expert[m])

    def prefetch(k):
        copy(A.tile((64, 32), (m, k)), next_a, via=global_load, edge=0)
        copy(W[x].tile((64, 32), (n, k)), next_b, via=global_load, edge=0)

    def stage():
        vmem.wait(0)
        copy(next_a, lds_a, via=ds_write_b128)
        copy(next_b, lds_b, via=ds_write_b128)
        lds.wait(0)

    with when(x >= 0):
        prefetch(0)
        stage()
        sync()
        for k in loop(depth):
            with when(k + 1 < depth):
                prefetch(k + 1)
            copy(lds_a, a, via=ds_read_b128)
            copy(lds_b, b, via=ds_read_b128)
            lds.wait(0)
            mma(mm, acc, a, b, init=eq(k, 0))
            sync()
            with when(k + 1 < depth):
                stage()
            sync()
        assert_covers(acc.tag.k, 0, K)
        copy(acc.to(bf16), C.tile((64, 64), (m, n)), edge=0)
    assert_written_once(
        C, lambda m, n: dict(x=expert[m // 64], m=m, n=n), where=lambda m, n: scalar(expert[m // 64]) >= 0
    )
