# verdict: unknown
"""A product of matrices whose depths have two names."""

from argus.language import (
    Tensor, assert_equals, assume, bf16, block_id, ceil_div, copy, f32, kernel, load, loop, mfma, mma,
    mma_m16n8k16_bf16, registers, sm_90a, total,
)


@kernel(target=sm_90a, threads=128)
def gemm(A: Tensor["M K", bf16], B: Tensor["N L", bf16], C: Tensor["M N", f32]):
    (M, K), (N, L) = A.shape, B.shape
    assume(K % 8 == 0, L % 8 == 0, N % 2 == 0)
    m, n = block_id((ceil_div(M, 64), ceil_div(N, 64)))
    mm = mfma(mma_m16n8k16_bf16).over(waves=(2, 2), tile=(64, 64), k=16)
    acc = registers(f32, mm.C)
    acc[:] = 0.0
    for k in loop(ceil_div(K, 16)):
        a = load(A.tile((64, 16), (m, k)), mm.A, edge=0)
        b = load(B.tile((64, 16), (n, k)), mm.B, edge=0)
        mma(mm, acc, a, b)
    copy(acc, C.tile((64, 64), (m, n)), edge=0)
    assert_equals(C, lambda m, n: total(lambda k: A[m, k] * B[n, k], over=K))
