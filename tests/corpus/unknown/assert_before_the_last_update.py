# verdict: unknown
"""The assertion precedes the last product into the accumulator, so it does not cover what is stored."""

from argus.language import (
    Tensor, assert_covers, assert_written_once, assume, bf16, block_id, ceil_div, copy, eq, f32, gfx942, global_load,
    kernel, load, loop, mfma, mfma_f32_16x16x16_bf16, mma, registers, tag, vmem,
)

MM = mfma(mfma_f32_16x16x16_bf16).over(waves=(1, 1), tile=(16, 16), k=16)


@kernel(target=gfx942, threads=64)
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= 1, K % 4 == 0)
    m, n = block_id((ceil_div(M, 16), ceil_div(N, 16)))
    acc = registers(f32, MM.C)
    for k in loop(ceil_div(K, 16)):
        a = load(A.tile((16,16),(m,k)), MM.A, via=global_load, edge=0)
        b = load(B.tile((16,16),(n,k)), MM.B, via=global_load, edge=0)
        vmem.wait(0)
        mma(MM, acc, a, b, init=eq(k,0))
    assert_covers(acc.tag.k, 0, K)
    a = load(A.tile((16,16),(m,0)), MM.A, via=global_load, edge=0)
    b = load(B.tile((16,16),(n,0)), MM.B, via=global_load, edge=0)
    vmem.wait(0)
    mma(MM, acc, a, b)
    copy(acc.to(bf16), C.tile((16,16),(m,n)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
