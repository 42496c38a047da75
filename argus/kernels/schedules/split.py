"""C = A @ B^T on Hopper where tiles are few: blocks of a cluster share out K, then each sums up a part of the tile."""

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
    """bm x bn tiles (bm 64 or 128), each by `splits` blocks that take as many parts of K, bk of it a slot.

    Each block sums up the others' sums of bn / splits columns, which lie in its shared memory until all have come:
    bm x bn numbers of 32 bits beside the slots.
    swap_ab: tiles are of C^T = B A^T, so that rows of B fill the matrix unit's and bn, any multiple of 8 splits, is
    rows of A; sums then leave by single elements.
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
        """Of shared memory, but for barriers and what aligns it."""
        return 2 * self.stages * (self.bm + self.bn) * self.bk + 4 * self.bm * self.bn

    @property
    def cluster(self) -> tuple[int, ...]:
        return (self.splits, 1, 1)


def hopper_split(problem: Contraction, cfg: Split) -> None:
    """A part of K is as many slots for every block; those beyond the end of K are zeros."""
    A, B, C = (problem.B, problem.A, problem.C.T) if cfg.swap_ab else (problem.A, problem.B, problem.C)
    bm, bn, bk, splits = cfg.bm, cfg.bn, cfg.bk, cfg.splits
    agents, width = bm // 64, bn // splits
    rows, columns = ceil_div(C.shape[0], bm), ceil_div(C.shape[1], bn)
    problem.aligned(stores=not cfg.swap_ab)
    assume(rows * columns < 1 << 20)
    mm = wgmma(A.dtype, n=bn)
    ring = Ring(cfg.stages, a=slot_for(A, bm, bk), b=slot_for(B, bn, bk))
    sums = shared(f32, (splits, agents, 64, width), swizzle=gcd(128, 4 * width))
    come = barrier(splits, of=agents)
    rank, m, n = block_id((splits, rows, columns))
    depth = ceil_div(A.shape[-1], bk * splits)
    problem.bounded(rows * columns * splits, depth, cfg.stages)

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
            wgmma.wait(pending=1)  # k - 1 has finished reading its slot ...
            with when(k > 0):
                ring.release()  # ... which goes back
        wgmma.wait(pending=0)
        ring.release()
        for to in range(splits):
            copy(acc.tile((64, width), (0, to)), sums[rank, wg].of(to))
        sync()
        with elected():
            for to in range(splits):
                come[wg].of(to).arrive()
        come[wg].wait(0)  # all blocks' sums of this one's columns are here
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
