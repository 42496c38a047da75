"""Stream-K GEMM on Hopper, for tiles that do not fill the GPU: blocks take equal ranges of K across tile borders.

Stream-K [Osama et al. 2023, section 4] in chunks: the K of each tile is `chunks` chunks, the chunks of all tiles form
one sequence, and each block takes the next `run` chunks of it. A block stores its partial sums of a tile to a
workspace, and a second launch adds them up. In the paper a chunk is one iteration and the number of blocks is given;
here the configuration fixes `run` and `chunks`, and the number of blocks follows from the number of tiles, so that a
block's part of a tile is linear in the block index.
"""

from __future__ import annotations

from attrs import frozen

from argus.kernels.config_names import config_of
from argus.kernels.schedules.contraction import part as half
from argus.kernels.schedules.contraction import slot_for
from argus.language import (
    Int,
    Ring,
    Tensor,
    assert_covers,
    assert_written_once,
    assume,
    bf16,
    block_id,
    ceil_div,
    cluster,
    copy,
    eq,
    f32,
    kernel,
    load,
    loop,
    maximum,
    minimum,
    mma,
    program,
    role,
    sm_90a,
    spread,
    tag,
    tma,
    warpgroup,
    warpgroups,
    wgmma,
    when,
    workspace,
    zeros,
)


@frozen
class Stream:
    """bm x bn tiles (bm 64 or 128, bn a multiple of 64), bk of K per stage.

    The K of each tile is `chunks` chunks; each block takes `run` consecutive ones, the work of run / chunks tiles. With
    run = 1 this is split-K in `chunks` parts, and no run covers two tiles. peers: CTAs of a cluster, along rows.
    """

    bm: int = 128
    bn: int = 128
    bk: int = 64
    stages: int = 7
    chunks: int = 8
    run: int = 1
    peers: int = 1
    target = sm_90a

    @property
    def cluster(self) -> tuple[int, ...]:
        return (self.peers, 1) if self.peers > 1 else (1,)

    @property
    def rows(self) -> int:
        """Rows of a tile, of all CTAs of the cluster."""
        return self.bm * self.peers

    @property
    def threads(self) -> int:
        return 128 + 2 * self.bm

    @property
    def max_tiles(self) -> int:
        """Most tiles that a run can cover."""
        return (self.run + self.chunks - 2) // self.chunks + 1

    def blocks(self, m: Int, n: Int) -> Int:
        """Number of blocks, or of clusters, for an m x n matrix C."""
        return ceil_div(ceil_div(m, self.rows) * ceil_div(n, self.bn) * self.chunks, self.run)


@frozen
class Reduction:
    """The second launch: the part of a tile that a block reduces, four contiguous elements per thread."""

    tile: Stream
    target = sm_90a
    threads = 256

    @property
    def columns(self) -> int:
        return 128 if self.tile.bn % 128 == 0 else 64

    @property
    def rows(self) -> int:
        return 4 * self.threads // self.columns


@kernel
def partial_gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], part: Tensor["P S R W", f32], *, cfg: Stream) -> None:
    """part[p, j] = the partial sums of block p in the j-th tile of its run."""
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    partial_sums(A, B, part, cfg, (A.shape[0], B.shape[0], A.shape[1]))


def partial_sums(A: Tensor, B: Tensor, part: Tensor, cfg: Stream, extents: tuple[Int, Int, Int]) -> None:
    """The body of `partial_gemm`. extents: M, N and K of the tags m, n and k; A and B are 0 beyond them."""
    M, N, depth_of_tags = extents
    K = A.shape[1]
    bm, bn, bk, chunks, run, peers = cfg.bm, cfg.bn, cfg.bk, cfg.chunks, cfg.run, cfg.peers
    rows, columns = ceil_div(M, cfg.rows), ceil_div(N, bn)
    assume(K >= 1, K % 8 == 0)
    assume(eq(part.shape[0], cfg.blocks(M, N)), eq(part.shape[1], cfg.max_tiles))
    assume(eq(part.shape[2], cfg.rows), eq(part.shape[3], bn))
    mm = wgmma(A.dtype, n=bn)
    ring = Ring(cfg.stages, a=slot_for(A, bm, bk), b=slot_for(B, bn, bk))
    p, rank = _places(cfg, cfg.blocks(M, N))
    depth = ceil_div(K, bk * chunks)  # iterations per chunk
    assume((rows * columns * chunks + run) * depth < 1 << 24)  # bounds the use count of the ring over all tiles
    first = p * run // chunks

    def share(tile: Int) -> tuple[Int, Int]:
        """This block's iterations of a tile's K."""
        low, high = p * run - tile * chunks, (p + 1) * run - tile * chunks
        return maximum(low * depth, 0), minimum(high * depth, chunks * depth)

    with role("load", warpgroup(0).elected, registers=40):
        for j in loop(cfg.max_tiles):
            low, high = share(first + j)
            m, n = (first + j) // columns, (first + j) % columns
            for k in loop(low, high):
                with ring.fill() as slot:
                    copy(A.tile((bm, bk), (peers * m + rank, k)), slot.a, via=tma, edge=0)
                    if peers == 1:
                        copy(B.tile((bn, bk), (n, k)), slot.b, via=tma, edge=0)
                    else:  # each CTA multicasts a part to all
                        fetched, held = (half(each, cluster.rank, peers) for each in (B.tile((bn, bk), (n, k)), slot.b))
                        copy(fetched, held, via=tma.multicast(tuple(range(peers))), edge=0)
        ring.finish()

    with role("math", warpgroups(*range(1, bm // 64 + 1)), registers=232) as wg:
        for j in loop(cfg.max_tiles):
            low, high = share(first + j)
            acc = zeros(f32, mm.C)
            for k in loop(low, high):
                slot = ring.wait()
                mma(mm, acc, slot.a.tile((64, bk), (wg, 0)), slot.b)
                wgmma.wait(pending=1)  # the wgmma of k - 1 has read its stage ...
                with when(k > low):
                    ring.release()  # ... so release that stage
            wgmma.wait(pending=0)
            with when(low < high):  # the run may not reach this tile
                ring.release()
            assert_covers(
                acc.tag.k, low * bk, minimum(depth_of_tags, high * bk)
            )  # empty if the run ends before this tile
            copy(acc, part[p, j].tile((64, bn), (bm // 64 * rank + wg, 0)))


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
    """C = the sum of all blocks' partial sums of each tile, which together cover every k below `depth` once."""
    sum_of_parts(part, C, cfg, depth)


def sum_of_parts(part: Tensor, C: Tensor, cfg: Reduction, depth: Int) -> None:
    """The body of `reduce_tiles`."""
    M, N = C.shape
    stream, tile = cfg.tile, (cfg.rows, cfg.columns)
    chunks, run = stream.chunks, stream.run
    rows, columns = ceil_div(M, stream.rows), ceil_div(N, stream.bn)
    by = spread(tile, threads=cfg.threads, vector=4)
    high, wide = stream.rows // cfg.rows, stream.bn // cfg.columns
    t, r, c = block_id((rows * columns, high, wide))
    assume(N % 4 == 0, eq(part.shape[0], stream.blocks(M, N)), eq(part.shape[1], stream.max_tiles))
    assume(eq(part.shape[2], stream.rows), eq(part.shape[3], stream.bn))
    first, last = t * chunks // run, (t * chunks + chunks - 1) // run
    total = zeros(f32, by)
    for p in loop(first, last + 1):
        total += load(part[p, t - p * run // chunks].tile(tile, (r, c)), by)
    assert_covers(total.tag.k, 0, depth)
    m, n = t // columns, t % columns
    copy(total.to(C.dtype), C.tile(tile, (m * high + r, n * wide + c)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))


_ROOM = 224 << 10
"""Bytes of shared memory for stages: all but the barriers'."""


def stream(bm: int, bn: int, chunks: int, run: int, peers: int = 1) -> Stream:
    """A configuration with as many stages as fit into shared memory."""
    return Stream(bm, bn, stages=_ROOM // (2 * 64 * (bm + bn)), chunks=chunks, run=run, peers=peers)


_SHIPPED = (
    *((128, 128, *share) for share in ((2, 1), (4, 1), (8, 1), (8, 1, 2), (2, 1, 2))),
    *((128, 192, *share) for share in ((3, 1), (3, 1, 2), (3, 1, 3), (21, 1, 3))),
    *((128, 256, *share) for share in ((1, 1, 2), (4, 1), (4, 1, 2), (16, 1, 2), (11, 3, 2), (8, 7, 2), (11, 7, 2))),
    *((64, 256, *share) for share in ((2, 1), (2, 1, 2), (4, 1, 2), (8, 1, 2))),
    *((64, 128, *share) for share in ((2, 1, 2), (1, 1, 2))),
)
CONFIGS = {"stream_" + "_".join(map(str, each)): stream(*each) for each in _SHIPPED}


@program(configs=CONFIGS)
def gemm_streams(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16], *, cfg: Stream) -> None:
    """C = A @ B^T by way of f32 partial sums in a workspace."""
    (M, K), N = A.shape, B.shape[0]
    part = workspace(f32, (cfg.blocks(M, N), cfg.max_tiles, cfg.rows, cfg.bn))
    partial_gemm(A, B, part, cfg=cfg)
    reduce_tiles(part, C, cfg=Reduction(cfg), depth=K)


def configuration(name: str) -> Stream | None:
    """The configuration of a name: a shipped one, or one encoded by `argus.kernels.config_names`; None for neither."""
    return CONFIGS.get(name) or config_of(name, (Stream,))
