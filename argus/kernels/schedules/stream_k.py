"""Stream-K: blocks take equal ranges of K across tile borders, and a second launch adds up their partial sums.

Stream-K [Osama et al. 2023, section 4] in chunks: the K of each tile is `chunks` chunks, the chunks of all tiles form
one sequence, and each block takes the next `run` chunks of it. A block stores its partial sums of a tile to a
workspace, and a second launch adds them up, in the order of K. In the paper a chunk is one iteration and the number of
blocks is given; here the configuration fixes `run` and `chunks`, and the number of blocks follows from the number of
tiles, so that a block's part of a tile is linear in the block index.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import mul

from attrs import frozen

from argus.kernels.schedules.contraction import matrix_of
from argus.kernels.schedules.epilogues import Epilogue, identity
from argus.language import (
    Int,
    Tensor,
    assert_covers,
    assert_written_once,
    assume,
    block_id,
    ceil_div,
    copy,
    eq,
    gfx942,
    global_store,
    load,
    loop,
    maximum,
    minimum,
    sm_90a,
    spread,
    vmem,
    zeros,
)

_AXES = 4
"""Of a workspace, without a batch's."""


@frozen
class Runs:
    """How blocks share the K of tiles of rows x columns: `chunks` chunks a tile, `run` consecutive chunks a block."""

    rows: int
    columns: int
    chunks: int
    run: int

    @property
    def max_tiles(self) -> int:
        """Most tiles that a run can cover."""
        return (self.run + self.chunks - 2) // self.chunks + 1

    def tiles(self, m: Int, n: Int) -> tuple[Int, Int]:
        return ceil_div(m, self.rows), ceil_div(n, self.columns)

    def blocks(self, m: Int, n: Int) -> Int:
        """Number of blocks, or of clusters, for an m x n matrix C."""
        rows, columns = self.tiles(m, n)
        return ceil_div(rows * columns * self.chunks, self.run)

    def parts(self, m: Int, n: Int) -> tuple[Int, int, int, int]:
        """The shape of the workspace for an m x n matrix C: a tile for each block and each tile of its run."""
        return self.blocks(m, n), self.max_tiles, self.rows, self.columns

    def first(self, p: Int) -> Int:
        """The first tile of block p."""
        return p * self.run // self.chunks

    def share(self, p: Int, tile: Int, depth: Int) -> tuple[Int, Int]:
        """The iterations of a tile's K that block p takes, `depth` a chunk: none if the first is not below the last."""
        low, high = p * self.run - tile * self.chunks, (p + 1) * self.run - tile * self.chunks
        return maximum(low * depth, 0), minimum(high * depth, self.chunks * depth)

    def assume_workspace(self, part: Tensor, m: Int, n: Int) -> None:
        """Assume that `part` has that shape, or is a batch of such, in which addresses fit 64 bits."""
        assume(*(eq(extent, wanted) for extent, wanted in zip(part.shape[-_AXES:], self.parts(m, n), strict=True)))
        if len(part.shape) > _AXES:
            assume(reduce(mul, part.shape) < 1 << 60)


_AT_ONCE = 16
"""The most partial sums whose loads are in flight together."""


@frozen
class Reduction:
    """The second launch: the part of a tile that a block reduces, four contiguous elements per thread.

    waits: for MI300X, where a load returns before its data are in registers. vectors: rows of C are whole vectors of
    four elements.
    """

    runs: Runs
    waits: bool = False
    vectors: bool = True

    @property
    def threads(self) -> int:
        """Few on an H200: with one tile, that leaves blocks for half of the processors."""
        return 256 if self.waits else 64

    @property
    def target(self):  # noqa: ANN201 reason: inferred, as of constants
        return gfx942 if self.waits else sm_90a

    @property
    def columns(self) -> int:
        return next(each for each in (128, 64, 32) if self.runs.columns % each == 0)

    @property
    def rows(self) -> int:
        return 4 * self.threads // self.columns

    @property
    def at_once(self) -> int:
        """Partial sums whose loads are in flight together; they divide all, as others would be loaded one by one."""
        if self.runs.run > 1:
            return _AT_ONCE
        return max(each for each in range(1, _AT_ONCE + 1) if self.runs.chunks % each == 0)


def reduce_parts(part: Tensor, C: Tensor, cfg: Reduction, depth: Int, epilogue: Epilogue = identity) -> None:
    """C = the sum of all blocks' partial sums of each tile, which together cover every k below `depth` once.

    If C is a batch, C[z] is the sum of those of product z. epilogue: of the sums, for matrices alone.
    """
    (*batch, M, N), runs, tile = C.shape, cfg.runs, (cfg.rows, cfg.columns)
    rows, columns = runs.tiles(M, N)
    by = spread(tile, threads=cfg.threads, vector=4)
    high, wide = runs.rows // cfg.rows, runs.columns // cfg.columns
    t, r, c, *z = _blocks(rows * columns, (high, wide), batch)
    if cfg.vectors:
        assume(N % 4 == 0)
    via = None if cfg.vectors else tuple(each for each in global_store if each.vector_bits == C.dtype.bits)
    runs.assume_workspace(part, M, N)
    first, last = t * runs.chunks // runs.run, (t * runs.chunks + runs.chunks - 1) // runs.run
    total = zeros(part.dtype, by)
    for p in loop(first, last + 1, unroll=None if cfg.waits or cfg.at_once == 1 else cfg.at_once):
        one = load(part[(*z, p, t - runs.first(p))].tile(tile, (r, c)), by)
        if cfg.waits:
            vmem.wait(0)
        total += one
    assert_covers(total.tag.k, 0, depth)
    at = t // columns * high + r, t % columns * wide + c
    made = epilogue(total, at)
    if cfg.waits and epilogue is not identity:
        vmem.wait(0)  # of the epilogue's operands
    copy(made().to(C.dtype), matrix_of(C, z).tile(tile, at), via=via, edge=0)
    if batch:
        assert_written_once(C, lambda z, m, n: dict(z=z, m=m, n=n))
    else:
        assert_written_once(C, lambda m, n: dict(m=m, n=n))


def _blocks(tiles: Int, parts: tuple[int, int], batch: Sequence[Int]) -> tuple[Int, ...]:
    """The tile of this block, its row and column among the parts of a tile, and the product of a batch."""
    if not batch:
        return block_id((tiles, *parts))
    high, wide = parts  # a grid has three axes
    t, i, *z = block_id((tiles, high * wide, *batch))
    return t, i // wide, i % wide, *z
