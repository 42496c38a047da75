# verdict: proved
"""A block computes 32 tiles one after the other, with nothing left in flight, or unread in LDS, between them."""

from argus.language import (
    Swizzle, Tensor, assert_covers, assert_written_once, assume, bf16, block_id, ceil_div, copy, ds_read_b128,
    ds_write_b128, f32, gfx942, global_load, kernel, lds, loop, mfma, mfma_f32_32x32x8_bf16, mma, registers, shared,
    spread, sync, tag, vmem, zeros,
)

TILES = 32


@kernel(target=gfx942, threads=256)
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= 1, K % 8 == 0)
    mm = mfma(mfma_f32_32x32x8_bf16).over(waves=(2, 2), tile=(64, 64), k=32, k_run=8)
    by = spread((64, 32), threads=256, vector=8)
    lds_a, lds_b = (shared(bf16, (64, 32), swizzle=Swizzle(2, 3, 3), banks=1) for _ in "ab")
    next_a, next_b = registers(bf16, by), registers(bf16, by)
    a, b = registers(bf16, mm.A), registers(bf16, mm.B)
    m, group = block_id((ceil_div(M, 64), ceil_div(N, 64 * TILES)))
    for j in loop(TILES):
        n = group * TILES + j
        acc = zeros(f32, mm.C)
        for k in loop(ceil_div(K, 32)):
            copy(A.tile((64, 32), (m, k)), next_a, via=global_load, edge=0)
            copy(B.tile((64, 32), (n, k)), next_b, via=global_load, edge=0)
            vmem.wait(0)
            sync()
            copy(next_a, lds_a, via=ds_write_b128)
            copy(next_b, lds_b, via=ds_write_b128)
            lds.wait(0)
            sync()
            copy(lds_a, a, via=ds_read_b128)
            copy(lds_b, b, via=ds_read_b128)
            lds.wait(0)
            mma(mm, acc, a, b)
        assert_covers(acc.tag.k, 0, K)
        copy(acc.to(bf16), C.tile((64, 64), (m, n)), edge=0)
        vmem.wait(0)
        lds.wait(0)
        sync()
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
