"""The Hopper schedule of grouped products: the rows of A are sorted by expert, and each expert has its own B.

Tiles are numbered by two tensors on the device, made from the experts' first rows ahead of the launch: each tile has at
most `bm` rows, all of one expert, so that blocks get equal work for any numbers of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from attrs import frozen

from argus.kernels.schedules.attention_packed import ends_of, of_row
from argus.kernels.schedules.contraction import slot_for
from argus.kernels.schedules.epilogues import Epilogue, identity, scaled_by_vectors
from argus.kernels.schedules.hopper import Parts, epilogue_parts, release_last, release_previous, store_boxes
from argus.language import (
    Bool,
    Fragment,
    Int,
    IntLike,
    Order,
    Ring,
    Tensor,
    Value,
    assert_equals,
    assume,
    by_rows,
    ceil_div,
    copy,
    elements,
    eq,
    f32,
    load,
    loop,
    minimum,
    mma,
    persistent,
    promise,
    registers,
    role,
    scalar,
    sm_90a,
    spread,
    stmatrix,
    super_tiled,
    sync,
    tma,
    total,
    warpgroup,
    warpgroups,
    wgmma,
    when,
)

_ROWS, _CHUNK = 64, 8
"""Rows of a warpgroup; elements of C in 16 bytes."""
BLOCK = 128
"""Elements of k, and columns of C, that share a scale, where operands have scales of blocks."""


@frozen
class Grouped:
    """H200: bm x bn tiles, bk of K per stage; one producer warpgroup and two consumer warpgroups, of 64 rows each.

    group: rows of a super-tile, in tiles; 0: row-major tiles. turns: boxes of shared memory through which a warpgroup
    stores, 64 columns at a time.
    """

    bn: int = 256
    bk: int = 64
    stages: int = 4
    group: int = 8
    turns: int = 2
    bm = 128
    flight = True
    target = sm_90a
    threads = 384

    @property
    def order(self) -> Order:
        """The order of tiles."""
        return super_tiled(self.group) if self.group else by_rows


@frozen
class GroupedContraction:
    """C[r, n] = sum over k of A[r, k] * B[e, n, k], for the expert e that has row r: starts[e] <= r < starts[e + 1].

    A: (rows, K). B: (experts, N, K), or a transposed view of (experts, K, N). C: (rows, N). starts: from 0 to the
    number of rows. Experts may have no rows. Tile t has rows tile_starts[t] to tile_starts[t + 1] - 1, at most bm, and
    all are of expert tile_experts[t]; there may be tiles without rows.

    scales: (K / 128, rows) of A and (experts, N / 128, K / 128) of B, rounded up: of 128 elements of k, and of B of 128
    columns too; or (rows) of A and (experts, N) of B: of each row, and of each column.
    """

    A: Tensor
    B: Tensor
    C: Tensor
    starts: Tensor
    tile_starts: Tensor
    tile_experts: Tensor
    bm: int
    scales: tuple[Tensor, Tensor] | None = None

    def __attrs_post_init__(self) -> None:
        (rows, depth), (experts, columns, _) = self.A.shape, self.B.shape
        promise(self.starts, ascending=True, first=0, last=rows)
        promise(self.tile_starts, ascending=True, first=0, last=rows, most=self.bm)
        promise(self.tile_experts, self._has_tile)
        assume(eq(self.starts.shape[0], experts + 1), eq(self.tile_starts.shape[0], self.tiles + 1))
        assume(rows < 1 << 28, experts * columns * depth < 1 << 40)
        assume(depth >= 1, depth % (128 // self.A.dtype.bits) == 0, columns % _CHUNK == 0)  # rows of 16 bytes, for TMA
        if self.scales is not None and not self.scales_rows:
            of_a, of_b = self.scales
            blocks = ceil_div(depth, BLOCK)
            assume(eq(of_a.shape[0], blocks), eq(of_b.shape[2], blocks), eq(of_b.shape[1], ceil_div(columns, BLOCK)))
            assume(of_b.shape[0] * of_b.shape[1] * of_b.shape[2] < 1 << 40)

    @property
    def scales_rows(self) -> bool:
        """Whether there are scales, of rows and columns."""
        return self.scales is not None and len(self.scales[0].shape) == 1

    @property
    def tiles(self) -> Int:
        """The number of tiles along the rows."""
        return self.tile_experts.shape[0]

    def _has_tile(self, e: Int, t: Int) -> Bool:
        """Whether e is an expert, and all rows of tile t are its own."""
        (start, end), (first, last) = ends_of(self.starts, e), ends_of(self.tile_starts, t)
        return (e >= 0) & (e < self.B.shape[0]) & (start <= first) & (last <= end)

    def where_rows(self, t: Int) -> AbstractContextManager[None]:
        """The body for tiles that have rows."""
        first, end = ends_of(self.tile_starts, t)
        return when(first < end)

    def operands(self, t: Int) -> tuple[Tensor, Tensor]:
        """A from the first row of a tile on, and its expert's B."""
        return self.A.rows(scalar(self.tile_starts[t])), self.of_expert(self.B, t)

    def of_expert(self, matrices: Tensor, t: Int) -> Tensor:
        """Of one matrix for each expert, that of a tile's."""
        return matrices[scalar(self.tile_experts[t])]

    def result(self, t: Int) -> Tensor:
        """The rows of C that a tile has."""
        return self.C.rows(*ends_of(self.tile_starts, t))

    def epilogue(self, t: Int) -> Epilogue:
        """What is done with the sums of a tile before they are stored, but for scales of blocks."""
        if self.scales is None or not self.scales_rows:
            return identity
        of_a, of_b = self.scales
        return scaled_by_vectors(of_a.rows(scalar(self.tile_starts[t])), of_b[scalar(self.tile_experts[t])])

    def finish(self) -> None:
        """Claim the value of C: each row is multiplied by its own expert's matrix."""
        self.claim(self.element)

    def claim(self, element: Callable[[Int, Int, Int], Value]) -> None:
        """Claim the value of C: at (r, n), that of this function at (e, r, n), where expert e has row r."""
        experts = self.B.shape[0]
        assert_equals(self.C, lambda r, n: of_row(self.starts, experts, r, lambda e, _row: element(e, r, n)))

    def element(self, e: Int, r: Int, n: Int) -> Value:
        """In a formula, an element of the product of A and an expert's matrix."""
        depth = self.A.shape[1]
        if self.scales is None:
            return self._sum(e, r, n, (0, depth))
        of_a, of_b = map(elements, self.scales)
        if self.scales_rows:
            return self._sum(e, r, n, (0, depth)) * (of_a(r) * of_b(e, n))

        def block(k: Int) -> Value:
            inside = self._sum(e, r, n, (BLOCK * k, minimum(depth, BLOCK * k + BLOCK)))
            return inside * (of_a(k, r) * of_b(e, n // BLOCK, k))

        return total(block, over=ceil_div(depth, BLOCK))

    def _sum(self, e: Int, r: Int, n: Int, over: tuple[IntLike, Int]) -> Value:
        """The products of a row and an expert's column, over a range of k."""
        a, b = elements(self.A), elements(self.B)
        return total(lambda k: a(r, k) * b(e, n, k), over=over)


def hopper_grouped(problem: GroupedContraction, cfg: Grouped) -> None:
    """As `hopper_cooperative`, over tiles of single experts; rows that a tile loads beyond its own are not stored."""
    A, B = problem.A, problem.B
    bm, bn, bk = cfg.bm, cfg.bn, cfg.bk
    counts = problem.tiles, ceil_div(problem.C.shape[1], bn)
    assume(counts[0] * counts[1] < 1 << 24)  # coordinates of tiles then fit 32 bits
    depth = ceil_div(A.shape[1], bk)
    if cfg.stages & (cfg.stages - 1):
        assume(counts[0] * counts[1] * (depth + 1) < 1 << 32)  # uses of the ring's stages then fit 32 bits
    mm = wgmma(A.dtype, n=bn)
    ring = Ring(cfg.stages, a=slot_for(A, bm, bk), b=slot_for(B, bn, bk))
    boxes = store_boxes(bn, whole=False, dtype=problem.C.dtype, turns=cfg.turns)
    tiles = persistent(counts, order=cfg.order)

    with role("load", warpgroup(0).elected, registers=40):
        for t, n in tiles:
            with problem.where_rows(t):
                a, b = problem.operands(t)
                for k in loop(depth):
                    with ring.fill() as slot:
                        copy(a.tile((bm, bk), (0, k)), slot.a, via=tma, edge=0)
                        copy(b.tile((bn, bk), (n, k)), slot.b, via=tma, edge=0)
        ring.finish()

    with role("math", warpgroups(1, 2), registers=232) as wg:
        acc = registers(f32, mm.C)
        for t, n in tiles:
            with problem.where_rows(t):
                for k in loop(depth):
                    slot = ring.wait()
                    mma(mm, acc, slot.a.tile((_ROWS, bk), (wg, 0)), slot.b, init=eq(k, 0))
                    release_previous(cfg, ring, k)
                epilogue = problem.epilogue(t)
                release_last(cfg, ring)
                store_until_end(acc, problem.result(t), (wg, n), boxes[wg], epilogue)
    problem.finish()


def store_until_end(
    acc: Fragment, target: Tensor, at: tuple[Int, Int], boxes: Tensor, epilogue: Epilogue = identity
) -> None:
    """Store 64 rows through a warpgroup's boxes, but none beyond the end of the target, which TMA would write.

    at: coordinate of the accumulator among tiles of its shape. epilogue: its operands are loaded one part ahead.
    """
    store_parts_until_end(epilogue_parts(epilogue, acc, at, boxes), target, boxes)


def store_parts_until_end(parts: Parts, target: Tensor, boxes: Tensor) -> None:
    """As `store_until_end`, of parts as wide as the boxes."""
    turns, rows, width = (int(extent) for extent in boxes.shape)
    by = spread((rows, width), threads=128, vector=_CHUNK)
    for j, (deferred, place) in enumerate(parts.each):
        box = boxes[j % turns]
        if turns == 1 or (j == 0 and parts.count % turns):
            sync()  # what was stored from the box last has been read
        copy(deferred().to(target.dtype), box, via=stmatrix.x4)
        sync()  # the box is written; and with several, the one before has been read
        copy(load(box, by), target.tile((rows, width), place), edge=0)
