# verdict: refuted I4
"""The products of the batch are stored in reverse order."""

from argus.language import (
    Swizzle, Tensor, assert_covers, assert_written_once, assume, bf16, block_id, ceil_div, copy, ds_read_b128,
    ds_write_b128, eq, f32, gfx942, global_load, kernel, lds, loop, mfma, mfma_f32_32x32x8_bf16, mma, registers, shared,
    spread, sync, tag, vmem,
)


@kernel(target=gfx942, threads=256)
def batched(A: Tensor["L M K", bf16], B: Tensor["L N K", bf16], C: Tensor["L M N", bf16]):
    (L, M, K), N = A.shape, B.shape[1]
    tag(A, lambda b, m, k: dict(b=b, m=m, k=k))
    tag(B, lambda b, n, k: dict(b=b, n=n, k=k))
    assume(K >= 1, K % 8 == 0, L * M * K < 1 << 40, L * N * K < 1 << 40, L * M * N < 1 << 40)
    mm = mfma(mfma_f32_32x32x8_bf16).over(waves=(2, 2), tile=(64, 64), k=32, k_run=8)
    by = spread((64, 32), threads=256, vector=8)
    lds_a = shared(bf16, (64, 32), swizzle=Swizzle(2, 3, 3))
    lds_b = shared(bf16, (64, 32), swizzle=Swizzle(2, 3, 3))
    m, n, b = block_id((ceil_div(M, 64), ceil_div(N, 64), L))
    next_a = registers(bf16, by)
    next_b = registers(bf16, by)
    rows = registers(bf16, mm.A)
    columns = registers(bf16, mm.B)
    acc = registers(f32, mm.C)
    for k in loop(ceil_div(K, 32)):
        copy(A[b].tile((64, 32), (m, k)), next_a, via=global_load, edge=0)
        copy(B[b].tile((64, 32), (n, k)), next_b, via=global_load, edge=0)
        vmem.wait(0)
        copy(next_a, lds_a, via=ds_write_b128)
        copy(next_b, lds_b, via=ds_write_b128)
        lds.wait(0)
        sync()
        copy(lds_a, rows, via=ds_read_b128)
        copy(lds_b, columns, via=ds_read_b128)
        lds.wait(0)
        mma(mm, acc, rows, columns, init=eq(k, 0))
        sync()
    assert_covers(acc.tag.k, 0, K)
    copy(acc.to(bf16), C[L - 1 - b].tile((64, 64), (m, n)), edge=0)
    assert_written_once(C, lambda b, m, n: dict(b=b, m=m, n=n))
