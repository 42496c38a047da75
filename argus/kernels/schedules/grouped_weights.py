"""The Hopper schedule of the gradients of experts' matrices: products that are summed over the rows of each expert.

wgmma multiplies blocks of 64 rows, and in an expert's last block TMA would also read rows of the expert after, whatever
they hold. So a launch ahead of the products copies the last rows of each expert, 1 to 64 of them, into blocks of their
own that end in zeros; all blocks before are read in place.
"""

from __future__ import annotations

from attrs import frozen

from argus.kernels.schedules.attention_packed import ends_of
from argus.kernels.schedules.contraction import slot_for
from argus.kernels.schedules.epilogues import identity
from argus.kernels.schedules.grouped_weights_claims import BLOCK, CHUNK, assume_rows, claim_last_rows
from argus.kernels.schedules.hopper import epilogue_parts, store_boxes, store_tile, wait_for_stores
from argus.language import (
    Bool,
    Int,
    IntLike,
    Order,
    Ring,
    Tensor,
    assume,
    block_id,
    by_rows,
    ceil_div,
    copy,
    f32,
    load,
    loop,
    maximum,
    minimum,
    mma,
    otherwise,
    persistent,
    registers,
    role,
    sm_90a,
    spread,
    super_tiled,
    tma,
    warpgroup,
    warpgroups,
    wgmma,
    when,
    where,
)

_HALF = 64
"""Rows of the result of a warpgroup."""


@frozen
class Copying:
    """The first launch: each thread block copies the last rows of an expert, so many columns of both tensors."""

    columns: int = 256
    target = sm_90a
    threads = 256


@frozen
class GroupedWeights:
    """H200: bm x bn tiles of the result; one producer warpgroup and two consumer warpgroups, of 64 rows each.

    stages: blocks of rows in shared memory, beside one for the last rows of an expert. group: rows of a super-tile, in
    tiles; 0: row-major tiles. turns: boxes of shared memory through which a warpgroup stores, 64 columns at a time.
    """

    bn: int = 256
    stages: int = 3
    group: int = 8
    turns: int = 2
    bm = 2 * _HALF
    target = sm_90a
    threads = 384

    def order(self, number: Int, counts: tuple[Int, ...]) -> tuple[IntLike, ...]:
        """All tiles of an expert, one expert after another."""
        rows, columns, _ = counts
        of_expert: Order = super_tiled(self.group) if self.group else by_rows
        return *of_expert(number % (rows * columns), (rows, columns)), number // (rows * columns)


@frozen
class ExpertRows:
    """The rows of two tensors, sorted by expert: expert e has the rows starts[e] to starts[e + 1] - 1.

    X, G: (rows, K), (rows, N). starts: from 0 to the number of rows. Experts may have no rows.
    """

    X: Tensor
    G: Tensor
    starts: Tensor
    experts: Int

    def __attrs_post_init__(self) -> None:
        assume_rows(self.X, self.G, self.starts, self.experts)

    def has_rows(self, e: Int) -> Bool:
        """Whether an expert has any; the gradient of others is 0, for which nothing is read or multiplied."""
        first, end = ends_of(self.starts, e)
        return first < end

    def before_last(self, e: Int) -> Int:
        """The number of whole blocks before an expert's last rows."""
        first, end = ends_of(self.starts, e)
        return maximum(0, end - first - 1) // BLOCK

    def copy_last(self, of_x: Tensor, of_g: Tensor, cfg: Copying) -> None:
        """Copy the last rows of each expert, 1 to 64 of them, or none of one without rows; zeros follow them, and that
        is claimed: in a sum of real numbers one zero would do, but 0 times a neighbour's NaN is NaN.

        of_x, of_g: (experts, 64, K), (experts, 64, N).
        """
        (high, wide), tile = (each.shape[1] for each in (self.X, self.G)), (BLOCK, cfg.columns)
        j, e = block_id((ceil_div(maximum(high, wide), cfg.columns), self.experts))
        first, end = ends_of(self.starts, e)
        start = first + BLOCK * self.before_last(e)
        for given, made in ((self.X, of_x), (self.G, of_g)):
            held = load(given.rows(start).tile(tile, (0, j)), spread(tile, threads=cfg.threads, vector=CHUNK), edge=0)
            own = where(held.index[0] < end - start, held, 0.0)  # not what rows of another expert hold
            copy(own, made[e].tile(tile, (0, j)), edge=0)
            claim_last_rows(given, self.starts, made)

    def multiply(self, of_x: Tensor, of_g: Tensor, D: Tensor, cfg: GroupedWeights) -> None:
        """D[e] = X^T G over the rows of expert e, of which the last are in of_x and of_g."""
        kind, bm, bn = self.X.dtype, cfg.bm, cfg.bn
        counts = ceil_div(D.shape[1], bm), ceil_div(D.shape[2], bn), self.experts
        most = self.X.shape[0] // BLOCK
        assume(counts[0] * counts[1] * counts[2] < 1 << 24)  # coordinates of tiles then fit 32 bits
        if cfg.stages & (cfg.stages - 1):
            assume(counts[0] * counts[1] * counts[2] * (most + 1) < 1 << 32)  # and uses of the ring's stages
        mm = wgmma(kind, n=bn)
        ring, last = (
            Ring(stages, a=slot_for(self.X.mT, bm, BLOCK), b=slot_for(self.G.mT, bn, BLOCK))
            for stages in (cfg.stages, 1)
        )
        boxes = store_boxes(bn, whole=False, dtype=kind, turns=cfg.turns)
        tiles = persistent(counts, order=cfg.order)

        with role("load", warpgroup(0).elected, registers=40):
            for i, j, e in tiles:
                with when(self.has_rows(e)):
                    with last.fill() as slot:
                        copy(of_x[e].mT.tile((bm, BLOCK), (i, 0)), slot.a, via=tma, edge=0)
                        copy(of_g[e].mT.tile((bn, BLOCK), (j, 0)), slot.b, via=tma, edge=0)
                    first, _ = ends_of(self.starts, e)
                    x, g = self.X.rows(first).mT, self.G.rows(first).mT
                    for k in loop(minimum(self.before_last(e), most)):  # the lesser, but bounded by a size
                        with ring.fill() as slot:
                            copy(x.tile((bm, BLOCK), (i, k)), slot.a, via=tma, edge=0)
                            copy(g.tile((bn, BLOCK), (j, k)), slot.b, via=tma, edge=0)
            ring.finish()
            last.finish()

        with role("math", warpgroups(1, 2), registers=232) as wg:
            acc = registers(f32, mm.C)
            for i, j, e in tiles:
                with when(self.has_rows(e)):
                    slot = last.wait()
                    mma(mm, acc, slot.a.tile((_HALF, BLOCK), (wg, 0)), slot.b, init=True)
                    wgmma.wait(pending=0)
                    last.release()
                    blocks = minimum(self.before_last(e), most)
                    for k in loop(blocks):
                        slot = ring.wait()
                        mma(mm, acc, slot.a.tile((_HALF, BLOCK), (wg, 0)), slot.b)
                        wgmma.wait(pending=1)  # the one before has read its stage
                        with when(k > 0):
                            ring.release()
                    wgmma.wait(pending=0)
                    with when(blocks > 0):
                        ring.release()
                with otherwise():
                    acc[:] = 0.0
                store_tile(epilogue_parts(identity, acc, (2 * i + wg, j), boxes), D[e], boxes, wg)
            wait_for_stores(boxes)
