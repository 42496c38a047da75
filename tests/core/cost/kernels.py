"""Small kernels whose work is counted by hand in the tests."""

from __future__ import annotations

from argus.core.ir import Kernel
from argus.language import (
    Ring,
    Swizzle,
    Tensor,
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
    i32,
    kernel,
    ld_global_b16,
    lds,
    load,
    loop,
    mfma,
    mfma_f32_32x32x8_bf16,
    mma,
    registers,
    role,
    scalar,
    shared,
    sm_90a,
    spread,
    sync,
    tma,
    vmem,
    warpgroup,
    wgmma,
    when,
)


@kernel(target=sm_90a, threads=128)
def copied(A: Tensor["M 32", f32], B: Tensor["M 32", f32]) -> None:
    """64 x 32 numbers of 4 bytes a block, 16 bytes a thread and vector."""
    (m,) = block_id((ceil_div(A.shape[0], 64),))
    x = load(A.tile((64, 32), (m, 0)), spread((64, 32), threads=128, vector=4), edge=0)
    copy(x, B.tile((64, 32), (m, 0)), edge=0)


@kernel(target=sm_90a, threads=128)
def by_columns(A: Tensor["32 M", bf16], B: Tensor["64 32", bf16]) -> None:
    """The same element of 64 rows of another tensor, one by one: lanes of a warp read neighbouring columns."""
    x = load(A.T.tile((64, 32), (0, 0)), spread((64, 32), threads=128, vector=1), via=ld_global_b16, edge=0)
    copy(x, B, edge=0)


@kernel(target=sm_90a, threads=128)
def triangle(A: Tensor["M 32", f32]) -> None:
    """Trip i of an outer loop has i + 1 trips of an inner one, of which the even ones store."""
    x = load(A.tile((64, 32), (0, 0)), spread((64, 32), threads=128, vector=4), edge=0)
    for i in loop(ceil_div(A.shape[0], 64)):
        for j in loop(i + 1):
            with when(eq(j % 2, 0)):
                copy(x, A.tile((64, 32), (0, 0)), edge=0)


@kernel(target=sm_90a, threads=128)
def counted(A: Tensor["M 32", f32], counts: Tensor["R 1", i32]) -> None:
    """As many trips as memory says."""
    x = load(A.tile((64, 32), (0, 0)), spread((64, 32), threads=128, vector=4), edge=0)
    for _ in loop(scalar(counts[0, 0])):
        copy(x, A.tile((64, 32), (0, 0)), edge=0)


def product(stages: int, *, pending: int = 1, bn: int = 128) -> Kernel:
    """64 x bn of A B^T by one warpgroup, 64 of K a slot of the ring, `pending` products under way at each release."""

    @kernel(target=sm_90a, threads=256)
    def multiplied(A: Tensor["M K", bf16], B: Tensor["N K", bf16]) -> None:
        mm = wgmma(bf16, n=bn)
        ring = Ring(stages, a=shared(bf16, (64, 64), swizzle=128), b=shared(bf16, (bn, 64), swizzle=128))
        m, n = block_id((ceil_div(A.shape[0], 64), ceil_div(B.shape[0], bn)))
        depth = ceil_div(A.shape[1], 64)
        with role("load", warpgroup(0).elected):
            for k in loop(depth):
                with ring.fill() as slot:
                    copy(A.tile((64, 64), (m, k)), slot.a, via=tma, edge=0)
                    copy(B.tile((bn, 64), (n, k)), slot.b, via=tma, edge=0)
        with role("math", warpgroup(1)):
            acc = registers(f32, mm.C)
            for k in loop(depth):
                slot = ring.wait()
                mma(mm, acc, slot.a, slot.b, init=eq(k, 0))
                wgmma.wait(pending=pending)
                if pending:
                    with when(k > 0):
                        ring.release()
                else:
                    ring.release()
            if pending:
                wgmma.wait(pending=0)
                ring.release()

    return multiplied.trace()


def staged(swizzle: Swizzle | None) -> Kernel:
    """64 x 64 of A B^T on MI300X by one wave: 32 of K a step, by way of shared memory with rows of 64 bytes."""

    @kernel(target=gfx942, threads=64)
    def multiplied(A: Tensor["M K", bf16], B: Tensor["N K", bf16]) -> None:
        mm = mfma(mfma_f32_32x32x8_bf16).over(waves=(1, 1), tile=(64, 64), k=32, k_run=8)
        held = shared(bf16, (64, 32), swizzle=swizzle)
        by = spread((64, 32), threads=64, vector=8)
        x = registers(bf16, by)
        a, b, acc = registers(bf16, mm.A), registers(bf16, mm.B), registers(f32, mm.C)
        m, n = block_id((ceil_div(A.shape[0], 64), ceil_div(B.shape[0], 64)))
        for k in loop(ceil_div(A.shape[1], 32)):
            for source, place, into in ((A, m, a), (B, n, b)):
                copy(source.tile((64, 32), (place, k)), x, via=buffer_load, edge=0)
                vmem.wait(0)
                copy(x, held, via=ds_write_b128)
                lds.wait(0)
                sync()
                copy(held, into, via=ds_read_b128)
                lds.wait(0)
                sync()
            mma(mm, acc, a, b, init=eq(k, 0))

    return multiplied.trace()
