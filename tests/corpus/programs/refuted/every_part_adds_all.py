# verdict: refuted I34
"""Split-K in which each of the four parts adds the products of all of K."""

from argus.language import (
    Swizzle, Tensor, add, assert_covers, assert_written_once, assume, bf16, block_id, ceil_div, copy, ds_read_b128,
    ds_write_b128, f32, gfx942, global_load, kernel, lds, load, loop, mfma, mfma_f32_32x32x8_bf16, mma,
    program, registers, shared, spread, sync, tag, vmem, workspace, zeros,
)

SPLITS = 4


@kernel(target=gfx942, threads=256)
def accumulate(A: Tensor["M K", bf16], B: Tensor["N K", bf16], total: Tensor["M N", f32]):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= 1, K % 8 == 0)
    mm = mfma(mfma_f32_32x32x8_bf16).over(waves=(2, 2), tile=(64, 64), k=32, k_run=8)
    by = spread((64, 32), threads=256, vector=8)
    lds_a = shared(bf16, (64, 32), swizzle=Swizzle(2, 3, 3))
    lds_b = shared(bf16, (64, 32), swizzle=Swizzle(2, 3, 3))
    m, n, z = block_id((ceil_div(M, 64), ceil_div(N, 64), SPLITS))
    next_a = registers(bf16, by)
    next_b = registers(bf16, by)
    a = registers(bf16, mm.A)
    b = registers(bf16, mm.B)
    acc = zeros(f32, mm.C)
    for k in loop(ceil_div(K, 32)):
        copy(A.tile((64, 32), (m, k)), next_a, via=global_load, edge=0)
        copy(B.tile((64, 32), (n, k)), next_b, via=global_load, edge=0)
        vmem.wait(0)
        copy(next_a, lds_a, via=ds_write_b128)
        copy(next_b, lds_b, via=ds_write_b128)
        lds.wait(0)
        sync()
        copy(lds_a, a, via=ds_read_b128)
        copy(lds_b, b, via=ds_read_b128)
        lds.wait(0)
        mma(mm, acc, a, b)
        sync()
    copy(acc, total.tile((64, 64), (m, n)), combine=add, edge=0)


@kernel(target=gfx942, threads=256)
def zero(total: Tensor["M N", f32]):
    M, N = total.shape
    m, n = block_id((ceil_div(M, 64), ceil_div(N, 64)))
    assume(N % 4 == 0, M * N < 1 << 40)
    copy(zeros(f32, spread((64, 64), threads=256, vector=4)), total.tile((64, 64), (m, n)), edge=0)


@kernel(target=gfx942, threads=256)
def rounded(total: Tensor["M N", f32], C: Tensor["M N", bf16], *, depth):
    M, N = total.shape
    by = spread((64, 64), threads=256, vector=4)
    m, n = block_id((ceil_div(M, 64), ceil_div(N, 64)))
    assume(N % 4 == 0)
    whole = load(total.tile((64, 64), (m, n)), by, edge=0)
    vmem.wait(0)
    assert_covers(whole.tag.k, 0, depth)
    copy(whole.to(bf16), C.tile((64, 64), (m, n)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))


@program
def gemm_added(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), N = A.shape, B.shape[0]
    total = workspace(f32, (M, N))
    zero(total)
    accumulate(A, B, total)
    rounded(total, C, depth=K)
