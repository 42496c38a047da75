"""C = A @ B^T on Hopper for few rows of A: C^T = B A^T, so that rows of B fill the 64 rows of the matrix unit."""

from __future__ import annotations

from attrs import frozen

from argus.kernels.contraction import Contraction, one_of, slot_for
from argus.language import (
    Ring,
    assume,
    ceil_div,
    copy,
    eq,
    f32,
    loop,
    mma,
    persistent,
    registers,
    role,
    sm_90a,
    st_global_b16,
    tma,
    warpgroup,
    wgmma,
)


@frozen
class Skinny:
    """bm rows of A (a multiple of 8) against 64 rows of B a tile; bk of K a slot, of as many slots as memory holds.

    What counts is how much of B is under way at once: reading it is all the time that such a product takes.
    """

    bm: int = 16
    bk: int = 128
    stages: int = 8
    target = sm_90a
    threads = 256


def hopper_skinny(problem: Contraction, cfg: Skinny) -> None:
    """One role loads, one warpgroup multiplies; sums leave by single elements, as there are few."""
    A, B, C = problem.A, problem.B, problem.C
    bm, bn, bk = cfg.bm, 64, cfg.bk
    count = problem.count(bm, bn)
    problem.aligned(stores=False)
    assume(count < 1 << 24)
    mm = wgmma(A.dtype, n=bm)
    ring = Ring(cfg.stages, a=slot_for(A, bm, bk), b=slot_for(B, bn, bk))
    tiles = persistent(problem.tiles(bm, bn), order=problem.order())
    depth = ceil_div(A.shape[-1], bk)
    problem.bounded(count, depth, cfg.stages)

    with role("load", warpgroup(0).elected):
        for m, n, *z in tiles:
            for k in loop(depth):
                with ring.fill() as slot:
                    copy(one_of(A, z).tile((bm, bk), (m, k)), slot.a, via=tma, edge=0)
                    copy(one_of(B, z).tile((bn, bk), (n, k)), slot.b, via=tma, edge=0)
        ring.finish()

    with role("math", warpgroup(1)):
        acc = registers(f32, mm.C)
        for m, n, *z in tiles:
            for k in loop(depth):
                slot = ring.wait()
                mma(mm, acc, slot.b, slot.a, init=eq(k, 0))
                wgmma.wait(pending=0)  # a product this small is done before the next slot is here
                ring.release()
            problem.complete(acc)
            copy(acc.to(C.dtype), one_of(C, z).T.tile((bn, bm), (n, m)), via=st_global_b16, edge=0)
