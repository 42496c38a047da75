# verdict: proved
"""A is scaled before it is multiplied: a scale per row and block of 64 k, which a relation ties to k, and no set."""

from argus.language import (
    Tensor, assert_covers, assert_relation, assert_written_once, assume, bf16, block_id, copy, eq, f32, gfx942,
    global_load, kernel, load, loop, mfma, mfma_f32_32x32x8_bf16, mma, registers, tag, vmem,
)


@kernel(target=gfx942, threads=256)
def scaled(
    A: Tensor["M K", bf16], SA: Tensor["KB M", f32], B: Tensor["N K", bf16], C: Tensor["M N", f32],
):
    (M, K), (N, _), (KB, _) = A.shape, B.shape, SA.shape
    assume(K >= 1, M % 64 == 0, N % 64 == 0, eq(K, 64 * KB))
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    tag(SA, lambda kb, m: dict(kb=kb, m=m))
    mm = mfma(mfma_f32_32x32x8_bf16).over(waves=(2, 2), tile=(64, 64), k=32, k_run=8)
    m, n = block_id((M // 64, N // 64))
    a, b, acc = registers(bf16, mm.A), registers(bf16, mm.B), registers(f32, mm.C)
    for k in loop(K // 32):
        copy(A.tile((64, 32), (m, k)), a, via=global_load)
        copy(B.tile((64, 32), (n, k)), b, via=global_load)
        rows = load(SA[k // 2].gather((64, 32), lambda i, j: (64 * m + i,)), mm.A, via=global_load)
        vmem.wait(0)
        assert_relation(a, rows, lambda p, r: eq(r.kb, p.k // 64))
        mma(mm, acc, (a.to(f32) * rows).to(bf16), b, init=eq(k, 0))
    assert_covers(acc.tag.k, 0, K)
    copy(acc, C.tile((64, 64), (m, n)))
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
