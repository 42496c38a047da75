# verdict: unknown
"""Powers of sums over all of k, in the lower rows of sums over its first half; the claim is true of the upper ones."""

from argus.language import (
    Tensor, assert_covers, assert_written_once, assume, bf16, block_id, copy, exp2, f32, gfx942, kernel, load, loop,
    mfma, mfma_f32_16x16x16_bf16, mma, registers, tag, vmem, where,
)


@kernel(target=gfx942, threads=64)
def powers(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
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
    row, _ = acc.index
    power = where(row < 8, exp2(acc), exp2(half))
    assert_covers(power.tag.k, 0, K)
    copy(power.to(bf16), C.tile((16, 16), (i, j)))
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
