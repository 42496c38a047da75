"""C = A @ B^T of 8-bit floats (e4m3) whose blocks have scales: 1 x 128 of A, 128 x 128 of B.

Each 128 of k is multiplied into a sum of its own in the matrix unit, which keeps few bits, then scaled and added to the
sum of all in full single precision: promotion [DeepSeek-V3 2024, section 3.3.2].
"""

from __future__ import annotations

from math import prod

from attrs import frozen

from argus.kernels.contraction import Contraction
from argus.kernels.hopper import identity, parts_of, store_boxes, store_by_tma
from argus.language import (
    Fragment,
    Ring,
    Tensor,
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
    kernel,
    load,
    loop,
    mma,
    persistent,
    registers,
    role,
    shared,
    sm_90a,
    super_tiled,
    tag,
    tma,
    warpgroup,
    warpgroups,
    wgmma,
)

BLOCK = 128
"""Elements of k, and rows of B, that share a scale."""


@frozen
class Blocks:
    """H200: bm x 128 tiles, 128 of K a slot, by a role that loads and two warpgroups that multiply.

    group: rows of a super-tile, 0 for tiles by rows. cluster: blocks that run together, neighbouring rows first.
    whole: whether a tile leaves through boxes of its own for all of its columns.
    """

    bm: int = 128
    stages: int = 5
    group: int = 0
    cluster: tuple[int, ...] = (1,)
    whole: bool = False
    bn = BLOCK
    target = sm_90a
    threads = 384


CONFIGS = {
    "by_rows": Blocks(),
    "super_tiled": Blocks(group=8),
    "clustered": Blocks(cluster=(2, 1)),
    "clustered_bands": Blocks(cluster=(2, 1), group=8),
    "rows_256": Blocks(bm=256, stages=4),
    "rows_256_bands": Blocks(bm=256, stages=4, group=8),
    "rows_256_clustered": Blocks(bm=256, stages=4, cluster=(1, 2)),
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
    bm, bn = cfg.bm, cfg.bn
    rows, columns = problem.tiles(bm, bn)
    problem.aligned()
    assume(rows * columns < 1 << 23)
    depth = ceil_div(A.shape[1], BLOCK)
    assume(eq(scale_a.shape[0], depth), eq(scale_b.shape[0], columns))
    mm = wgmma(e4m3, n=bn)
    ring = Ring(cfg.stages, a=shared(e4m3, (bm, BLOCK), swizzle=128), b=shared(e4m3, (bn, BLOCK), swizzle=128))
    boxes = store_boxes(bn, whole=cfg.whole)
    tiles = persistent((rows, columns), order=super_tiled(cfg.group) if cfg.group else by_rows)
    problem.bounded(rows * columns, depth, cfg.stages)

    with role("load", warpgroup(0).elected, registers=40):
        for m, n in tiles:
            for k in loop(depth):
                with ring.fill() as slot:
                    _fetch(cfg, (A.tile((bm, BLOCK), (m, k)), slot.a), (B.tile((bn, BLOCK), (n, k)), slot.b))
        ring.finish()

    with role("math", warpgroups(1, 2), registers=232) as wg:
        parts = bm // 128  # of 64 rows, of each warpgroup
        part, accs = registers(f32, mm.C), [registers(f32, mm.C) for _ in range(parts)]
        for m, n in tiles:
            for acc in accs:
                acc[:] = 0.0
            for k in loop(depth):
                slot = ring.wait()
                for i, acc in enumerate(accs):
                    mma(mm, part, slot.a.tile((64, BLOCK), (parts * wg + i, 0)), slot.b, init=True)
                    of_rows = load(scale_a[k].tile((64,), (2 * parts * m + parts * wg + i,)), mm.C.axis(0), edge=0)
                    of_columns = load(scale_b[n, k], mm.C.axis())
                    wgmma.wait(0)
                    if i == parts - 1:
                        ring.release()
                    _promote(acc, part, of_rows, of_columns)
            for i, acc in enumerate(accs):
                problem.complete(acc)
                at = (2 * parts * m + parts * wg + i, n)
                store_by_tma(parts_of(identity, acc, at, boxes), C, boxes[wg])
        with elected():
            bulk.wait(0, of="reads")  # what is on its way out arrives by itself
    problem.finish()


def _fetch(cfg: Blocks, a: tuple[Tensor, Tensor], b: tuple[Tensor, Tensor]) -> None:
    """Both tiles of a slot; of a cluster each block fetches its share of the tile that all multiply by."""
    blocks = prod(cfg.cluster)
    if blocks == 1:
        copy(*a, via=tma, edge=0)
        copy(*b, via=tma, edge=0)
        return
    own, common = (b, a) if cfg.cluster[0] == 1 else (a, b)
    copy(*own, via=tma, edge=0)
    to_all = tma.multicast(tuple(range(blocks)))
    copy(*(each.part(0, cluster.rank, blocks) for each in common), via=to_all, edge=0)


def _promote(acc: Fragment, part: Fragment, rows: Fragment, columns: Fragment) -> None:
    """A block's sum, scaled, into the sum of all: each k that it sums lies in the block of both scales."""
    assert_relation(
        part,
        rows,
        columns,
        lambda p, r, c: eq(r.kb, p.k // BLOCK) & eq(c.kb, p.k // BLOCK) & eq(c.nb, p.n // BLOCK),
    )
    acc += part * (rows * columns)
