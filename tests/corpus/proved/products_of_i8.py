# verdict: proved
"""Products of 8-bit integers, summed in i32: K is so small that every sum fits."""

from argus.language import (
    Tensor, assert_covers, assert_written_once, assume, block_id, buffer_load, ceil_div, copy, gfx942, global_store,
    i32, i8, kernel, loop, mfma, mfma_i32_16x16x32_i8, mma, registers, tag, vmem, zeros,
)


@kernel(target=gfx942, threads=64)
def gemm(A: Tensor["M K", i8], B: Tensor["N K", i8], C: Tensor["M N", i32]):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= 1, K % 8 == 0, K < 1 << 17, M * K < 1 << 31, N * K < 1 << 31)
    mm = mfma(mfma_i32_16x16x32_i8).over(waves=(1, 1), tile=(32, 16), k=32)
    m, n = block_id((ceil_div(M, 32), ceil_div(N, 16)))
    a = registers(i8, mm.A)
    b = registers(i8, mm.B)
    acc = zeros(i32, mm.C)
    for k in loop(ceil_div(K, 32)):
        copy(A.tile((32, 32), (m, k)), a, via=buffer_load, edge=0)
        copy(B.tile((16, 32), (n, k)), b, via=buffer_load, edge=0)
        vmem.wait(0)
        mma(mm, acc, a, b)
    assert_covers(acc.tag.k, 0, K)
    copy(acc, C.tile((32, 16), (m, n)), via=global_store, edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
