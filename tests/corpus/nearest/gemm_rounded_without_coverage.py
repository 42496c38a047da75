# verdict: unknown
"""A product that is rounded, by tags, without a claim about the sum over k."""

from argus.language import (
    Tensor, assert_written_once, assume, bf16, block_id, ceil_div, copy, f32, gfx942, kernel, load, loop, mfma,
    mfma_f32_32x32x8_bf16, mma, registers, tag, vmem,
)


@kernel(target=gfx942, threads=256)
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", f32]):
    (M, K), (N, _) = A.shape, B.shape
    assume(K % 8 == 0, N % 2 == 0)
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    m, n = block_id((ceil_div(M, 64), ceil_div(N, 64)))
    mm = mfma(mfma_f32_32x32x8_bf16).over(waves=(2, 2), tile=(64, 64), k=8)
    acc = registers(f32, mm.C)
    acc[:] = 0.0
    for k in loop(ceil_div(K, 8)):
        a = load(A.tile((64, 8), (m, k)), mm.A, edge=0)
        b = load(B.tile((64, 8), (n, k)), mm.B, edge=0)
        vmem.wait(0)
        mma(mm, acc, a, b)
    copy(acc.to(bf16).to(f32), C.tile((64, 64), (m, n)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
