# verdict: proved
"""Block-scaled product of one K block: the sum times its row and column scales, as two-level accumulation adds it."""

from argus.language import (
    Tensor, assert_covers, assert_written_once, assume, bf16, block_id, copy, eq, f32, gfx942, global_load, kernel,
    load, mfma, mfma_f32_32x32x8_bf16, mma, registers, tag, vmem,
)


@kernel(target=gfx942, threads=256)
def scaled(
    A: Tensor["M K", bf16], SA: Tensor["KB M", f32], B: Tensor["N K", bf16], SB: Tensor["KB N", f32],
    P: Tensor["KB M N", f32],
):
    (M, K), (N, _), (KB, _) = A.shape, B.shape, SA.shape
    assume(M % 64 == 0, N % 64 == 0, eq(K, 64 * KB), KB * M * N < 1 << 40)
    tag(A, lambda m, k: dict(m=m, k=k, kb=k // 64))
    tag(B, lambda n, k: dict(n=n, k=k, kb=k // 64))
    tag(SA, lambda kb, m: dict(kb=kb, m=m))
    tag(SB, lambda kb, n: dict(kb=kb, n=n))
    mm = mfma(mfma_f32_32x32x8_bf16).over(waves=(2, 2), tile=(64, 64), k=32, k_run=8)
    kb, m, n = block_id((KB, M // 64, N // 64))
    a = registers(bf16, mm.A)
    b = registers(bf16, mm.B)
    acc = registers(f32, mm.C)
    for s in range(2):
        copy(A.tile((64, 32), (m, 2 * kb + s)), a, via=global_load)
        copy(B.tile((64, 32), (n, 2 * kb + s)), b, via=global_load)
        vmem.wait(0)
        mma(mm, acc, a, b, init=s == 0)
    rows = load(SA[kb].gather((64, 64), lambda i, j: (64 * m + i,)), mm.C, via=global_load)
    columns = load(SB[kb].gather((64, 64), lambda i, j: (64 * n + j,)), mm.C, via=global_load)
    vmem.wait(0)
    assert_covers(acc.tag.k, 64 * kb, 64 * kb + 64)
    copy(acc * (rows * columns), P[kb].tile((64, 64), (m, n)))
    assert_written_once(P, lambda kb, m, n: dict(kb=kb, m=m, n=n))
