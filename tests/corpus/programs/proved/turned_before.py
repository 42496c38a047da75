# verdict: proved
"""C = A @ B with B transposed by an earlier launch: the tags of B hold across the launch for its transpose."""

from argus.language import (
    TV, Layout, Swizzle, Tensor, assert_covers, assert_written_once, assume, bf16, block_id, ceil_div, copy,
    ds_read_b128, ds_write_b128, eq, f32, gfx942, global_load, kernel, lds, load, loop, mfma, mfma_f32_32x32x8_bf16,
    mma, program, registers, shared, spread, sync, tag, vmem, workspace,
)


@kernel(target=gfx942, threads=256)
def turn(B: Tensor["K N", bf16], Bt: Tensor["N K", bf16]):
    K, N = B.shape
    tag(B, lambda k, n: dict(n=n, k=k))
    assume(K >= 1, K % 8 == 0)
    by = TV(Layout((64, 4), (1, 8 * 64)), Layout((8, 2), (64, 32 * 64)), (64, 64))
    n, k = block_id((ceil_div(N, 64), ceil_div(K, 64)))
    turned = load(B.tile((64, 64), (k, n)).T, by, edge=0)
    vmem.wait(0)
    copy(turned, Bt.tile((64, 64), (n, k)), edge=0)
    assert_written_once(Bt, lambda n, k: dict(n=n, k=k))


@kernel(target=gfx942, threads=256)
def gemm(A: Tensor["M K", bf16], Bt: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), N = A.shape, Bt.shape[0]
    tag(A, lambda m, k: dict(m=m, k=k))
    assume(K >= 1, K % 8 == 0)
    mm = mfma(mfma_f32_32x32x8_bf16).over(waves=(2, 2), tile=(64, 64), k=32, k_run=8)
    by = spread((64, 32), threads=256, vector=8)
    lds_a = shared(bf16, (64, 32), swizzle=Swizzle(2, 3, 3))
    lds_b = shared(bf16, (64, 32), swizzle=Swizzle(2, 3, 3))
    m, n = block_id((ceil_div(M, 64), ceil_div(N, 64)))
    next_a = registers(bf16, by)
    next_b = registers(bf16, by)
    a = registers(bf16, mm.A)
    b = registers(bf16, mm.B)
    acc = registers(f32, mm.C)
    for k in loop(ceil_div(K, 32)):
        copy(A.tile((64, 32), (m, k)), next_a, via=global_load, edge=0)
        copy(Bt.tile((64, 32), (n, k)), next_b, via=global_load, edge=0)
        vmem.wait(0)
        copy(next_a, lds_a, via=ds_write_b128)
        copy(next_b, lds_b, via=ds_write_b128)
        lds.wait(0)
        sync()
        copy(lds_a, a, via=ds_read_b128)
        copy(lds_b, b, via=ds_read_b128)
        lds.wait(0)
        mma(mm, acc, a, b, init=eq(k, 0))
        sync()
    assert_covers(acc.tag.k, 0, K)
    copy(acc.to(bf16), C.tile((64, 64), (m, n)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))


@program
def product(A: Tensor["M K", bf16], B: Tensor["K N", bf16], C: Tensor["M N", bf16]):
    K, N = B.shape
    Bt = workspace(bf16, (N, K))
    turn(B, Bt)
    gemm(A, Bt, C)
