"""The schedule of grouped products of e4m3 with scales of blocks: per 1 x 128 of the rows, 128 x 128 of the experts.

As in `argus.kernels.fp8_blocks`, each 128 of K has a partial sum of its own, which is scaled and added in f32.
"""

from __future__ import annotations

from attrs import frozen

from argus.kernels.schedules.contraction import slot_for
from argus.kernels.schedules.grouped import BLOCK, GroupedContraction, store_until_end
from argus.kernels.schedules.hopper import store_boxes
from argus.language import (
    Int,
    Ring,
    Tensor,
    assume,
    bf16,
    by_rows,
    ceil_div,
    copy,
    e4m3,
    f32,
    fma,
    loop,
    mma,
    persistent,
    registers,
    role,
    scalar,
    sm_90a,
    super_tiled,
    tma,
    warpgroup,
    warpgroups,
    wgmma,
)

_ROWS = 64
"""Rows of a warpgroup."""


@frozen
class GroupedBlocks:
    """H200: 128 x 128 tiles, 128 of K per stage; one producer warpgroup and two consumer warpgroups.

    group: rows of a super-tile, in tiles; 0: row-major tiles. turns: boxes of shared memory through which a warpgroup
    stores, 64 columns at a time.
    """

    stages: int = 5
    group: int = 8
    turns: int = 2
    bm = 2 * _ROWS
    target = sm_90a
    threads = 384


def hopper_grouped_blocks(problem: GroupedContraction, scales: tuple[Tensor, Tensor], cfg: GroupedBlocks) -> None:
    """Trace the schedule. scales: of A and B, those of the problem."""
    scale_a, scale_b = scales
    counts, depth = (problem.tiles, ceil_div(problem.C.shape[1], BLOCK)), ceil_div(problem.A.shape[1], BLOCK)
    assume(
        counts[0] * counts[1] < 1 << 22, counts[0] * counts[1] * (depth + 1) < 1 << 32
    )  # coordinates, uses of stages
    ring = Ring(cfg.stages, a=slot_for(problem.A, cfg.bm, BLOCK), b=slot_for(problem.B, BLOCK, BLOCK))
    boxes = store_boxes(BLOCK, whole=False, dtype=bf16, turns=cfg.turns)
    tiles = persistent(counts, order=super_tiled(cfg.group) if cfg.group else by_rows)

    with role("load", warpgroup(0).elected, registers=40):
        for t, n in tiles:
            with problem.where_rows(t):
                a, b = problem.operands(t)
                for k in loop(depth):
                    with ring.fill() as slot:
                        copy(a.tile((cfg.bm, BLOCK), (0, k)), slot.a, via=tma, edge=0)
                        copy(b.tile((BLOCK, BLOCK), (n, k)), slot.b, via=tma, edge=0)
        ring.finish()

    with role("math", warpgroups(1, 2), registers=232) as wg:
        mm = wgmma(e4m3, n=BLOCK)
        part, acc = registers(f32, mm.C), registers(f32, mm.C)
        of_rows, of_columns = registers(f32, mm.C.axis(0)), registers(f32, mm.C.axis())
        for t, n in tiles:
            with problem.where_rows(t):
                first, e = scalar(problem.tile_starts[t]), scalar(problem.tile_experts[t])

                def fetch(k: Int | int, n: Int = n, first: Int = first, e: Int = e) -> None:
                    copy(scale_b[e, n, k], of_columns, edge=0)
                    copy(scale_a[k].rows(first).tile((_ROWS,), (wg,)), of_rows, edge=0)

                acc[:] = 0.0
                fetch(0)
                for k in loop(depth):
                    slot = ring.wait()
                    mma(mm, part, slot.a.tile((_ROWS, BLOCK), (wg, 0)), slot.b, init=True)
                    factors = of_rows * of_columns  # overlaps with the wgmma, as do the loads of the next scales
                    fetch(k + 1)
                    wgmma.wait(0)
                    ring.release()
                    acc[:] = fma(part, factors, acc)
                store_until_end(acc, problem.result(t), (wg, n), boxes[wg])
    problem.finish()
