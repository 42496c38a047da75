# verdict: proved
"""Mixture of experts with one scale per column of an expert's weights, applied in the epilogue."""

from argus.language import (
    Tensor, assert_covers, assert_written_once, assume, bf16, block_id, copy, eq, f32, gfx942, global_load,
    i32, kernel, load, loop, mfma, mfma_f32_32x32x8_bf16, mma, promise, registers, scalar, tag, vmem, when,
)


@kernel(target=gfx942, threads=256)
def grouped(
    A: Tensor["M K", bf16], W: Tensor["G N K", bf16], SW: Tensor["G N", f32], expert: Tensor["MB", i32],
    C: Tensor["M N", bf16]
):
    (M, K), (G, N, _), (MB,) = A.shape, W.shape, expert.shape
    promise(expert, lambda e: (e == -1) | ((0 <= e) & (e < G)))
    assume(K % 32 == 0, K >= 32, N % 64 == 0, eq(M, 64 * MB), G * N * K < 1 << 40)
    tag(A, lambda m, k: dict(x=expert[m // 64], m=m, k=k))
    tag(SW, lambda g, n: dict(x=g, n=n))
    tag(W, lambda g, n, k: dict(x=g, n=n, k=k))
    mm = mfma(mfma_f32_32x32x8_bf16).over(waves=(2, 2), tile=(64, 64), k=32, k_run=8)
    m, n = block_id((MB, N // 64))
    depth = K // 32
    a = registers(bf16, mm.A)
    b = registers(bf16, mm.B)
    acc = registers(f32, mm.C)
    x = scalar(expert[m])
    with when(x >= 0):
        for k in loop(depth):
            copy(A.tile((64, 32), (m, k)), a, via=global_load)
            copy(W[x].tile((64, 32), (n, k)), b, via=global_load)
            vmem.wait(0)
            mma(mm, acc, a, b, init=eq(k, 0))
        assert_covers(acc.tag.k, 0, K)
        columns = load(SW[x].gather((64, 64), lambda i, j: (64 * n + j,)), mm.C, via=global_load)
        vmem.wait(0)
        copy((acc * columns).to(bf16), C.tile((64, 64), (m, n)))
    assert_written_once(
        C, lambda m, n: dict(x=expert[m // 64], m=m, n=n), where=lambda m, n: scalar(expert[m // 64]) >= 0
    )
