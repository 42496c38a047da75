"""C = A @ B^T on Hopper for rows of any length: loads and stores of single elements, so that nothing need be aligned.

The other schedules of sm_90a move boxes, whose rows begin at multiples of 16 bytes; this one takes every M, N and K.
"""

from __future__ import annotations

from attrs import frozen

from argus.kernels.contraction import Contraction
from argus.language import (
    assume,
    bf16,
    block_id,
    ceil_div,
    copy,
    eq,
    f32,
    fence,
    ld_global_b16,
    loop,
    mma,
    registers,
    shared,
    sm_90a,
    spread,
    st_global_b16,
    sync,
    wgmma,
)


@frozen
class Narrow:
    """One warpgroup and one tile of 64 x bn a block; bk of K a step."""

    bn: int = 128
    bk: int = 64
    target = sm_90a
    threads = 128


def hopper_narrow(problem: Contraction, cfg: Narrow) -> None:
    """Global to registers, element by element, to shared memory, to the matrix unit; one step after the other."""
    A, B, C = problem.A, problem.B, problem.C
    bm, bn, bk = 64, cfg.bn, cfg.bk
    assume(A.shape[1] >= 1)
    mm = wgmma(bf16, n=bn)
    slot_a = shared(bf16, (bm, bk), swizzle=128)
    slot_b = shared(bf16, (bn, bk), swizzle=128)
    a = registers(bf16, spread((bm, bk), threads=cfg.threads, vector=2))  # a warp stores 128 bytes: a row, no conflict
    b = registers(bf16, spread((bn, bk), threads=cfg.threads, vector=2))
    acc = registers(f32, mm.C)
    m, n = block_id(problem.tiles(bm, bn))
    for k in loop(ceil_div(A.shape[1], bk)):
        copy(A.tile((bm, bk), (m, k)), a, via=ld_global_b16, edge=0)
        copy(B.tile((bn, bk), (n, k)), b, via=ld_global_b16, edge=0)
        copy(a, slot_a)
        copy(b, slot_b)
        fence("async proxy")  # by every writer, then the meeting
        sync()
        mma(mm, acc, slot_a, slot_b, init=eq(k, 0))
        wgmma.wait(0)  # the slots have been read ...
        sync()  # ... whole, also if each warp's wait speaks for this warp alone
    problem.complete(acc)
    copy(acc.to(bf16), C.tile((bm, bn), (m, n)), via=st_global_b16, edge=0)
