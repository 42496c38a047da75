"""FP8 GEMM with block scales: C = A @ B^T of e4m3, scales per 1 x 128 of A and per 128 x 128 of B.

wgmma, which accumulates FP8 products with few bits, sums each 128 of K into its own partial sum; that is then scaled
and added to an f32 accumulator: promotion [DeepSeek-V3 2024, section 3.3.2].
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import prod

from attrs import frozen

from argus.kernels.schedules.contraction import Contraction, slot_for
from argus.kernels.schedules.epilogues import TileCoord
from argus.kernels.schedules.promoted import BLOCK, WIDTH, Sums, blocks_of, pieces_of
from argus.language import (
    TV,
    Fragment,
    Int,
    Ring,
    Tensor,
    Turns,
    assert_relation,
    assume,
    bf16,
    bulk,
    by_rows,
    ceil_div,
    cluster,
    copy,
    e4m3,
    elected,
    eq,
    f32,
    fence,
    fma,
    kernel,
    load,
    loop,
    persistent,
    registers,
    role,
    shared,
    sm_90a,
    st_global_b16,
    stmatrix,
    super_tiled,
    sync,
    tag,
    tma,
    warpgroup,
    warpgroups,
    wgmma,
)

ALIGNED = 4
"""Scales in 16 bytes; TMA requires rows of a multiple of that."""


@frozen
class Blocks:
    """H200: bm x bn tiles, 128 of K per stage; one producer warpgroup and two consumer warpgroups.

    bn: 128, or another multiple of 64: such tiles have scales of B for each 64 columns. group: rows of a super-tile, 0
    for row-major tiles. cluster: CTAs along rows, then columns. whole: one epilogue box for each part of a tile, which
    takes the memory of a stage or more. narrow: the epilogue stores one box of 64 columns at a time, which saves memory
    for a stage. ragged: the epilogue stores single elements, so that rows of C may have any length. slots: scales of A
    are part of the stages, which needs M to be a multiple of 4. ordered: the warpgroups issue the first wgmma of a
    stage in a fixed order. rounds: iterations over K between two branches back, which end and begin while others go on.
    """

    bm: int = 128
    bn: int = BLOCK
    stages: int = 5
    group: int = 0
    cluster: tuple[int, ...] = (1,)
    whole: bool = False
    narrow: bool = False
    ragged: bool = False
    slots: bool = False
    ordered: bool = False
    rounds: int = 1
    target = sm_90a
    threads = 384

    @property
    def parts(self) -> int:
        """Parts of 64 rows per warpgroup."""
        return self.bm // 128


CONFIGS = {
    "by_rows": Blocks(),
    "super_tiled": Blocks(group=8),
    "clustered": Blocks(cluster=(2, 1)),
    "clustered_bands": Blocks(cluster=(2, 1), group=8),
    "ragged": Blocks(ragged=True),
    "rows_256": Blocks(bm=256, stages=4),
    "rows_256_bands": Blocks(bm=256, stages=4, group=8),
    "rows_256_clustered": Blocks(bm=256, stages=4, cluster=(1, 2)),
    "rows_256_whole": Blocks(bm=256, stages=3, group=8, whole=True),
    "rows_256_beside": Blocks(bm=256, stages=3, cluster=(1, 2), whole=True),
    "ordered_bands": Blocks(bm=256, stages=4, group=8, narrow=True, slots=True, ordered=True, rounds=8),
    "ordered_whole": Blocks(bm=256, stages=3, group=8, whole=True, slots=True, ordered=True),
    "rows_256_pairs": Blocks(bm=256, stages=4, group=8, cluster=(1, 2), narrow=True, slots=True, rounds=8),
    "columns_192_pairs": Blocks(bn=192, stages=4, group=8, cluster=(2, 1), whole=True, slots=True, rounds=8),
}


@kernel(configs=CONFIGS)
def gemm_fp8_blocks(
    A: Tensor["M K", e4m3],
    B: Tensor["N K", e4m3],
    scale_a: Tensor["KB M", f32],
    scale_b: Tensor["NB KB", f32],
    C: Tensor["M N", bf16],
    *,
    cfg: Blocks,
) -> None:
    """C[m, n] = sum over k of A[m, k] scale_a[k // 128, m] * B[n, k] scale_b[n // 128, k // 128]."""
    tag(scale_a, lambda kb, m: dict(m=m, kb=kb))
    tag(scale_b, lambda nb, kb: dict(nb=nb, kb=kb))
    problem = Contraction(A, B, C)
    bm, bn, parts = cfg.bm, cfg.bn, cfg.parts
    rows, columns = problem.tiles(bm, bn)
    problem.assume_aligned(stores=not cfg.ragged)
    assume(rows * columns < 1 << 22)  # so that 256 rows times any tile number fit 32 bits
    depth = ceil_div(A.shape[1], BLOCK)
    assume(eq(scale_a.shape[0], depth), eq(scale_b.shape[0], ceil_div(B.shape[0], BLOCK)))
    ring = _ring(cfg, A, B)
    box_shape = (2, parts if cfg.whole else 1, 1 if cfg.narrow else bn // WIDTH, 64, WIDTH)
    boxes = None if cfg.ragged else shared(bf16, box_shape, swizzle=128)
    turns = Turns(2) if cfg.ordered else None
    tiles = persistent((rows, columns), order=super_tiled(cfg.group) if cfg.group else by_rows)
    problem.assume_ring_bounds(rows * columns, depth, cfg.stages)

    with role("load", warpgroup(0).elected, registers=40):
        for m, n in tiles:
            for k in loop(depth):
                with ring.fill() as slot:
                    _fetch(cfg, (A.tile((bm, BLOCK), (m, k)), slot.a), (B.tile((bn, BLOCK), (n, k)), slot.b))
                    if cfg.slots:
                        copy(scale_a.tile((1, bm), (k, m)), slot.scales, via=tma, edge=0)
        ring.finish()

    with role("math", warpgroups(1, 2), registers=232) as wg:
        sums = Sums(bn, parts)
        scales = Scales(scale_a, scale_b, cfg, sums.layout)
        for m, n in tiles:
            sums.clear()
            places = [2 * parts * m + parts * wg + i for i in range(parts)]
            scales.fetch(0, n, places)
            for k in loop(depth, unroll=cfg.rounds):
                slot = ring.wait()
                sums.multiply(slot, wg, 0, turns)
                # Overlaps with the wgmma, as do the loads of the next block's scales.
                factors = scales.products(slot.scales[0] if cfg.slots else None, wg)
                if cfg.slots:
                    sync()  # all threads have read the scales of rows; none waits long for it during the wgmma
                scales.fetch(k + 1, n, places)
                for p in range(parts):
                    if p > 0:
                        sums.multiply(slot, wg, p)
                    wgmma.wait(0)
                    if p == parts - 1:
                        ring.release(sync=False)
                    for each in zip(sums.accs[p], sums.pieces(), factors[p], strict=True):
                        _promote(*each)
            for acc in chain(*sums.accs):
                problem.complete(acc)
            _store_tile(cfg, sums, C, [(place, n) for place in places], None if boxes is None else boxes[wg])
        if boxes is not None:
            with elected():
                bulk.wait(0, of="reads")  # the stores have read the boxes; they complete without the CTA
    problem.finish()


class Scales:
    """Registers for the scales of one block of K: of B for each piece of the columns, and of A for each 64 rows unless
    these are in the stages. layout: of an accumulator.
    """

    def __init__(self, a: Tensor, b: Tensor, cfg: Blocks, layout: TV) -> None:
        self.a, self.b, self.layout, self.parts, self.width = a, b, layout, cfg.parts, cfg.bn
        self.of_rows = [] if cfg.slots else [registers(f32, layout.axis(0)) for _ in range(cfg.parts)]
        self.of_columns = [registers(f32, layout.axis()) for _ in range(pieces_of(cfg.bn))]

    def fetch(self, k: Int | int, n: Int, places: Sequence[Int]) -> None:
        """Issue the loads of block k's scales; zeros beyond the last block."""
        for block, held in zip(blocks_of(n, self.width), self.of_columns, strict=True):
            copy(self.b[block, k], held, edge=0)
        if self.of_rows:
            for held, place in zip(self.of_rows, places, strict=True):
                copy(self.a[k].tile((64,), (place,)), held, edge=0)

    def products(self, in_slot: Tensor | None, wg: Int) -> list[list[Fragment]]:
        """The products of row and column scales, for each accumulator."""
        rows = self.of_rows
        if in_slot is not None:
            places = [self.parts * wg + p for p in range(self.parts)]
            rows = [load(in_slot.tile((64,), (place,)), self.layout.axis(0)) for place in places]
        return [[held * of_columns for of_columns in self.of_columns] for held in rows]


def _ring(cfg: Blocks, a: Tensor, b: Tensor) -> Ring:
    """The pipeline: each stage has a tile of A and B, and with `slots` the scales of A."""
    held = {"a": slot_for(a, cfg.bm, BLOCK), "b": slot_for(b, cfg.bn, BLOCK)}
    if cfg.slots:
        assume(a.shape[0] % ALIGNED == 0)
        held["scales"] = shared(f32, (1, cfg.bm))
    return Ring(cfg.stages, **held)


def _fetch(cfg: Blocks, a: tuple[Tensor, Tensor], b: tuple[Tensor, Tensor]) -> None:
    """Load both tiles of a stage; in a cluster each CTA multicasts its part of the shared tile."""
    blocks = prod(cfg.cluster)
    if blocks == 1:
        copy(*a, via=tma, edge=0)
        copy(*b, via=tma, edge=0)
        return
    own, common = (b, a) if cfg.cluster[0] == 1 else (a, b)
    copy(*own, via=tma, edge=0)
    to_all = tma.multicast(tuple(range(blocks)))
    copy(*(each.part(0, cluster.rank, blocks) for each in common), via=to_all, edge=0)


def _store_tile(cfg: Blocks, sums: Sums, target: Tensor, at: Sequence[TileCoord], boxes: Tensor | None) -> None:
    """Store accumulators of 64 rows to global memory."""
    if boxes is None:
        for (acc,), place in zip(sums.accs, at, strict=True):
            copy(acc.to(bf16), target.tile((64, BLOCK), place), via=st_global_b16, edge=0)
        return
    together, columns = (int(extent) for extent in boxes.shape[:2])
    for i in range(0, cfg.parts, together):
        for j in range(0, cfg.bn // WIDTH, columns):
            parts = [[sums.columns(p, j + beside) for beside in range(columns)] for p in range(i, i + together)]
            places = [(row, column * (cfg.bn // WIDTH) + j) for row, column in at[i : i + together]]
            _store_boxes(parts, target, places, boxes)


def _store_boxes(parts: Sequence[Sequence[Fragment]], target: Tensor, at: Sequence[TileCoord], boxes: Tensor) -> None:
    """Store parts of 64 x 64 by TMA: fill all boxes, barrier, store all. at: coordinates of each row's first part."""
    with elected():
        bulk.wait(pending=0, of="reads")  # the last stores have read the boxes
    sync()
    sent = [(i, j) for i, row in enumerate(parts) for j in range(len(row))]
    for i, j in sent:
        copy(parts[i][j].to(bf16), boxes[i, j], via=stmatrix.x4)
    fence("async proxy")
    sync()
    with elected():
        for i, j in sent:
            row, column = at[i]
            copy(boxes[i, j], target.tile((64, WIDTH), (row, column + j)), via=tma, edge=0)
        bulk.commit()


def _promote(acc: Fragment, part: Fragment, scale: Fragment) -> None:
    """acc += part * scale; claims that each k in `part` lies in the blocks of both scales."""
    assert_relation(part, scale, lambda p, s: eq(s.kb, p.k // BLOCK) & eq(s.nb, p.n // BLOCK))
    acc[:] = fma(part, scale, acc)
