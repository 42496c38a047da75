"""The same GEMM with one fault, refuted on a concrete run. Also: `argus verify examples/02_refute.py`."""

from __future__ import annotations

import argus
from argus.language import (
    Tensor,
    assert_covers,
    assert_written_once,
    assume,
    bf16,
    block_id,
    ceil_div,
    copy,
    eq,
    f32,
    gfx942,
    global_load,
    kernel,
    loop,
    mfma,
    mfma_f32_32x32x8_bf16,
    mma,
    registers,
    tag,
    vmem,
)


@kernel(target=gfx942, threads=64)
def matmul(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]) -> None:
    """Meant to be C = A @ B^T, but B is one iteration ahead."""
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= 1, K % 4 == 0)
    mm = mfma(mfma_f32_32x32x8_bf16).over(waves=(1, 1), tile=(32, 32), k=8)
    m, n = block_id((ceil_div(M, 32), ceil_div(N, 32)))
    a = registers(bf16, mm.A)
    b = registers(bf16, mm.B)
    acc = registers(f32, mm.C)
    for k in loop(ceil_div(K, 8)):
        copy(A.tile((32, 8), (m, k)), a, via=global_load, edge=0)
        copy(B.tile((32, 8), (n, k + 1)), b, via=global_load, edge=0)
        vmem.wait(0)
        mma(mm, acc, a, b, init=eq(k, 0))
    assert_covers(acc.tag.k, 0, K)
    copy(acc.to(bf16), C.tile((32, 32), (m, n)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))


if __name__ == "__main__":
    match argus.verify(matmul).verdict:
        case argus.Refuted(counterexample=found):
            print(f"refuted by {found.code}: {found.message}")
            print(f"  at {', '.join(f'{name} = {value}' for name, value in found.sizes)}")
            print(f"  thread {found.thread}, iteration {dict(found.iteration)}, replayed by: {found.replayed}")
        case other:
            print(other)
