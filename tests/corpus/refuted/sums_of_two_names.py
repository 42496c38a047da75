# verdict: refuted I2
"""Two products are summed over different tags, but the assertion mentions only one of them."""

from argus.language import (
    Tensor, assert_covers, assert_written_once, assume, bf16, block_id, ceil_div, copy, eq, f32, gfx942, global_load,
    kernel, load, loop, mfma, mfma_f32_16x16x16_bf16, mma, registers, tag, vmem,
)

MM = mfma(mfma_f32_16x16x16_bf16).over(waves=(1, 1), tile=(16, 16), k=16)


@kernel(target=gfx942, threads=64)
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], A2: Tensor["M K", bf16], B2: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    tag(A2, lambda m, k: dict(m=m, j=k+K))
    tag(B2, lambda n, k: dict(n=n, j=k+K))
    assume(K >= 1, K % 16 == 0, M%16==0, N%16==0)
    m, n = block_id((ceil_div(M, 16), ceil_div(N, 16)))
    acc = registers(f32, MM.C)
    for k in loop(ceil_div(K, 16)):
        a = load(A.tile((16,16),(m,k)), MM.A, via=global_load)
        b = load(B.tile((16,16),(n,k)), MM.B, via=global_load)
        vmem.wait(0)
        mma(MM, acc, a, b, init=eq(k,0))
    for k in loop(ceil_div(K, 16)):
        a = load(A2.tile((16,16),(m,k)), MM.A, via=global_load)
        b = load(B2.tile((16,16),(n,k)), MM.B, via=global_load)
        vmem.wait(0)
        mma(MM, acc, a, b)
    assert_covers(acc.tag.k, 0, K+K)
    copy(acc.to(bf16), C.tile((16,16),(m,n)))
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
