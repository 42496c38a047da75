# verdict: proved
"""Blocks start at staggered K steps and wrap around within one loop: its steps are those of K in another order."""

from argus.language import (
    Swizzle, Tensor, assert_covers, assert_written_once, assume, bf16, block_id, buffer_load_lds, ceil_div, copy,
    ds_read_b128, f32, gfx942, kernel, lds, loop, mfma, mfma_f32_32x32x8_bf16, mma, registers, shared, spread, sync,
    tag, vmem, when, zeros,
)


@kernel(target=gfx942, threads=256)
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= 1, K % 8 == 0, M * K <= (1 << 31) - 8, N * K <= (1 << 31) - 8)
    mm = mfma(mfma_f32_32x32x8_bf16).over(waves=(2, 2), tile=(64, 64), k=32, k_run=8)
    by = spread((64, 32), threads=256, vector=2)
    lds_a = shared(bf16, (2, 64, 32), swizzle=Swizzle(2, 3, 3), banks=1)
    lds_b = shared(bf16, (2, 64, 32), swizzle=Swizzle(2, 3, 3), banks=1)
    m, n = block_id((ceil_div(M, 64), ceil_div(N, 64)))
    depth = ceil_div(K, 32)
    a = registers(bf16, mm.A)
    b = registers(bf16, mm.B)
    acc = zeros(f32, mm.C)

    def fetch(step):
        k = (step + (m + n) % 8) % depth
        copy(A.tile((64, 32), (m, k)), lds_a[step % 2], via=buffer_load_lds, by=by, edge=0)
        copy(B.tile((64, 32), (n, k)), lds_b[step % 2], via=buffer_load_lds, by=by, edge=0)

    fetch(0)
    vmem.wait(0)
    sync()
    for step in loop(depth):
        with when(step + 1 < depth):
            fetch(step + 1)
        copy(lds_a[step % 2], a, via=ds_read_b128)
        copy(lds_b[step % 2], b, via=ds_read_b128)
        lds.wait(0)
        mma(mm, acc, a, b)
        vmem.wait(0)
        sync()
    assert_covers(acc.tag.k, 0, K)
    copy(acc.to(bf16), C.tile((64, 64), (m, n)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
