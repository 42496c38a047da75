"""C = A @ B^T on Hopper by clusters of blocks: each fetches a part of the tile that all of them multiply by."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from argus.kernels.schedules.contraction import Contraction, one_of, part, slot_for
from argus.kernels.schedules.hopper import Fuse, Hopper, begun, give_back, give_last_back, leave, leave_last, parts_of
from argus.language import (
    Int,
    Ring,
    assume,
    block_id,
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
    tma,
    warpgroup,
    warpgroups,
    wgmma,
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
    boxes = begun(cfg, C.dtype)
    tiles = _tiles(problem, cfg)
    depth = ceil_div(A.shape[-1], bk)
    blocks, to_all = prod(cfg.cluster), tma.multicast(tuple(range(prod(cfg.cluster))))
    rows_alike = cfg.cluster[0] == 1
    problem.bounded(count, depth, cfg.stages)

    with role("load", warpgroup(0).elected, registers=40 if cfg.realloc else None):
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

    with role("math", warpgroups(1, 2), registers=232 if cfg.realloc else None) as wg:
        acc = registers(f32, mm.C)
        for m, n, *z in tiles:
            for k in loop(depth):
                slot = ring.wait()
                mma(mm, acc, slot.a.tile((64, bk), (wg, 0)), slot.b, init=eq(k, 0))
                give_back(cfg, ring, k)  # to all blocks
            parts = parts_of(fuse, acc, (2 * m + wg, n), boxes)
            give_last_back(cfg, ring)
            problem.complete(acc)
            leave(parts, one_of(C, z), boxes, wg)
        leave_last(boxes)


def _tiles(problem: Contraction, cfg: Hopper) -> Iterable[tuple[Int, ...]]:
    """Those of this block: neighbours' beside its own, cluster by cluster; or one, of as many clusters as there are."""
    if cfg.persistent:
        return persistent(problem.tiles(cfg.bm, cfg.bn), order=problem.order(cfg.order))
    rows, columns = problem.tiles(cfg.bm * cfg.cluster[0], cfg.bn * prod(cfg.cluster[1:]))
    blocks = prod(cfg.cluster)
    if cfg.cluster[0] == 1:
        number, rank = block_id((rows * columns, blocks))
    else:
        assume(rows * columns < 1 << 16)  # blocks along the second axis of a grid
        rank, number = block_id((blocks, rows * columns))
    m, n = cfg.order(number, (rows, columns))
    return [(m + 0 * number, blocks * n + rank) if cfg.cluster[0] == 1 else (blocks * m + rank, n + 0 * number)]
