"""The Hopper schedule of grouped products whose tiles have as many rows as they need: 128, or 64.

An expert's last tile has what rows are left, and that of an expert with few rows is its only one. A tile is listed with
the rows that it has, so that the warpgroups choose the products by it when they reach the tile: those of 128 rows as in
`hopper_grouped`, where each warpgroup has 64 of the rows, or those of 64 rows, of which each has half the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from attrs import frozen

from argus.kernels.schedules.attention_packed import ends_of
from argus.kernels.schedules.contraction import slot_for
from argus.kernels.schedules.epilogues import identity
from argus.kernels.schedules.grouped import Grouped, GroupedContraction, store_parts_until_end
from argus.kernels.schedules.hopper import Parts, epilogue_parts, release_last, release_previous, store_boxes
from argus.language import (
    Fragment,
    Int,
    Ring,
    Tensor,
    assume,
    ceil_div,
    copy,
    eq,
    f32,
    loop,
    mma,
    otherwise,
    persistent,
    registers,
    role,
    tma,
    warpgroup,
    warpgroups,
    wgmma,
    when,
)

_ROWS = 64
"""Rows of a warpgroup's products."""


@frozen
class GroupedHeights(Grouped):
    """As `Grouped`."""


def hopper_grouped_heights(problem: GroupedContraction, cfg: GroupedHeights) -> None:
    """Trace the schedule."""
    A, B = problem.A, problem.B
    bm, bn, bk = cfg.bm, cfg.bn, cfg.bk
    counts = problem.tiles, ceil_div(problem.C.shape[1], bn)
    assume(counts[0] * counts[1] < 1 << 24)  # coordinates of tiles then fit 32 bits
    depth = ceil_div(A.shape[1], bk)
    if cfg.stages & (cfg.stages - 1):
        assume(counts[0] * counts[1] * (depth + 1) < 1 << 32)  # uses of the ring's stages then fit 32 bits
    ring = Ring(cfg.stages, a=slot_for(A, bm, bk), b=slot_for(B, bn, bk))
    boxes = store_boxes(bn, whole=False, dtype=problem.C.dtype, turns=cfg.turns)
    tiles = persistent(counts, order=cfg.order)

    with role("load", warpgroup(0).elected, registers=40):
        for t, n in tiles:
            with problem.where_rows(t):
                a, b = problem.operands(t)
                for k in loop(depth):
                    with ring.fill() as slot:
                        copy(a.tile((bm, bk), (0, k)), slot.a, via=tma, edge=0)
                        copy(b.tile((bn, bk), (n, k)), slot.b, via=tma, edge=0)
        ring.finish()

    with role("math", warpgroups(1, 2), registers=232) as wg:
        mm = wgmma(A.dtype, n=bn // 2)
        upper, lower = registers(f32, mm.C), registers(f32, mm.C)
        for t, n in tiles:
            with problem.where_rows(t):
                first, end = ends_of(problem.tile_starts, t)
                high = end - first > _ROWS
                for k in loop(depth):
                    slot = ring.wait()
                    columns = slot.b.tile((bn // 2, bk), (wg, 0))
                    mma(mm, upper, slot.a.tile((_ROWS, bk), (0, 0)), columns, init=eq(k, 0))
                    with when(high):
                        mma(mm, lower, slot.a.tile((_ROWS, bk), (1, 0)), columns, init=eq(k, 0))
                    release_previous(cfg, ring, k)
                release_last(cfg, ring)
                with when(high):
                    _store((upper, lower), problem.result(t), 2 * n + wg, boxes[wg])
                with otherwise():  # rows from 64 on are beyond the end
                    _store((upper, upper), problem.result(t), 2 * n + wg, boxes[wg])
    problem.finish()


def _store(sums: Sequence[Fragment], target: Tensor, column: Int, boxes: Tensor) -> None:
    """Store sums of 64 rows each, one below the other, but none beyond the end of the target."""
    parts = [epilogue_parts(identity, acc, (row, column), boxes) for row, acc in enumerate(sums)]
    whole = Parts(sum(each.count for each in parts), chain.from_iterable(each.each for each in parts))
    store_parts_until_end(whole, target, boxes)
