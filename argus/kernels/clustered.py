"""C = A @ B^T on Hopper by clusters of blocks: each fetches a part of the tile that all of them multiply by."""

from __future__ import annotations

from math import prod

from argus.kernels.contraction import Contraction, one_of, part, slot_for
from argus.kernels.hopper import Fuse, Hopper, parts_of, store_boxes, store_by_tma
from argus.language import (
    Ring,
    assume,
    bulk,
    ceil_div,
    cluster,
    copy,
    elected,
    eq,
    f32,
    loop,
    mma,
    persistent,
    registers,
    role,
    tma,
    warpgroup,
    warpgroups,
    wgmma,
    when,
)


def hopper_clustered(problem: Contraction, cfg: Hopper, fuse: Fuse) -> None:
    """As `hopper_cooperative`; neighbouring rows share a tile of B, neighbouring columns one of A.

    A slot goes back to all blocks of the cluster.
    """
    A, B, C = problem.A, problem.B, problem.C
    bm, bn, bk = cfg.bm, cfg.bn, cfg.bk
    count = problem.count(bm, bn)
    problem.aligned()
    assume(count < 1 << 23)  # tiles, of which 256 rows times any number then fits 32 bits
    mm = wgmma(A.dtype, n=bn)
    ring = Ring(cfg.stages, a=slot_for(A, bm, bk), b=slot_for(B, bn, bk))
    boxes = store_boxes(bn, whole=cfg.whole, dtype=C.dtype, turns=cfg.turns)
    tiles = persistent(problem.tiles(bm, bn), order=problem.order(cfg.order))
    depth = ceil_div(A.shape[-1], bk)
    blocks, to_all = prod(cfg.cluster), tma.multicast(tuple(range(prod(cfg.cluster))))
    rows_alike = cfg.cluster[0] == 1
    problem.bounded(count, depth, cfg.stages)

    with role("load", warpgroup(0).elected, registers=40):
        for m, n, *z in tiles:
            for k in loop(depth):
                with ring.fill() as slot:
                    own = one_of(A, z).tile((bm, bk), (m, k)), slot.a
                    common = one_of(B, z).tile((bn, bk), (n, k)), slot.b
                    if rows_alike:
                        own, common = common, own
                    copy(*own, via=tma, edge=0)
                    copy(*(part(each, cluster.rank, blocks) for each in common), via=to_all, edge=0)
        ring.finish()  # nobody leaves while a peer may still arrive here

    with role("math", warpgroups(1, 2), registers=232) as wg:
        acc = registers(f32, mm.C)
        for m, n, *z in tiles:
            for k in loop(depth):
                slot = ring.wait()
                mma(mm, acc, slot.a.tile((64, bk), (wg, 0)), slot.b, init=eq(k, 0))
                wgmma.wait(pending=1)  # k - 1 has finished reading its slot ...
                with when(k > 0):
                    ring.release()  # ... which goes back to all blocks
            parts = parts_of(fuse, acc, (2 * m + wg, n), boxes)
            wgmma.wait(pending=0)
            ring.release()
            problem.complete(acc)
            store_by_tma(parts, one_of(C, z), boxes[wg])
        with elected():
            bulk.wait(0, of="reads")  # what is on its way out arrives by itself
