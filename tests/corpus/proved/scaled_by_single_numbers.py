# verdict: proved
"""GEMM with per-tensor scales: the sum is multiplied by the only elements of two tensors in memory."""

from argus.language import (
    Tensor, assert_covers, assert_written_once, assume, bf16, block_id, copy, eq, f32, gfx942, global_load, kernel, load,
    loop, mfma, mfma_f32_32x32x8_bf16, mma, registers, tag, vmem,
)


@kernel(target=gfx942, threads=256)
def scaled(
    A: Tensor["M K", bf16], B: Tensor["N K", bf16], scale_a: Tensor["1", f32], scale_b: Tensor["1", f32],
    C: Tensor["M N", f32],
):
    (M, K), (N, _) = A.shape, B.shape
    assume(K % 32 == 0, K >= 32, N % 64 == 0, M % 64 == 0)
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    mm = mfma(mfma_f32_32x32x8_bf16).over(waves=(2, 2), tile=(64, 64), k=32, k_run=8)
    m, n = block_id((M // 64, N // 64))
    a, b = registers(bf16, mm.A), registers(bf16, mm.B)
    acc = registers(f32, mm.C)
    for k in loop(K // 32):
        copy(A.tile((64, 32), (m, k)), a, via=global_load)
        copy(B.tile((64, 32), (n, k)), b, via=global_load)
        vmem.wait(0)
        mma(mm, acc, a, b, init=eq(k, 0))
    assert_covers(acc.tag.k, 0, K)
    left = load(scale_a[0], mm.C.axis(), via=global_load)
    right = load(scale_b[0], mm.C.axis(), via=global_load)
    vmem.wait(0)
    copy(acc * (left * right), C.tile((64, 64), (m, n)))
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
