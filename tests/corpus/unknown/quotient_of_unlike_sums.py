# verdict: unknown
"""A quotient of sums over all of k and over its first half; its claim is true of the numerator alone."""

from argus.language import (
    Tensor, assert_covers, assert_written_once, assume, bf16, block_id, copy, f32, gfx942, kernel, load, loop, mfma,
    mfma_f32_16x16x16_bf16, mma, registers, tag, vmem,
)


@kernel(target=gfx942, threads=64)
def ratio(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    assume(M % 16 == 0, N % 16 == 0, K % 32 == 0, K >= 32)
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    mm = mfma(mfma_f32_16x16x16_bf16).over(waves=(1, 1), tile=(16, 16))
    i, j = block_id((M // 16, N // 16))
    acc, half = registers(f32, mm.C), registers(f32, mm.C)
    acc[:], half[:] = 0.0, 0.0
    for n in loop(K // 16):
        a, b = load(A.tile((16, 16), (i, n)), mm.A), load(B.tile((16, 16), (j, n)), mm.B)
        vmem.wait(0)
        mma(mm, acc, a, b)
    for n in loop(K // 32):
        a, b = load(A.tile((16, 16), (i, n)), mm.A), load(B.tile((16, 16), (j, n)), mm.B)
        vmem.wait(0)
        mma(mm, half, a, b)
    assert_covers(acc.tag.k, 0, K)
    assert_covers(half.tag.k, 0, K // 2)
    ratio = acc / half
    assert_covers(ratio.tag.k, 0, K)
    copy(ratio.to(bf16), C.tile((16, 16), (i, j)))
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
