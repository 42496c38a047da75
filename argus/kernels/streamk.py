"""Stream-K GEMM, for tiles that do not fill the GPU: blocks take equal ranges of K across tile borders.

A program of two launches: partial sums in a workspace, then their sum (`schedules.stream_k`). For MI300X:
`argus.kernels.streamk_cdna3`.
"""

from __future__ import annotations

from attrs import frozen

from argus.kernels.config_names import config_of
from argus.kernels.schedules.contraction import part as half
from argus.kernels.schedules.contraction import slot_for
from argus.kernels.schedules.stream_k import Reduction, Runs, reduce_parts
from argus.language import (
    Int,
    Ring,
    Tensor,
    assert_covers,
    assume,
    bf16,
    block_id,
    ceil_div,
    cluster,
    copy,
    f32,
    kernel,
    loop,
    minimum,
    mma,
    program,
    role,
    sm_90a,
    tag,
    tma,
    warpgroup,
    warpgroups,
    wgmma,
    when,
    workspace,
    zeros,
)

_AGENTS = {64: (1, 232), 128: (2, 232), 192: (3, 152), 256: (2, 232)}
"""Warpgroups that multiply, and their registers, by `Stream.bm`."""


@frozen
class Stream:
    """bm x bn tiles (bm 64, 128, 192 or 256, bn a multiple of 32), bk of K per stage.

    The K of each tile is `chunks` chunks; each block takes `run` consecutive ones, the work of run / chunks tiles. With
    run = 1 this is split-K in `chunks` parts, and no run covers two tiles. peers: CTAs of a cluster, along rows, of
    which each loads a part of the tile of B for all.
    swap_ab: swap A and B: bm counts rows of B, and bn, a multiple of 8 for each CTA of the cluster, rows of A.
    """

    bm: int = 128
    bn: int = 128
    bk: int = 64
    stages: int = 7
    chunks: int = 8
    run: int = 1
    peers: int = 1
    swap_ab: bool = False
    target = sm_90a

    @property
    def cluster(self) -> tuple[int, ...]:
        return (self.peers, 1) if self.peers > 1 else (1,)

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of a tile of C, of all CTAs of the cluster."""
        across = self.bm * self.peers
        return (self.bn, across) if self.swap_ab else (across, self.bn)

    @property
    def threads(self) -> int:
        return 128 + 128 * _AGENTS[self.bm][0]

    @property
    def runs(self) -> Runs:
        return Runs(*self.tile, self.chunks, self.run)


@kernel
def partial_gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], part: Tensor["P S R W", f32], *, cfg: Stream) -> None:
    """part[p, j] = the partial sums of block p in the j-th tile of its run."""
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    partial_sums(A, B, part, cfg, (A.shape[0], B.shape[0], A.shape[1]))


def partial_sums(A: Tensor, B: Tensor, part: Tensor, cfg: Stream, extents: tuple[Int, Int, Int]) -> None:
    """The body of `partial_gemm`. extents: M, N and K of the tags m, n and k; A and B are 0 beyond them."""
    M, N, depth_of_tags = extents
    K, bm, bn, bk, peers, runs = A.shape[1], cfg.bm, cfg.bn, cfg.bk, cfg.peers, cfg.runs
    rows, columns = runs.tiles(M, N)
    assume(K >= 1, K % 8 == 0)
    runs.assume_workspace(part, M, N)
    left, right = (B, A) if cfg.swap_ab else (A, B)
    mm = wgmma(A.dtype, n=bn)
    ring = Ring(cfg.stages, a=slot_for(left, bm, bk), b=slot_for(right, bn, bk))
    p, rank = _places(cfg, runs.blocks(M, N))
    depth = ceil_div(K, bk * runs.chunks)  # iterations per chunk
    assume((rows * columns * runs.chunks + runs.run) * depth < 1 << 24)  # bounds the ring's use count over all tiles
    first = runs.first(p)

    agents, multiplying = _AGENTS[bm]
    sums = bm // 64 // agents  # accumulators of a warpgroup

    with role("load", warpgroup(0).elected, registers=40):
        for j in loop(runs.max_tiles):
            low, high = runs.share(p, first + j, depth)
            m, n = (first + j) // columns, (first + j) % columns
            own, common = (n, m) if cfg.swap_ab else (m, n)
            for k in loop(low, high):
                with ring.fill() as slot:
                    copy(left.tile((bm, bk), (peers * own + rank, k)), slot.a, via=tma, edge=0)
                    of_all = right.tile((bn, bk), (common, k))
                    if peers == 1:
                        copy(of_all, slot.b, via=tma, edge=0)
                    else:  # each CTA multicasts a part to all
                        fetched, held = (half(each, cluster.rank, peers) for each in (of_all, slot.b))
                        copy(fetched, held, via=tma.multicast(tuple(range(peers))), edge=0)
        ring.finish()

    with role("math", warpgroups(*range(1, agents + 1)), registers=multiplying) as wg:
        for j in loop(runs.max_tiles):
            low, high = runs.share(p, first + j, depth)
            acc = [zeros(f32, mm.C) for _ in range(sums)]
            for k in loop(low, high):
                slot = ring.wait()
                for i, one in enumerate(acc):
                    mma(mm, one, slot.a.tile((64, bk), (sums * wg + i, 0)), slot.b)
                wgmma.wait(pending=sums)  # the wgmma of k - 1 have read their stage ...
                with when(k > low):
                    ring.release()  # ... so release that stage
            wgmma.wait(pending=0)
            with when(low < high):  # the run may not reach this tile
                ring.release()
            end = minimum(depth_of_tags, high * bk)
            out = part[p, j].T if cfg.swap_ab else part[p, j]
            for i, one in enumerate(acc):
                assert_covers(one.tag.k, low * bk, end)  # empty if the run ends before this tile
                copy(one, out.tile((64, bn), (bm // 64 * rank + sums * wg + i, 0)))


def _places(cfg: Stream, blocks: Int) -> tuple[Int, Int | int]:
    """The index of this block's run, and its rank in its cluster."""
    if cfg.peers == 1:
        (p,) = block_id((blocks,))
        return p, 0
    assume(blocks < 1 << 16)  # limit of the grid's second dimension
    rank, p = block_id((cfg.peers, blocks))
    return p, rank


@kernel
def reduce_tiles(part: Tensor["P S R W", f32], C: Tensor["M N", bf16], *, cfg: Reduction, depth: Int) -> None:
    reduce_parts(part, C, cfg, depth)


_ROOM = 224 << 10
"""Bytes of shared memory for stages: all but the barriers'."""


def stream(bm: int, bn: int, chunks: int, run: int, peers: int = 1, *, swap_ab: bool = False) -> Stream:
    """A configuration with as many stages as fit into shared memory."""
    stages = _ROOM // (2 * 64 * (bm + bn))
    return Stream(bm, bn, stages=stages, chunks=chunks, run=run, peers=peers, swap_ab=swap_ab)


_SHIPPED = (
    *((128, 128, *share) for share in ((2, 1), (4, 1), (8, 1), (8, 1, 2), (2, 1, 2))),
    *((128, 192, *share) for share in ((3, 1), (3, 1, 2), (3, 1, 3), (21, 1, 3))),
    *((128, 256, *share) for share in ((1, 1, 2), (4, 1), (4, 1, 2), (16, 1, 2), (11, 3, 2), (8, 7, 2), (11, 7, 2))),
    *((64, 256, *share) for share in ((2, 1), (2, 1, 2), (4, 1, 2), (8, 1, 2))),
    *((64, 128, *share) for share in ((2, 1, 2), (1, 1, 2))),
)
_SWAPPED = ((256, 144, 3, 1, 2),)
CONFIGS: dict[str, Stream] = {
    **{"stream_" + "_".join(map(str, each)): stream(*each) for each in _SHIPPED},
    **{"stream_swapped_" + "_".join(map(str, each)): stream(*each, swap_ab=True) for each in _SWAPPED},
}


@program(configs=CONFIGS)
def gemm_streams(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16], *, cfg: Stream) -> None:
    """C = A @ B^T by way of f32 partial sums in a workspace."""
    part = workspace(f32, cfg.runs.parts(A.shape[0], B.shape[0]))
    partial_gemm(A, B, part, cfg=cfg)
    reduce_tiles(part, C, cfg=Reduction(cfg.runs), depth=A.shape[1])


def configuration(name: str) -> Stream | None:
    """The configuration of a name: a shipped one, or one encoded by `argus.kernels.config_names`; None for neither."""
    return CONFIGS.get(name) or config_of(name, (Stream,))
