# verdict: proved
"""Products of f16 by both MFMA instructions: each is half of C's columns."""

from argus.language import (
    Tensor, assert_covers, assert_written_once, assume, block_id, ceil_div, copy, eq, f16, f32, gfx942, kernel, load,
    loop, mfma, mfma_f32_16x16x16_f16, mfma_f32_32x32x8_f16, mma, registers, tag, vmem,
)


@kernel(target=gfx942, threads=64)
def gemm(A: Tensor["M K", f16], B: Tensor["N K", f16], C: Tensor["M N", f16]):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= 1, K % 4 == 0)
    m, n = block_id((ceil_div(M, 32), ceil_div(N, 64)))
    for half, atom in enumerate((mfma_f32_32x32x8_f16, mfma_f32_16x16x16_f16)):
        mm = mfma(atom).over(waves=(1, 1), tile=(32, 32), k=16)
        acc = registers(f32, mm.C)
        for k in loop(ceil_div(K, 16)):
            a = load(A.tile((32, 16), (m, k)), mm.A, edge=0)
            b = load(B.tile((32, 16), (2 * n + half, k)), mm.B, edge=0)
            vmem.wait(0)
            mma(mm, acc, a, b, init=eq(k, 0))
        assert_covers(acc.tag.k, 0, K)
        copy(acc.to(f16), C.tile((32, 32), (m, 2 * n + half)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
