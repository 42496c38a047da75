"""The ping-pong GEMM of gfx942 in tiles of 64 x 64 x 64, with optional single edits."""

from __future__ import annotations

from functools import cache

from argus.core.ir import Kernel
from argus.kernels.gemm import Contraction
from argus.language import (
    Int,
    Swizzle,
    Tensor,
    assume,
    bf16,
    block_id,
    buffer_load,
    ceil_div,
    copy,
    ds_read_b128,
    ds_write_b128,
    eq,
    f32,
    gfx942,
    kernel,
    lds,
    loop,
    mfma,
    mfma_f32_16x16x16_bf16,
    mma,
    priority,
    registers,
    remap_xcd,
    shared,
    spread,
    sync,
    vmem,
    wave,
    when,
    zeros,
)

TILE, HALF, SLICE, THREADS = 64, 32, 32, 512


@cache
def pingpong(edit: str = "") -> Kernel:
    """C = A @ B^T. edit: what is left out ("vmem wait", "store wait", "operand wait 0 0", "barrier 4", "first barrier",
    "zeros", "skew", "unskew"); or "late operand waits", after the barrier instead of before it; or "skew in the loop".
    """

    @kernel(target=gfx942, threads=THREADS)
    def skewed(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]) -> None:
        problem = Contraction(A, B, C)
        _pingpong(problem, edit)
        problem.finish()

    return skewed.trace()


def _pingpong(problem: Contraction, edit: str) -> None:  # noqa: PLR0915 reason: a kernel reads from top to bottom
    A, B, C = problem.A, problem.B, problem.C
    assume(A.shape[1] >= 1, A.shape[1] % 8 == 0)
    assume(A.shape[0] * A.shape[1] <= (1 << 31) - 8, B.shape[0] * B.shape[1] <= (1 << 31) - 8)
    mm = mfma(mfma_f32_16x16x16_bf16).over(waves=(2, 4), tile=(HALF, TILE), k=SLICE, k_run=8)
    lds_a = shared(bf16, (2, HALF, TILE), swizzle=Swizzle(3, 3, 3), banks=1)
    lds_b = shared(bf16, (TILE, TILE), swizzle=Swizzle(3, 3, 3), banks=1)
    m, n = remap_xcd(block_id, problem.tiles(TILE, TILE), group=4)
    depth = ceil_div(A.shape[1], TILE)
    by = spread((TILE, TILE), threads=THREADS, vector=8)
    next_a, next_b = registers(bf16, by), registers(bf16, by)
    acc = [registers(f32, mm.C) if edit == "zeros" else zeros(f32, mm.C) for _ in range(2)]
    a, b = [registers(bf16, mm.A) for _ in range(2)], registers(bf16, mm.B)

    def prefetch(k: Int | int) -> None:
        copy(A.tile((TILE, TILE), (m, k)), next_a, via=buffer_load, edge=0)
        copy(B.tile((TILE, TILE), (n, k)), next_b, via=buffer_load, edge=0)

    def stage() -> None:
        if edit != "vmem wait":
            vmem.wait(0)
        copy(next_a, lds_a.reshape(TILE, TILE), via=ds_write_b128)
        copy(next_b, lds_b, via=ds_write_b128)
        if edit != "store wait":
            lds.wait(0)

    def fetch(i: int, s: int, *, with_b: bool = True) -> None:
        if with_b:
            copy(lds_b.tile((TILE, SLICE), (0, s)), b, via=ds_read_b128)
        copy(lds_a[i].tile((HALF, SLICE), (0, s)), a[i], via=ds_read_b128)
        if edit != f"operand wait {i} {s}" and not (edit == "late operand waits" and s == 1):
            lds.wait(0)

    def multiply(i: int, s: int) -> None:
        barrier(4 * s + 2 * i)
        if edit == "late operand waits" and (i, s) == (0, 1):
            lds.wait(0)
        with priority(1):
            mma(mm, acc[i], a[i], b)
        barrier(4 * s + 2 * i + 1)

    def barrier(number: int) -> None:
        if edit != f"barrier {number}":
            sync()

    prefetch(0)
    stage()
    if edit != "first barrier":
        sync()
    row = wave // 4
    if edit != "skew":
        with when(eq(row, 1)):
            sync()
    for k in loop(depth):
        fetch(0, 0)
        with when(k + 1 < depth):
            prefetch(k + 1)
        multiply(0, 0)
        fetch(1, 0, with_b=False)
        multiply(1, 0)
        fetch(0, 1)
        fetch(1, 1, with_b=False)
        multiply(0, 1)
        with when(k + 1 < depth):
            stage()
        multiply(1, 1)
        if edit == "skew in the loop":
            with when(eq(row, 1)):
                sync()
    if edit != "unskew":
        with when(eq(row, 0)):
            sync()
    for i in range(2):
        problem.complete(acc[i])
        copy(acc[i].to(bf16), C.tile((HALF, TILE), (2 * m + i, n)), edge=0)
