"""C = A @ B^T on Hopper for few rows of A: C^T = B A^T, so that rows of B fill the rows of the matrix unit."""

from __future__ import annotations

from attrs import frozen

from argus.kernels.schedules.contraction import Contraction, one_of, slot_for
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
    warpgroups,
    wgmma,
    when,
)

_ROWS = 64
"""Of a warpgroup."""


@frozen
class Skinny:
    """bm rows of A (a multiple of 8) against bn rows of B a tile, 64 or 128; bk of K a slot, as many as memory holds.

    Of few rows of A what counts is how much of B is under way at once: reading it is all the time that they take. For
    more rows two warpgroups share what the slots hold of A, and have the next product in flight.
    """

    bm: int = 16
    bk: int = 128
    stages: int = 8
    bn: int = _ROWS
    target = sm_90a

    @property
    def threads(self) -> int:
        return 128 + 2 * self.bn


def hopper_skinny(problem: Contraction, cfg: Skinny) -> None:
    """One role loads, a warpgroup or two multiply; sums leave by single elements, as there are few."""
    A, B, C = problem.A, problem.B, problem.C
    bm, bn, bk = cfg.bm, cfg.bn, cfg.bk
    agents = bn // _ROWS
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

    with role("math", warpgroups(*range(1, agents + 1))) as wg:
        acc = registers(f32, mm.C)
        for m, n, *z in tiles:
            for k in loop(depth):
                slot = ring.wait()
                mma(mm, acc, slot.b.tile((_ROWS, bk), (wg, 0)), slot.a, init=eq(k, 0))
                if agents == 1:
                    wgmma.wait(pending=0)  # a product this small is done before the next slot is here
                    ring.release()
                else:
                    wgmma.wait(pending=1)  # k - 1 has finished reading its slot ...
                    with when(k > 0):
                        ring.release()  # ... which goes back
            if agents > 1:
                wgmma.wait(pending=0)
                ring.release()
            problem.complete(acc)
            out = one_of(C, z).T.tile((_ROWS, bm), (agents * n + wg, m))
            copy(acc.to(C.dtype), out, via=st_global_b16, edge=0)
