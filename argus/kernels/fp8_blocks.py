"""C = A @ B^T of 8-bit floats (e4m3) whose blocks have scales: 1 x 128 of A, 128 x 128 of B.

Each 128 of k is multiplied into a sum of its own in the matrix unit, which keeps few bits, then scaled and added to the
sum of all in full single precision: promotion [DeepSeek-V3 2024, section 3.3.2].
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from math import ceil, prod
from typing import Any

from attrs import frozen

from argus.kernels.contraction import Contraction, slot_for
from argus.kernels.hopper import Place
from argus.kernels.select import PROCESSORS
from argus.language import (
    Fragment,
    Int,
    Ring,
    Tensor,
    Turns,
    assert_relation,
    assume,
    bf16,
    bulk,
    by_rows,
    ceil_div,
    cluster,
    copy,
    e4m3,
    elected,
    eq,
    f32,
    fence,
    fma,
    kernel,
    load,
    loop,
    mma,
    persistent,
    registers,
    role,
    shared,
    sm_90a,
    st_global_b16,
    stmatrix,
    super_tiled,
    sync,
    tag,
    tma,
    warpgroup,
    warpgroups,
    wgmma,
)

BLOCK = 128
"""Elements of k, and rows of B, that share a scale."""
_WIDTH = 64
"""Columns of a box that a tile leaves through."""


@frozen
class Blocks:
    """H200: bm x 128 tiles, 128 of K a slot, by a role that loads and two warpgroups that multiply.

    group: rows of a super-tile, 0 for tiles by rows. cluster: blocks that run together, neighbouring rows first.
    whole: whether a tile leaves through boxes of its own for all of its rows, which takes memory of a stage or more.
    ragged: whether elements are stored one by one instead, so that rows of C may have any length.
    """

    bm: int = 128
    stages: int = 5
    group: int = 0
    cluster: tuple[int, ...] = (1,)
    whole: bool = False
    ragged: bool = False
    columns: int = 0
    scales: str = "loads"
    when_fetched: str = "under"
    ordered: int = 0
    double: bool = False
    bn = BLOCK

    @property
    def slices(self) -> int:
        return 2 if self.double else 1

    target = sm_90a
    threads = 384


CONFIGS = {
    "by_rows": Blocks(),
    "super_tiled": Blocks(group=8),
    "clustered": Blocks(cluster=(2, 1)),
    "clustered_bands": Blocks(cluster=(2, 1), group=8),
    "ragged": Blocks(ragged=True),
    "rows_256": Blocks(bm=256, stages=4),
    "rows_256_bands": Blocks(bm=256, stages=4, group=8),
    "rows_256_clustered": Blocks(bm=256, stages=4, cluster=(1, 2)),
    "rows_256_whole": Blocks(bm=256, stages=3, group=8, whole=True),
    "rows_256_pairs": Blocks(bm=256, stages=3, cluster=(2, 1), group=4, whole=True),
    "rows_256_beside": Blocks(bm=256, stages=3, cluster=(1, 2), whole=True),
    "rows_256_beside_4": Blocks(bm=256, stages=4, cluster=(1, 2), columns=1),
    "d128": Blocks(stages=3, group=8, scales="rows", columns=1, double=True),
    "d128_pairs": Blocks(stages=3, group=8, scales="rows", columns=1, double=True, cluster=(2, 1)),
    "d128_beside": Blocks(stages=3, scales="rows", columns=1, double=True, cluster=(1, 2)),
    "od128": Blocks(stages=3, group=8, scales="rows", columns=1, double=True, ordered=1),
    "r256_4": Blocks(bm=256, stages=4, group=8, scales="rows", columns=1),
    "r256_3w": Blocks(bm=256, stages=3, group=8, scales="rows", whole=True),
    "r256_3w_pairs": Blocks(bm=256, stages=3, group=4, scales="rows", whole=True, cluster=(2, 1)),
    "r256_4_pairs": Blocks(bm=256, stages=4, group=4, scales="rows", columns=1, cluster=(2, 1)),
    "r256_3w_beside": Blocks(bm=256, stages=3, scales="rows", whole=True, cluster=(1, 2)),
    "r256_4_beside": Blocks(bm=256, stages=4, scales="rows", columns=1, cluster=(1, 2)),
    "r256_4_early": Blocks(bm=256, stages=4, group=8, scales="rows", columns=1, when_fetched="early"),
    "o256_3w": Blocks(bm=256, stages=3, group=8, scales="rows", whole=True, ordered=1),
    "o256_4": Blocks(bm=256, stages=4, group=8, scales="rows", columns=1, ordered=1),
    "o256_bands": Blocks(bm=256, stages=4, group=8, ordered=1),
    "r128": Blocks(stages=5, group=8, scales="rows"),
    "r128_pairs": Blocks(stages=5, group=8, scales="rows", cluster=(2, 1)),
    "o128": Blocks(stages=5, group=8, scales="rows", ordered=1),
}


_LARGE = 1.7
"""What a wave of tiles of 256 rows takes, as a multiple of one of 128."""


def select(m: int, n: int, k: int) -> str:
    """The configuration that is expected to take least: tiles of 256 rows, which take less than two of 128."""
    del k
    if n % 8:
        return "ragged"
    large, small = (ceil(ceil(m / rows) * ceil(n / BLOCK) / PROCESSORS) for rows in (256, 128))
    return "rows_256_bands" if _LARGE * large <= small else "by_rows"


@kernel(configs=CONFIGS)
def gemm_fp8_blocks(
    A: Tensor["M K", e4m3],
    B: Tensor["N K", e4m3],
    scale_a: Tensor["KB M", f32],
    scale_b: Tensor["NB KB", f32],
    C: Tensor["M N", bf16],
    *,
    cfg: Blocks,
) -> None:
    """C[m, n] = sum over k of A[m, k] scale_a[k // 128, m] * B[n, k] scale_b[n // 128, k // 128]."""
    tag(scale_a, lambda kb, m: dict(m=m, kb=kb))
    tag(scale_b, lambda nb, kb: dict(nb=nb, kb=kb))
    problem = Contraction(A, B, C)
    bm, bn = cfg.bm, cfg.bn
    rows, columns = problem.tiles(bm, bn)
    problem.aligned(stores=not cfg.ragged)
    assume(rows * columns < 1 << 22)  # tiles, of which 256 rows times any number then fits 32 bits
    depth = ceil_div(A.shape[1], BLOCK)
    assume(eq(scale_a.shape[0], depth), eq(scale_b.shape[0], columns))
    mm = wgmma(e4m3, n=bn)
    if cfg.scales != "loads":
        assume(A.shape[0] % 4 == 0)
    if cfg.scales == "both":
        assume(scale_b.shape[1] % 4 == 0)
    if cfg.double:
        assume(scale_b.shape[1] % 2 == 0)
    tiles_of: dict[str, Tensor] = {}
    for i in range(cfg.slices):
        tiles_of |= {f"a{i}": slot_for(A, bm, BLOCK), f"b{i}": slot_for(B, bn, BLOCK)}
    if cfg.scales != "loads":
        tiles_of["sa"] = shared(f32, (cfg.slices, bm))
    if cfg.scales == "both":
        tiles_of["sb"] = shared(f32, (8, 4))
    ring = Ring(cfg.stages, **tiles_of)
    parts = bm // 128  # of 64 rows, of each warpgroup
    held = (2, parts if cfg.whole else 1, cfg.columns or bn // _WIDTH, 64, _WIDTH)
    boxes = None if cfg.ragged else shared(bf16, held, swizzle=128)
    turns = [Turns(2) for _ in range(cfg.ordered)]
    tiles = persistent((rows, columns), order=super_tiled(cfg.group) if cfg.group else by_rows)
    problem.bounded(rows * columns, depth + 1, cfg.stages)
    trips = ceil_div(depth, cfg.slices)

    with role("load", warpgroup(0).elected, registers=40):
        for m, n in tiles:
            for j in loop(trips):
                with ring.fill() as slot:
                    for i in range(cfg.slices):
                        k = cfg.slices * j + i
                        a, b = getattr(slot, f"a{i}"), getattr(slot, f"b{i}")
                        _fetch(cfg, (A.tile((bm, BLOCK), (m, k)), a), (B.tile((bn, BLOCK), (n, k)), b))
                    if cfg.scales != "loads":
                        copy(scale_a.tile((cfg.slices, bm), (j, m)), slot.sa, via=tma, edge=0)
                    if cfg.scales == "both":
                        here = scale_b.gather((1, 4), lambda i, q, n=n, j=j: (n + i, cfg.slices * j + q))
                        copy(here, slot.sb.tile((1, 4), (0, 0)), via=tma, edge=0)
        ring.finish()

    with role("math", warpgroups(1, 2), registers=232) as wg:
        part, accs = registers(f32, mm.C), [registers(f32, mm.C) for _ in range(parts)]
        second = registers(f32, mm.C) if cfg.double else part
        source = Scales(scale_a, scale_b, accs[0], cfg)
        second_source = Scales(scale_a, scale_b, accs[0], cfg) if cfg.double else source
        for m, n in tiles:
            for acc in accs:
                acc[:] = 0.0
            places = [2 * parts * m + parts * wg + i for i in range(parts)]
            source.fetch(0, n, places)
            if cfg.double:
                second_source.fetch(1, n, places)
            for j in loop(trips):
                slot = ring.wait()
                if cfg.when_fetched == "early":
                    factors = source.products(slot, 0, wg)
                    source.fetch(j + 1, n, places)
                if cfg.double:
                    with turns[0](wg) if cfg.ordered else nullcontext():
                        mma(mm, part, slot.a0.tile((64, BLOCK), (wg, 0)), slot.b0, init=True)
                        mma(mm, second, slot.a1.tile((64, BLOCK), (wg, 0)), slot.b1, init=True)
                    one, two = source.products(slot, 0, wg), second_source.products(slot, 1, wg)
                    source.fetch(2 * j + 2, n, places)
                    second_source.fetch(2 * j + 3, n, places)
                    wgmma.wait(1)
                    _promote(accs[0], part, one[0])
                    wgmma.wait(0)
                    ring.release()
                    _promote(accs[0], second, two[0])
                    continue
                for i, acc in enumerate(accs):
                    with turns[i](wg) if i < cfg.ordered else nullcontext():
                        mma(mm, part, slot.a0.tile((64, BLOCK), (parts * wg + i, 0)), slot.b0, init=True)
                    if i == 0:
                        if cfg.when_fetched == "under":
                            factors = source.products(slot, 0, wg)
                            source.fetch(j + 1, n, places)  # under the products
                    wgmma.wait(0)
                    if i == parts - 1:
                        ring.release()
                    _promote(acc, part, factors[i])
            for acc in accs:
                problem.complete(acc)
            at = [(place, n) for place in places]
            if boxes is None:
                _store_elements(accs, C, at)
            else:
                together = parts if cfg.whole else 1
                for i in range(0, parts, together):
                    for j in range(0, bn // _WIDTH, cfg.columns or bn // _WIDTH):
                        _store(accs[i : i + together], C, at[i : i + together], boxes[wg], j)
        if boxes is not None:
            with elected():
                bulk.wait(0, of="reads")  # what is on its way out arrives by itself
    problem.finish()


class Scales:
    """Registers for the scales of one block of k: of the rows of each accumulator, and of all columns."""

    def __init__(self, a: Tensor, b: Tensor, like: Fragment, cfg: Blocks) -> None:
        layout = like.layout
        self.a, self.b, self.cfg, self.layout = a, b, cfg, layout
        self.parts = cfg.bm // 128
        loaded = cfg.scales == "loads"
        self.rows = [registers(f32, layout.axis(0)) for _ in range(self.parts)] if loaded else []
        self.columns = registers(f32, layout.axis()) if cfg.scales != "both" else None

    def fetch(self, k: Int | int, n: Int, places: Sequence[Int]) -> None:
        """Begin to load those of block k; there are none beyond the last."""
        if self.columns is not None:
            copy(self.b[n, k], self.columns, edge=0)
        if self.rows:
            for held, place in zip(self.rows, places, strict=True):
                copy(self.a[k].tile((64,), (place,)), held, edge=0)

    def products(self, slot: Any, i: int, wg: Int) -> list[Fragment]:
        columns = self.columns if self.columns is not None else load(slot.sb[0, i], self.layout.axis())
        if self.rows:
            return [held * columns for held in self.rows]
        of_rows = slot.sa[i]
        rows = [load(of_rows.tile((64,), (self.parts * wg + p,)), self.layout.axis(0)) for p in range(self.parts)]
        return [held * columns for held in rows]


def _fetch(cfg: Blocks, a: tuple[Tensor, Tensor], b: tuple[Tensor, Tensor]) -> None:
    """Both tiles of a slot; of a cluster each block fetches its share of the tile that all multiply by."""
    blocks = prod(cfg.cluster)
    if blocks == 1:
        copy(*a, via=tma, edge=0)
        copy(*b, via=tma, edge=0)
        return
    own, common = (b, a) if cfg.cluster[0] == 1 else (a, b)
    copy(*own, via=tma, edge=0)
    to_all = tma.multicast(tuple(range(blocks)))
    copy(*(each.part(0, cluster.rank, blocks) for each in common), via=to_all, edge=0)


def _store(accs: Sequence[Fragment], target: Tensor, at: Sequence[Place], boxes: Tensor, first: int = 0) -> None:
    """Accumulators of 64 rows to global, each through boxes of its own: all filled, one meeting, all sent."""
    with elected():
        bulk.wait(pending=0, of="reads")  # what was sent last has left the boxes
    sync()
    sent = [(i, j) for i in range(len(accs)) for j in range(int(boxes.shape[1]))]
    for i, j in sent:
        copy(accs[i].tile((64, _WIDTH), (0, first + j)).to(bf16), boxes[i, j], via=stmatrix.x4)
    fence("async proxy")
    sync()
    with elected():
        for i, j in sent:
            row, column = at[i]
            place = row, column * (BLOCK // _WIDTH) + first + j
            copy(boxes[i, j], target.tile((64, _WIDTH), place), via=tma, edge=0)
        bulk.commit()


def _store_elements(accs: Sequence[Fragment], target: Tensor, at: Sequence[Place]) -> None:
    for acc, place in zip(accs, at, strict=True):
        copy(acc.to(bf16), target.tile((64, BLOCK), place), via=st_global_b16, edge=0)


def _promote(acc: Fragment, part: Fragment, scale: Fragment) -> None:
    """A block's sum, scaled, into the sum of all: each k that it sums lies in the block of both scales."""
    assert_relation(part, scale, lambda p, s: eq(s.kb, p.k // BLOCK) & eq(s.nb, p.n // BLOCK))
    acc[:] = fma(part, scale, acc)
