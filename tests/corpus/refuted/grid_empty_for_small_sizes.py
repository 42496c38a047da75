# verdict: refuted I4
"""A grid axis that no store uses has extent L // 16, so that the grid is empty when L < 16."""

from argus.language import (
    Tensor, assert_covers, assert_written_once, assume, bf16, block_id, ceil_div, copy, f32, gfx942, global_load,
    kernel, load, mfma, mfma_f32_16x16x16_bf16, mma, registers, tag, vmem,
)

MM = mfma(mfma_f32_16x16x16_bf16).over(waves=(1, 1), tile=(16, 16), k=16)


@kernel(target=gfx942, threads=64)
def gemm(A: Tensor["M 16", bf16], B: Tensor["N 16", bf16], D: Tensor["L 16", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _), (L, _) = A.shape, B.shape, D.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(L < 32)
    m, n, z = block_id((ceil_div(M,16), ceil_div(N,16), L//16))
    a = load(A.tile((16,16),(m,0)), MM.A, via=global_load, edge=0)
    b = load(B.tile((16,16),(n,0)), MM.B, via=global_load, edge=0)
    acc = registers(f32, MM.C)
    vmem.wait(0)
    mma(MM, acc, a, b, init=True)
    assert_covers(acc.tag.k, 0, 16)
    copy(acc.to(bf16), C.tile((16,16),(m,n)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
