# verdict: unknown
"""Every other K tile comes from another weight tensor whose elements carry the same tags."""

from argus.language import (
    Tensor, assert_covers, assert_written_once, assume, bf16, block_id, copy, f32, gfx942, kernel, load, loop,
    mfma, mfma_f32_16x16x16_bf16, mma, registers, tag, vmem,
)


@kernel(target=gfx942, threads=64)
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], W: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    assume(M % 16 == 0, N % 16 == 0, K % 32 == 0, K >= 32)
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    tag(W, lambda n, k: dict(n=n, k=k))
    mm = mfma(mfma_f32_16x16x16_bf16).over(waves=(1, 1), tile=(16, 16))
    i, j = block_id((M // 16, N // 16))
    acc = registers(f32, mm.C)
    acc[:] = 0.0
    for n in loop(K // 32):
        a = load(A.tile((16, 16), (i, 2 * n)), mm.A)
        b = load(B.tile((16, 16), (j, 2 * n)), mm.B)
        a2 = load(A.tile((16, 16), (i, 2 * n + 1)), mm.A)
        b2 = load(W.tile((16, 16), (j, 2 * n + 1)), mm.B)
        vmem.wait(0)
        mma(mm, acc, a, b)
        mma(mm, acc, a2, b2)
    assert_covers(acc.tag.k, 0, K)
    copy(acc.to(bf16), C.tile((16, 16), (i, j)))
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
