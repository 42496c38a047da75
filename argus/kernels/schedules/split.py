"""The split-K schedule on Hopper, for few tiles: CTAs of a cluster split K, then each reduces a part of the tile."""

from __future__ import annotations

from math import gcd

from attrs import frozen

from argus.kernels.schedules.contraction import Contraction, slot_for
from argus.language import (
    Ring,
    assume,
    barrier,
    block_id,
    ceil_div,
    copy,
    elected,
    eq,
    f32,
    load,
    loop,
    mma,
    registers,
    role,
    shared,
    sm_90a,
    spread,
    st_global_b16,
    sync,
    tma,
    warpgroup,
    warpgroups,
    wgmma,
    when,
)


@frozen
class Split:
    """bm x bn tiles (bm 64 or 128), each by `splits` CTAs of a cluster; bk of K per stage.

    Each CTA reduces the partial sums of bn / splits columns, which all CTAs store into its shared memory: bm x bn f32
    elements in addition to the stages.
    swap_ab: swap A and B: tiles are of C^T = B A^T, so that rows of B fill the M dimension of wgmma, and bn, a multiple
    of 8 splits, counts rows of A; the epilogue then stores single elements.
    """

    bm: int = 128
    bn: int = 128
    bk: int = 64
    stages: int = 5
    splits: int = 2
    swap_ab: bool = False
    target = sm_90a

    @property
    def threads(self) -> int:
        return 128 + 2 * self.bm

    @property
    def bytes(self) -> int:
        """Shared memory in bytes, without barriers and alignment."""
        return 2 * self.stages * (self.bm + self.bn) * self.bk + 4 * self.bm * self.bn

    @property
    def cluster(self) -> tuple[int, ...]:
        return (self.splits, 1, 1)


def hopper_split(problem: Contraction, cfg: Split) -> None:
    """Every CTA takes the same number of stages of K; those beyond the end of K are zeros."""
    A, B, C = (problem.B, problem.A, problem.C.T) if cfg.swap_ab else (problem.A, problem.B, problem.C)
    bm, bn, bk, splits = cfg.bm, cfg.bn, cfg.bk, cfg.splits
    agents, width = bm // 64, bn // splits
    rows, columns = ceil_div(C.shape[0], bm), ceil_div(C.shape[1], bn)
    problem.assume_aligned(stores=not cfg.swap_ab)
    assume(rows * columns < 1 << 20)
    mm = wgmma(A.dtype, n=bn)
    ring = Ring(cfg.stages, a=slot_for(A, bm, bk), b=slot_for(B, bn, bk))
    sums = shared(f32, (splits, agents, 64, width), swizzle=gcd(128, 4 * width))
    arrived = barrier(splits, of=agents)
    rank, m, n = block_id((splits, rows, columns))
    depth = ceil_div(A.shape[-1], bk * splits)
    problem.assume_ring_bounds(rows * columns * splits, depth, cfg.stages)

    with role("load", warpgroup(0).elected):
        for k in loop(depth):
            with ring.fill() as slot:
                copy(A.tile((bm, bk), (m, rank * depth + k)), slot.a, via=tma, edge=0)
                copy(B.tile((bn, bk), (n, rank * depth + k)), slot.b, via=tma, edge=0)

    with role("math", warpgroups(*range(1, agents + 1))) as wg:
        acc = registers(f32, mm.C)
        for k in loop(depth):
            slot = ring.wait()
            mma(mm, acc, slot.a.tile((64, bk), (wg, 0)), slot.b, init=eq(k, 0))
            wgmma.wait(pending=1)  # the wgmma of k - 1 has read its stage ...
            with when(k > 0):
                ring.release()  # ... so release that stage
        wgmma.wait(pending=0)
        ring.release()
        for to in range(splits):
            copy(acc.tile((64, width), (0, to)), sums[rank, wg].of(to))
        sync()
        with elected():
            for to in range(splits):
                arrived[wg].of(to).arrive()
        arrived[wg].wait(0)  # all CTAs have stored their partial sums of this CTA's columns
        parts = [sums[each, wg] for each in range(splits)]
        out = C.tile((64, width), (agents * m + wg, splits * n + rank))
        if cfg.swap_ab:
            parts, out = [part.T for part in parts], out.T
        by = spread((width, 64), threads=128, vector=1)
        if not cfg.swap_ab:
            by = spread((64, width), threads=128, vector=min(8, width // 2))
        total = load(parts[0], by)
        for each in parts[1:]:
            total = total + load(each, by)
        problem.complete(total)
        if cfg.swap_ab:
            copy(total.to(C.dtype), out, via=st_global_b16, edge=0)
        else:
            copy(total.to(C.dtype), out, edge=0)
