"""The Hopper schedule by clusters: each CTA loads a part of the operand tile that all share, by TMA multicast."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from argus.kernels.schedules.contraction import Contraction, matrix_of, part, slot_for
from argus.kernels.schedules.epilogues import Tail
from argus.kernels.schedules.hopper import (
    Hopper,
    begin_kernel,
    blocks_of,
    epilogue_parts,
    release_last,
    release_previous,
    store_tile,
    wait_for_stores,
)
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


def hopper_clustered(problem: Contraction, cfg: Hopper, tail: Tail) -> None:
    """As `hopper_cooperative`, for CTAs along rows of C that share a tile of B, or along columns that share one of A.

    A consumer releases a stage to the producers of all CTAs of the cluster.
    """
    A, B, C = problem.A, problem.B, problem.C
    bm, bn, bk = cfg.bm, cfg.bn, cfg.bk
    count = problem.count(bm, bn)
    problem.assume_aligned(stores=not cfg.single)
    assume(count < 1 << 23)  # so that 256 rows times any tile number fit 32 bits
    mm = wgmma(A.dtype, n=bn)
    ring = Ring(cfg.stages, a=slot_for(A, bm, bk), b=slot_for(B, bn, bk))
    boxes = begin_kernel(cfg, C.dtype)
    tiles = _tiles(problem, cfg)
    depth = ceil_div(A.shape[-1], bk)
    blocks, to_all = prod(cfg.cluster), tma.multicast(tuple(range(prod(cfg.cluster))))
    rows_alike = cfg.cluster[0] == 1
    problem.assume_ring_bounds(count, depth, cfg.stages)

    with role("load", warpgroup(0).elected, registers=40 if cfg.realloc else None):
        for m, n, *z in tiles:
            for k in loop(depth):
                with ring.fill() as slot:
                    own = matrix_of(A, z).tile((bm, bk), (m, k)), slot.a
                    common = matrix_of(B, z).tile((bn, bk), (n, k)), slot.b
                    if rows_alike:
                        own, common = common, own
                    copy(*own, via=tma, edge=0)
                    copy(*(part(each, cluster.rank, blocks) for each in common), via=to_all, edge=0)
        ring.finish()  # no CTA exits while a peer may still arrive at its barriers

    with role("math", warpgroups(1, 2), registers=232 if cfg.realloc else None) as wg:
        acc = registers(f32, mm.C)
        for m, n, *z in tiles:
            for k in loop(depth):
                slot = ring.wait()
                mma(mm, acc, slot.a.tile((64, bk), (wg, 0)), slot.b, init=eq(k, 0))
                release_previous(cfg, ring, k)  # to all CTAs
            parts = epilogue_parts(tail(z), acc, (2 * m + wg, n), boxes)
            release_last(cfg, ring)
            problem.complete(acc)
            store_tile(parts, matrix_of(C, z), boxes, wg)
        wait_for_stores(boxes)


def _tiles(problem: Contraction, cfg: Hopper) -> Iterable[tuple[Int, ...]]:
    """The tiles of this CTA, next to those of its cluster's other CTAs: many if persistent, else one."""
    if cfg.persistent:
        tiles, order = problem.tiles(cfg.bm, cfg.bn), problem.order(cfg.order)
        return persistent(tiles, order=order, blocks=blocks_of(cfg.cluster))
    rows, columns = problem.tiles(cfg.bm * cfg.cluster[0], cfg.bn * prod(cfg.cluster[1:]))
    blocks = prod(cfg.cluster)
    if cfg.cluster[0] == 1:
        number, rank = block_id((rows * columns, blocks))
    else:
        assume(rows * columns < 1 << 16)  # limit of the grid's second dimension
        rank, number = block_id((blocks, rows * columns))
    m, n = cfg.order(number, (rows, columns))
    return [(m + 0 * number, blocks * n + rank) if cfg.cluster[0] == 1 else (blocks * m + rank, n + 0 * number)]
