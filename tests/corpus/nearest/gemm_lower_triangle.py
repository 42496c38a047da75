# verdict: unknown
"""A triangle of a product: its tags are claimed, what the mask leaves out is not."""

from argus.language import (
    Tensor, assert_covers, assert_written_once, assume, bf16, block_id, ceil_div, copy, f32, kernel, load, loop,
    mfma, mma, mma_m16n8k16_bf16, registers, sm_90a, tag, where,
)


@kernel(target=sm_90a, threads=128)
def gemm_upper(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", f32]):
    (M, K), (N, _) = A.shape, B.shape
    assume(K % 8 == 0, N % 2 == 0)
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    m, n = block_id((ceil_div(M, 64), ceil_div(N, 64)))
    mm = mfma(mma_m16n8k16_bf16).over(waves=(2, 2), tile=(64, 64), k=16)
    acc = registers(f32, mm.C)
    acc[:] = 0.0
    for k in loop(ceil_div(K, 16)):
        a = load(A.tile((64, 16), (m, k)), mm.A, edge=0)
        b = load(B.tile((64, 16), (n, k)), mm.B, edge=0)
        mma(mm, acc, a, b)
    row, column = acc.index
    assert_covers(acc.tag.k, 0, K)
    copy(where(64 * n + column <= 64 * m + row, acc, 0.0), C.tile((64, 64), (m, n)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
