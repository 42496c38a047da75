"""The swap-AB schedule on Hopper, for few rows of A: C^T = B A^T, so that rows of B fill the M dimension of wgmma."""

from __future__ import annotations

from attrs import frozen

from argus.kernels.schedules.contraction import Contraction, matrix_of, part, slot_for
from argus.kernels.schedules.hopper import blocks_of
from argus.language import (
    Ring,
    assume,
    ceil_div,
    cluster,
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

_ROWS, _SMALL = 64, 72
"""Rows of C^T per warpgroup; columns up to which a warpgroup alone waits for each product."""


@frozen
class Skinny:
    """Tiles of bm rows of A (a multiple of 8) by bn rows of B (64 or 128); bk of K per stage.

    With few rows of A the time is that of reading B, which depends on the bytes of B in flight. With bn = 128, two
    warpgroups share the tile of A in a stage, and each keeps one wgmma in flight. peers: CTAs of a cluster, along rows
    of B, of which each loads a part of the tile of A for all; bm is a multiple of 8 for each.
    """

    bm: int = 16
    bk: int = 128
    stages: int = 8
    bn: int = _ROWS
    peers: int = 1
    target = sm_90a

    @property
    def cluster(self) -> tuple[int, ...]:
        return (1, self.peers) if self.peers > 1 else (1,)

    @property
    def threads(self) -> int:
        return 128 + 2 * self.bn


def hopper_skinny(problem: Contraction, cfg: Skinny) -> None:
    """One producer, one or two consumer warpgroups; the epilogue stores single elements, as there are few."""
    A, B, C = problem.A, problem.B, problem.C
    bm, bn, bk = cfg.bm, cfg.bn, cfg.bk
    agents, to_all = bn // _ROWS, tma.multicast(tuple(range(cfg.peers)))
    count = problem.count(bm, bn)
    problem.assume_aligned(stores=False)
    assume(count < 1 << 24)
    mm = wgmma(A.dtype, n=bm)
    ring = Ring(cfg.stages, a=slot_for(A, bm, bk), b=slot_for(B, bn, bk))
    tiles = persistent(problem.tiles(bm, bn), order=problem.order(), blocks=blocks_of(cfg.cluster))
    depth = ceil_div(A.shape[-1], bk)
    problem.assume_ring_bounds(count, depth, cfg.stages)

    with role("load", warpgroup(0).elected):
        for m, n, *z in tiles:
            for k in loop(depth):
                with ring.fill() as slot:
                    common = matrix_of(A, z).tile((bm, bk), (m, k)), slot.a
                    if cfg.peers == 1:
                        copy(*common, via=tma, edge=0)
                    else:
                        copy(*(part(each, cluster.rank, cfg.peers) for each in common), via=to_all, edge=0)
                    copy(matrix_of(B, z).tile((bn, bk), (n, k)), slot.b, via=tma, edge=0)
        ring.finish()

    with role("math", warpgroups(*range(1, agents + 1))) as wg:
        acc = registers(f32, mm.C)
        for m, n, *z in tiles:
            for k in loop(depth):
                slot = ring.wait()
                mma(mm, acc, slot.b.tile((_ROWS, bk), (wg, 0)), slot.a, init=eq(k, 0))
                if agents == 1 and bm <= _SMALL:
                    wgmma.wait(pending=0)  # a product this small is done before the next stage is full
                    ring.release()
                else:
                    wgmma.wait(pending=1)  # the wgmma of k - 1 has read its stage ...
                    with when(k > 0):
                        ring.release()  # ... so release that stage
            if agents > 1 or bm > _SMALL:
                wgmma.wait(pending=0)
                ring.release()
            problem.complete(acc)
            out = matrix_of(C, z).T.tile((_ROWS, bm), (agents * n + wg, m))
            copy(acc.to(C.dtype), out, via=st_global_b16, edge=0)
