"""The Hopper schedule for rows of C of any length: it stores single elements, which need no alignment."""

from __future__ import annotations

from attrs import frozen

from argus.kernels.schedules.contraction import Contraction, slot_for
from argus.kernels.schedules.epilogues import Epilogue
from argus.language import (
    Ring,
    assume,
    by_rows,
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
    warpgroups,
    wgmma,
    when,
)


@frozen
class Ragged:
    """Tiles of 128 x bn, bk of K per stage; one producer warpgroup and two consumer warpgroups."""

    bn: int = 128
    bk: int = 64
    stages: int = 4
    target = sm_90a
    threads = 384


def hopper_ragged(problem: Contraction, cfg: Ragged, epilogue: Epilogue) -> None:
    """As `hopper_cooperative`, but with stores from registers to global memory."""
    A, B, C = problem.A, problem.B, problem.C
    bm, bn, bk = 128, cfg.bn, cfg.bk
    rows, columns = problem.tiles(bm, bn)
    problem.assume_aligned(stores=False)
    assume(rows * columns < 1 << 24)  # so that coordinates of tiles fit 32 bits
    mm = wgmma(A.dtype, n=bn)
    ring = Ring(cfg.stages, a=slot_for(A, bm, bk), b=slot_for(B, bn, bk))
    tiles = persistent((rows, columns), order=by_rows)
    depth = ceil_div(A.shape[1], bk)
    problem.assume_ring_bounds(rows * columns, depth, cfg.stages)

    with role("load", warpgroup(0).elected, registers=40):
        for m, n in tiles:
            for k in loop(depth):
                with ring.fill() as slot:
                    copy(A.tile((bm, bk), (m, k)), slot.a, via=tma, edge=0)
                    copy(B.tile((bn, bk), (n, k)), slot.b, via=tma, edge=0)
        ring.finish()

    with role("math", warpgroups(1, 2), registers=232) as wg:
        acc = registers(f32, mm.C)
        for m, n in tiles:
            for k in loop(depth):
                slot = ring.wait()
                mma(mm, acc, slot.a.tile((64, bk), (wg, 0)), slot.b, init=eq(k, 0))
                wgmma.wait(pending=1)
                with when(k > 0):
                    ring.release()
            at = 2 * m + wg, n
            deferred = epilogue(acc.tile((64, bn), (0, 0)), at)
            wgmma.wait(pending=0)
            ring.release()
            problem.complete(acc)
            copy(deferred().to(C.dtype), C.tile((64, bn), at), via=st_global_b16, edge=0)
