"""The schedule of grouped products of e4m3 with scales of blocks: per 1 x 128 of the rows, 128 x 128 of the experts.

As in `argus.kernels.fp8_blocks`, each 128 of K has a partial sum of its own, which is scaled and added in f32.
"""

from __future__ import annotations

from attrs import frozen

from argus.kernels.schedules.contraction import slot_for
from argus.kernels.schedules.epilogues import TileCoord
from argus.kernels.schedules.grouped import BLOCK, GroupedContraction, store_parts_until_end
from argus.kernels.schedules.hopper import Parts, store_boxes
from argus.kernels.schedules.promoted import WIDTH, Sums, blocks_of
from argus.language import (
    Int,
    Ring,
    Tensor,
    assume,
    bf16,
    by_rows,
    ceil_div,
    copy,
    f32,
    fma,
    loop,
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
    """H200: 128 x bn tiles, 128 of K per stage; one producer warpgroup and two consumer warpgroups.

    bn: 128, or another multiple of 64: such tiles have scales of B for each 64 columns.
    group: rows of a super-tile, in tiles; 0: row-major tiles. turns: boxes of shared memory through which a warpgroup
    stores, 64 columns at a time. rounds: iterations over K between two branches back.
    """

    bn: int = BLOCK
    stages: int = 5
    group: int = 8
    turns: int = 2
    rounds: int = 1
    bm = 2 * _ROWS
    target = sm_90a
    threads = 384


def hopper_grouped_blocks(problem: GroupedContraction, scales: tuple[Tensor, Tensor], cfg: GroupedBlocks) -> None:
    """Trace the schedule. scales: of A and B, those of the problem."""
    scale_a, scale_b = scales
    counts, depth = (problem.tiles, ceil_div(problem.C.shape[1], cfg.bn)), ceil_div(problem.A.shape[1], BLOCK)
    assume(
        counts[0] * counts[1] < 1 << 22, counts[0] * counts[1] * (depth + 1) < 1 << 32
    )  # coordinates, uses of stages
    ring = Ring(cfg.stages, a=slot_for(problem.A, cfg.bm, BLOCK), b=slot_for(problem.B, cfg.bn, BLOCK))
    boxes = store_boxes(cfg.bn, whole=False, dtype=bf16, turns=cfg.turns)
    tiles = persistent(counts, order=super_tiled(cfg.group) if cfg.group else by_rows)

    with role("load", warpgroup(0).elected, registers=40):
        for t, n in tiles:
            with problem.where_rows(t):
                a, b = problem.operands(t)
                for k in loop(depth):
                    with ring.fill() as slot:
                        copy(a.tile((cfg.bm, BLOCK), (0, k)), slot.a, via=tma, edge=0)
                        copy(b.tile((cfg.bn, BLOCK), (n, k)), slot.b, via=tma, edge=0)
        ring.finish()

    with role("math", warpgroups(1, 2), registers=232) as wg:
        sums = Sums(cfg.bn)
        of_rows = registers(f32, sums.layout.axis(0))
        of_columns = [registers(f32, sums.layout.axis()) for _ in sums.accs[0]]
        for t, n in tiles:
            with problem.where_rows(t):
                first, e = scalar(problem.tile_starts[t]), scalar(problem.tile_experts[t])

                def fetch(k: Int | int, n: Int = n, first: Int = first, e: Int = e) -> None:
                    for block, held in zip(blocks_of(n, cfg.bn), of_columns, strict=True):
                        copy(scale_b[e, block, k], held, edge=0)
                    copy(scale_a[k].rows(first).tile((_ROWS,), (wg,)), of_rows, edge=0)

                sums.clear()
                fetch(0)
                for k in loop(depth, unroll=cfg.rounds):
                    slot = ring.wait()
                    sums.multiply(slot, wg)
                    # Overlaps with the wgmma, as do the loads of the next scales.
                    factors = [of_rows * each for each in of_columns]
                    fetch(k + 1)
                    wgmma.wait(0)
                    ring.release()
                    for acc, part, factor in zip(sums.accs[0], sums.pieces(), factors, strict=True):
                        acc[:] = fma(part, factor, acc)
                store_parts_until_end(_parts(sums, (wg, n)), problem.result(t), boxes[wg])
    problem.finish()


def _parts(sums: Sums, at: TileCoord) -> Parts:
    """The accumulators in parts of 64 columns. at: coordinate of the tile among tiles of its shape."""
    count = int(sums.part.shape[1]) // WIDTH
    each = [((lambda j=j: sums.columns(0, j)), (at[0], at[1] * count + j)) for j in range(count)]
    return Parts(count, iter(each))
