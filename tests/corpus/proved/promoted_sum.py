# verdict: proved
"""Two-level accumulation: each K block is summed separately, then scaled and added to the main accumulator."""

from argus.language import (
    Tensor, assert_covers, assert_relation, assert_written_once, assume, bf16, block_id, copy, eq, f32, gfx942,
    global_load, kernel, load, loop, mfma, mfma_f32_32x32x8_bf16, mma, registers, tag, vmem,
)


@kernel(target=gfx942, threads=256)
def promoted(
    A: Tensor["M K", bf16], SA: Tensor["KB M", f32], B: Tensor["N K", bf16], SB: Tensor["KB N", f32],
    C: Tensor["M N", f32],
):
    (M, K), (N, _), (KB, _) = A.shape, B.shape, SA.shape
    assume(M % 64 == 0, N % 64 == 0, eq(K, 64 * KB))
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    tag(SA, lambda kb, m: dict(kb=kb, m=m))
    tag(SB, lambda kb, n: dict(kb=kb, n=n))
    mm = mfma(mfma_f32_32x32x8_bf16).over(waves=(2, 2), tile=(64, 64), k=32, k_run=8)
    m, n = block_id((M // 64, N // 64))
    a, b = registers(bf16, mm.A), registers(bf16, mm.B)
    part, acc = registers(f32, mm.C), registers(f32, mm.C)
    acc[:] = 0.0
    for kb in loop(KB):
        for s in range(2):
            copy(A.tile((64, 32), (m, 2 * kb + s)), a, via=global_load)
            copy(B.tile((64, 32), (n, 2 * kb + s)), b, via=global_load)
            vmem.wait(0)
            mma(mm, part, a, b, init=s == 0)
        rows = load(SA[kb].gather((64, 64), lambda i, j: (64 * m + i,)), mm.C, via=global_load)
        columns = load(SB[kb].gather((64, 64), lambda i, j: (64 * n + j,)), mm.C, via=global_load)
        vmem.wait(0)
        assert_relation(part, rows, lambda p, r: eq(r.kb, p.k // 64))
        acc += part * (rows * columns)
    assert_covers(acc.tag.k, 0, K)
    copy(acc, C.tile((64, 64), (m, n)))
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
