"""Products of f32 matrices as products of bf16 parts on Hopper: an operand is the sum of its parts.

The first part of x is the nearest bf16, the second the nearest bf16 of what the first leaves, and the third what both
leave. Each has 8 of an f32's 24 significant bits, so that the third is a bf16, and the parts sum to x, unless one of
them overflows or underflows. Of nine products of parts, six count: the others are below the rounding of a product in
f32 [Henry et al. 2019, "Leveraging the bfloat16 artificial intelligence datatype for higher-precision computations"].

wgmma truncates where it adds to its accumulator. So the products of some of K are summed apart, the small ones first,
and added to f32 sums, which are rounded to nearest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from math import prod
from typing import Any

from attrs import frozen

from argus.kernels.schedules.contraction import Contraction, matrix_of, part, slot_for
from argus.kernels.schedules.epilogues import Epilogue, Tail, TileCoord
from argus.kernels.schedules.hopper import blocks_of, epilogue_parts
from argus.language import (
    Fragment,
    Int,
    Order,
    Ring,
    Tensor,
    Turns,
    assume,
    bf16,
    block_id,
    by_rows,
    ceil_div,
    cluster,
    copy,
    f32,
    global_store,
    loop,
    minimum,
    mma,
    persistent,
    registers,
    role,
    round_bf16,
    sm_90a,
    super_tiled,
    tma,
    warpgroup,
    warpgroups,
    wgmma,
)

PARTS = 3
"""Of an f32."""
_WIDTH = 32
"""Columns of sums that are computed with at once, beside those that wait for it."""
PAIRS: dict[int, tuple[tuple[int, int], ...]] = {
    6: ((2, 0), (0, 2), (1, 1), (1, 0), (0, 1), (0, 0)),
    3: ((1, 0), (0, 1), (0, 0)),
    1: ((0, 0),),
}
"""The products that count, by their number: the part of A and the part of B, in the order of addition."""


def parts_of(x: Fragment, count: int) -> list[Fragment]:
    """The first parts of x, which are numbers of 8 significant bits; the third is all that the others leave."""
    parts: list[Fragment] = []
    for number in range(count):
        parts.append(round_bf16(x) if number < PARTS - 1 else x)
        x = x - parts[-1]
    return parts


@frozen
class Parts:
    """H200: bm x bn tiles, bk of K per stage; one producer warpgroup and two that multiply.

    products: of parts, 6, 3 or 1. bm: 128, or 256. stages: each holds all parts of a tile of A and of one of B, whose
    products are summed apart. chunk: K of a chunk, a multiple of bk, for tiles that do not fill the GPU: a launch of
    its own adds the sums of the chunks; 0: one for all of K. group: rows of a super-tile; 0: row-major tiles. cluster:
    CTAs along rows of C, which share tiles of B, or along columns, which share tiles of A. wide: rows of the f32
    matrices are multiples of 16 bytes. ordered: the warpgroups take turns to begin a stage; not in a cluster. apart:
    False leaves the sums of all stages in the accumulator of wgmma, to measure what that loses. compensated: the sums
    of a stage begin with what the addition of the last ones lost to rounding [Kahan 1965]; with bm 256, registers do
    not suffice. padded: rows of parts are multiples of so many elements, 8 or more.
    """

    products: int = 6
    bm: int = 128
    bn: int = 128
    bk: int = 32
    stages: int = 4
    chunk: int = 0
    group: int = 8
    cluster: tuple[int, ...] = (1,)
    wide: bool = True
    ordered: bool = False
    apart: bool = True
    compensated: bool = False
    padded: int = 8
    target = sm_90a
    threads = 384

    @property
    def parts(self) -> int:
        """Parts of an operand."""
        return count_parts(self.products)

    @property
    def order(self) -> Order:
        return super_tiled(self.group) if self.group else by_rows


def sum_products_of_parts(
    p: Sequence[Tensor], q: Sequence[Tensor], C: Tensor, cfg: Parts, tail: Tail | None = None
) -> None:
    """C = the sum of the products that count of parts p of A, as (M, K), and q of B, as (N, K), or batches of these.

    With chunks, C has a leading axis: C[s] is the sum over the s-th chunk of K. The rows of the parts are multiples of
    16 bytes. tail: what becomes of the sums before they are stored, if there are no chunks.
    """
    bm, bn, bk, sums = cfg.bm, cfg.bn, cfg.bk, cfg.bm // 128
    problem = Contraction(p[0], q[0], C, 0)
    count = problem.count(bm, bn)
    problem.assume_aligned(stores=False)
    assume(count < 1 << (24 if bm * cfg.cluster[0] == 128 else 23))  # so that rows of tiles fit 32 bits
    mm = wgmma(bf16, n=bn)
    held = {f"a{i}": slot_for(each, bm, bk) for i, each in enumerate(p)}
    held |= {f"b{i}": slot_for(each, bn, bk) for i, each in enumerate(q)}
    ring = Ring(cfg.stages, **held)
    turns = Turns(2) if cfg.ordered else None
    tiles = _tiles(problem, cfg)
    depth = ceil_div(p[0].shape[-1], bk)
    problem.assume_ring_bounds(count, depth, cfg.stages)
    via = None if cfg.wide else tuple(each for each in global_store if each.vector_bits == C.dtype.bits)
    if cfg.wide:
        assume(C.shape[-1] % 4 == 0)

    with role("load", warpgroup(0).elected, registers=40):
        for m, n, *z in tiles:
            batch = z[1:] if cfg.chunk else z
            for k in _slices(cfg, depth, z):
                with ring.fill() as slot:
                    for i, each in enumerate(p):
                        box = matrix_of(each, batch).tile((bm, bk), (m, k))
                        _fetch(box, getattr(slot, f"a{i}"), cfg.cluster[1:])
                    for i, each in enumerate(q):
                        box = matrix_of(each, batch).tile((bn, bk), (n, k))
                        _fetch(box, getattr(slot, f"b{i}"), cfg.cluster[:1])
        ring.finish()

    with role("math", warpgroups(1, 2), registers=232) as wg:
        most = len(PAIRS[cfg.products]) * bk if cfg.apart else None
        lost = [registers(f32, mm.C, products=most) for _ in range(sums if cfg.compensated else 1)]
        accs = [registers(f32, mm.C, products=most) for _ in range(sums)]
        for m, n, *z in tiles:
            for acc in (*accs, *lost) if cfg.compensated else accs:
                acc[:] = 0.0
            for _ in _slices(cfg, depth, z):
                slot = ring.wait()
                for i, acc in enumerate(accs):
                    apart = lost[i % len(lost)]
                    with nullcontext() if turns is None or i > 0 else turns(wg):
                        for number, (of_a, of_b) in enumerate(PAIRS[cfg.products]):
                            a = getattr(slot, f"a{of_a}").tile((64, bk), (sums * wg + i, 0))
                            b = getattr(slot, f"b{of_b}")
                            if cfg.apart:
                                mma(mm, apart, a, b, init=number == 0 and not cfg.compensated)
                            else:
                                mma(mm, acc, a, b)
                    wgmma.wait(0)
                    if i == sums - 1:
                        ring.release()
                    if cfg.compensated:
                        sum_ = acc + apart
                        apart[:] = apart - (sum_ - acc)
                        acc[:] = sum_
                    elif cfg.apart:
                        acc[:] = acc + apart
            for i, acc in enumerate(accs):
                at = sums * (2 * m + wg) + i, n
                store_sums(acc, matrix_of(C, z), at, None if tail is None else tail(z), via)


def store_sums(acc: Fragment, target: Tensor, at: TileCoord, epilogue: Epilogue | None, via: Any) -> None:  # noqa: ANN401 reason: an instruction
    """Store a part of 64 rows of the sums, or what an epilogue makes of them."""
    if epilogue is None:
        copy(acc, target.tile((acc.shape[0], acc.shape[1]), at), via=via, edge=0)
        return
    for deferred, place in epilogue_parts(epilogue, acc, at, None, _WIDTH).each:
        part = deferred().to(target.dtype)
        copy(part, target.tile((part.shape[0], part.shape[1]), place), via=via, edge=0)


def _tiles(problem: Contraction, cfg: Parts) -> Iterable[tuple[Int, ...]]:
    """The tiles of this CTA: many, or one if K is divided."""
    counts = problem.tiles(cfg.bm, cfg.bn)
    if cfg.chunk:
        return [block_id(counts)]
    return persistent(counts, order=problem.order(cfg.order), blocks=blocks_of(cfg.cluster))


def _slices(cfg: Parts, depth: Int, z: Sequence[Int]) -> Iterable[Int]:
    """The stages of this tile: all, or those of its chunk of K."""
    if not cfg.chunk:
        return loop(depth)
    each = cfg.chunk // cfg.bk
    return loop(each * z[0], minimum(each * (z[0] + 1), depth))


def _fetch(box: Tensor, slot: Tensor, shared_by: tuple[int, ...]) -> None:
    """Load a tile of parts; of CTAs of a cluster that share it, each loads a part of it for all."""
    blocks = prod(shared_by)
    if blocks == 1:
        copy(box, slot, via=tma, edge=0)
    else:
        mine, held = (part(each, cluster.rank, blocks) for each in (box, slot))
        copy(mine, held, via=tma.multicast(tuple(range(blocks))), edge=0)


def count_parts(products: int) -> int:
    """The parts of an operand, of which so many products count."""
    return 1 + max(max(pair) for pair in PAIRS[products])
