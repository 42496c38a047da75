"""C = A @ B^T on Hopper where tiles do not fill the GPU: blocks take equal runs of K across the borders of tiles.

Stream-K [Osama et al. 2023, section 4], its work cut into chunks: the K of each tile is `chunks` of them, the chunks of
all tiles, one tile after the other, are one line, and each block takes the next `run` of that line. What a block has of
a tile goes to a workspace; a second launch adds up. In the paper a chunk is one slot and the number of blocks is given;
here a chunk is as many slots as make `chunks` of them a tile's K, and the number of blocks follows from the number of
tiles: `run` and `chunks` are numbers of the configuration, so that who has what of a tile is linear in the block.
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
    """bm x bn tiles (bm 64 or 128, bn a multiple of 64), bk of K a slot.

    The K of each tile is `chunks` parts; each block takes `run` of them in sequence, the work of run / chunks tiles.
    With a run of 1, K is split in `chunks`, and no run touches two tiles.
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
        """Of a tile: of all blocks that share its columns of B."""
        return self.bm * self.peers

    @property
    def threads(self) -> int:
        return 128 + 2 * self.bm

    @property
    def touched(self) -> int:
        """Tiles that a run may touch."""
        return (self.run + self.chunks - 2) // self.chunks + 1

    def blocks(self, m: Int, n: Int) -> Int:
        """For C of m x n."""
        return ceil_div(ceil_div(m, self.rows) * ceil_div(n, self.bn) * self.chunks, self.run)


@frozen
class Adding:
    """Which part of a tile a block adds up: four numbers side by side a thread."""

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
def runs(A: Tensor["M K", bf16], B: Tensor["N K", bf16], part: Tensor["P S R W", f32], *, cfg: Stream) -> None:
    """part[p, j]: what block p sums of the j-th tile that its run touches."""
    (M, K), N = A.shape, B.shape[0]
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    bm, bn, bk, chunks, run, peers = cfg.bm, cfg.bn, cfg.bk, cfg.chunks, cfg.run, cfg.peers
    rows, columns = ceil_div(M, cfg.rows), ceil_div(N, bn)
    assume(K >= 1, K % 8 == 0)
    assume(eq(part.shape[0], cfg.blocks(M, N)), eq(part.shape[1], cfg.touched))
    assume(eq(part.shape[2], cfg.rows), eq(part.shape[3], bn))
    mm = wgmma(bf16, n=bn)
    ring = Ring(cfg.stages, a=slot_for(A, bm, bk), b=slot_for(B, bn, bk))
    p, rank = _places(cfg, cfg.blocks(M, N))
    depth = ceil_div(K, bk * chunks)  # slots a chunk
    assume((rows * columns * chunks + run) * depth < 1 << 24)  # slots of all tiles, which are counted in one line
    first = p * run // chunks

    def share(tile: Int) -> tuple[Int, Int]:
        """The slots of a tile's K that are this block's."""
        low, high = p * run - tile * chunks, (p + 1) * run - tile * chunks
        return maximum(low * depth, 0), minimum(high * depth, chunks * depth)

    with role("load", warpgroup(0).elected, registers=40):
        for j in loop(cfg.touched):
            low, high = share(first + j)
            m, n = (first + j) // columns, (first + j) % columns
            for k in loop(low, high):
                with ring.fill() as slot:
                    copy(A.tile((bm, bk), (peers * m + rank, k)), slot.a, via=tma, edge=0)
                    if peers == 1:
                        copy(B.tile((bn, bk), (n, k)), slot.b, via=tma, edge=0)
                    else:  # each fetches a part for all
                        fetched, held = (half(each, cluster.rank, peers) for each in (B.tile((bn, bk), (n, k)), slot.b))
                        copy(fetched, held, via=tma.multicast(tuple(range(peers))), edge=0)
        ring.finish()

    with role("math", warpgroups(*range(1, bm // 64 + 1)), registers=232) as wg:
        for j in loop(cfg.touched):
            low, high = share(first + j)
            acc = zeros(f32, mm.C)
            for k in loop(low, high):
                slot = ring.wait()
                mma(mm, acc, slot.a.tile((64, bk), (wg, 0)), slot.b)
                wgmma.wait(pending=1)  # k - 1 has finished reading its slot ...
                with when(k > low):
                    ring.release()  # ... which goes back
            wgmma.wait(pending=0)
            with when(low < high):  # the run may not reach this tile
                ring.release()
            assert_covers(acc.tag.k, low * bk, minimum(K, high * bk))  # none, where the run ends before this tile
            copy(acc, part[p, j].tile((64, bn), (bm // 64 * rank + wg, 0)))


def _places(cfg: Stream, blocks: Int) -> tuple[Int, Int | int]:
    """The number of a block, or of a cluster, among those that take a run each, and its rank there."""
    if cfg.peers == 1:
        (p,) = block_id((blocks,))
        return p, 0
    assume(blocks < 1 << 16)  # along the second axis of a grid
    rank, p = block_id((cfg.peers, blocks))
    return p, rank


@kernel
def gathered(part: Tensor["P S R W", f32], C: Tensor["M N", bf16], *, cfg: Adding, depth: Int) -> None:
    """C = the sum of what blocks have of each tile, together every k below `depth` once."""
    M, N = C.shape
    stream, tile = cfg.tile, (cfg.rows, cfg.columns)
    chunks, run = stream.chunks, stream.run
    rows, columns = ceil_div(M, stream.rows), ceil_div(N, stream.bn)
    by = spread(tile, threads=cfg.threads, vector=4)
    high, wide = stream.rows // cfg.rows, stream.bn // cfg.columns
    t, r, c = block_id((rows * columns, high, wide))
    assume(N % 4 == 0, eq(part.shape[0], stream.blocks(M, N)), eq(part.shape[1], stream.touched))
    assume(eq(part.shape[2], stream.rows), eq(part.shape[3], stream.bn))
    first, last = t * chunks // run, (t * chunks + chunks - 1) // run
    total = zeros(f32, by)
    for p in loop(first, last + 1):
        total += load(part[p, t - p * run // chunks].tile(tile, (r, c)), by)
    assert_covers(total.tag.k, 0, depth)
    m, n = t // columns, t % columns
    copy(total.to(bf16), C.tile(tile, (m * high + r, n * wide + c)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))


_ROOM = 224 << 10
"""Bytes of shared memory for slots: all but what barriers take."""


def stream(bm: int, bn: int, chunks: int, run: int, peers: int = 1) -> Stream:
    """With as many slots as there is room for."""
    return Stream(bm, bn, stages=_ROOM // (2 * 64 * (bm + bn)), chunks=chunks, run=run, peers=peers)


_TRIED = (
    *((128, 128, *share) for share in ((2, 1), (4, 1), (8, 1), (8, 1, 2), (2, 1, 2))),
    *((128, 192, *share) for share in ((3, 1), (3, 1, 2), (3, 1, 3), (21, 1, 3))),
    *((128, 256, *share) for share in ((1, 1, 2), (4, 1), (4, 1, 2), (16, 1, 2), (11, 3, 2), (8, 7, 2), (11, 7, 2))),
    *((64, 256, *share) for share in ((2, 1), (2, 1, 2), (4, 1, 2), (8, 1, 2))),
    *((64, 128, *share) for share in ((2, 1, 2), (1, 1, 2))),
)
CONFIGS = {"stream_" + "_".join(map(str, each)): stream(*each) for each in _TRIED}


@program(configs=CONFIGS)
def gemm_streams(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16], *, cfg: Stream) -> None:
    """C = A @ B^T by way of f32 sums of what each block has of a tile."""
    (M, K), N = A.shape, B.shape[0]
    part = workspace(f32, (cfg.blocks(M, N), cfg.touched, cfg.rows, cfg.bn))
    runs(A, B, part, cfg=cfg)
    gathered(part, C, cfg=Adding(cfg), depth=K)


def configuration(name: str) -> Stream | None:
    """The configuration of a name: shipped, or spelt out as `argus.kernels.config_names` reads it; None for neither."""
    return CONFIGS.get(name) or config_of(name, (Stream,))
