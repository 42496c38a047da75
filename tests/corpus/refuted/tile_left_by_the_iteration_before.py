# verdict: refuted I5
"""Each tile is stored from LDS before it is written there: the second is the one of the iteration before."""

from argus.language import (
    Swizzle,
    Tensor,
    assume,
    bf16,
    block_id,
    ceil_div,
    copy,
    ds_read_b128,
    ds_write,
    ds_write_b128,
    f32,
    gfx942,
    global_load,
    kernel,
    lds,
    loop,
    mfma,
    mfma_f32_32x32x8_bf16,
    mma,
    registers,
    shared,
    spread,
    sync,
    vmem,
    zeros,
)

TILES = 2


@kernel(target=gfx942, threads=256)
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    assume(K >= 1, K % 8 == 0, N % 8 == 0)
    mm = mfma(mfma_f32_32x32x8_bf16).over(waves=(2, 2), tile=(64, 64), k=32, k_run=8)
    by = spread((64, 32), threads=256, vector=8)
    by2 = spread((64, 64), threads=256, vector=4)
    lds_a, lds_b = (shared(bf16, (64, 32), swizzle=Swizzle(2, 3, 3)) for _ in "ab")
    staged = shared(f32, (64, 64))
    next_a, next_b = registers(bf16, by), registers(bf16, by)
    a, b = registers(bf16, mm.A), registers(bf16, mm.B)
    out = registers(f32, by2)
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
        copy(staged, out)
        lds.wait(0)
        copy(out.to(bf16), C.tile((64, 64), (m, n)), edge=0)
        sync()
        copy(acc, staged, via=ds_write)
        vmem.wait(0)
        lds.wait(0)
        sync()
