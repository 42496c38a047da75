"""C = A @ B^T of 8-bit floats (e4m3) whose blocks have scales: 1 x 128 of A, 128 x 128 of B.

Each 128 of k is multiplied into a sum of its own in the matrix unit, which keeps few bits, then scaled and added to the
sum of all in full single precision: promotion [DeepSeek-V3 2024, section 3.3.2].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from math import ceil, prod

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
    narrow: whether its 64 rows leave by one box of 64 columns at a time, which leaves memory to a stage.
    ragged: whether elements are stored one by one instead, so that rows of C may have any length.
    slots: whether scales of rows come with the slots, which takes an M that is a multiple of 4.
    ordered: whether one warpgroup sends off its first products of a slot after the other.
    double: whether a slot has two blocks of K (of tiles of 128 rows), so that one is scaled under the other's products.
    """

    bm: int = 128
    stages: int = 5
    group: int = 0
    cluster: tuple[int, ...] = (1,)
    whole: bool = False
    narrow: bool = False
    ragged: bool = False
    slots: bool = False
    ordered: bool = False
    double: bool = False
    bn = BLOCK
    target = sm_90a
    threads = 384

    @property
    def blocks(self) -> int:
        """Of K, a slot."""
        return 2 if self.double else 1

    @property
    def parts(self) -> int:
        """Of 64 rows, of each warpgroup."""
        return self.bm // 128


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
    bm, bn, parts = cfg.bm, cfg.bn, cfg.parts
    rows, columns = problem.tiles(bm, bn)
    problem.aligned(stores=not cfg.ragged)
    assume(rows * columns < 1 << 22)  # tiles, of which 256 rows times any number then fits 32 bits
    depth = ceil_div(A.shape[1], BLOCK)
    assume(eq(scale_a.shape[0], depth), eq(scale_b.shape[0], columns), depth % cfg.blocks == 0)
    mm = wgmma(e4m3, n=bn)
    ring = _ring(cfg, A, B)
    leaving = (2, parts if cfg.whole else 1, 1 if cfg.narrow else bn // _WIDTH, 64, _WIDTH)
    boxes = None if cfg.ragged else shared(bf16, leaving, swizzle=128)
    turns = Turns(2) if cfg.ordered else None
    tiles = persistent((rows, columns), order=super_tiled(cfg.group) if cfg.group else by_rows)
    problem.bounded(rows * columns, depth, cfg.stages)
    trips = depth // cfg.blocks

    with role("load", warpgroup(0).elected, registers=40):
        for m, n in tiles:
            for j in loop(trips):
                with ring.fill() as slot:
                    _fill(cfg, (A, B, scale_a), partial(getattr, slot), (m, n, j))
        ring.finish()

    with role("math", warpgroups(1, 2), registers=232) as wg:
        products = [registers(f32, mm.C) for _ in range(cfg.blocks)]
        accs = [registers(f32, mm.C) for _ in range(parts)]
        scales = [Scales(scale_a, scale_b, accs, in_slots=cfg.slots) for _ in range(cfg.blocks)]
        for m, n in tiles:
            for acc in accs:
                acc[:] = 0.0
            places = [2 * parts * m + parts * wg + i for i in range(parts)]
            _fetch_scales(scales, 0, n, places)
            for j in loop(trips):
                slot = ring.wait()
                factors: list[list[Fragment]] = []
                for p, acc in enumerate(accs):
                    with turns(wg) if turns is not None and p == 0 else nullcontext():
                        for i, part in enumerate(products):
                            a, b = getattr(slot, f"a{i}"), getattr(slot, f"b{i}")
                            mma(mm, part, a.tile((64, BLOCK), (parts * wg + p, 0)), b, init=True)
                    if p == 0:  # under the products
                        of_slot = [slot.scales[i] if cfg.slots else None for i in range(cfg.blocks)]
                        factors = [each.products(own, wg) for each, own in zip(scales, of_slot, strict=True)]
                        _fetch_scales(scales, j + 1, n, places)
                    for i, part in enumerate(products):
                        wgmma.wait(cfg.blocks - 1 - i)
                        if (p, i) == (parts - 1, cfg.blocks - 1):
                            ring.release()
                        _promote(acc, part, factors[i][p])
            for acc in accs:
                problem.complete(acc)
            _leave(cfg, accs, C, [(place, n) for place in places], None if boxes is None else boxes[wg])
        if boxes is not None:
            with elected():
                bulk.wait(0, of="reads")  # what is on its way out arrives by itself
    problem.finish()


class Scales:
    """Registers for the scales of one block of k: of all columns, and of the rows of each accumulator unless those come
    with the slots.
    """

    def __init__(self, a: Tensor, b: Tensor, accs: Sequence[Fragment], *, in_slots: bool) -> None:
        self.a, self.b, self.layout, self.parts = a, b, accs[0].layout, len(accs)
        self.of_rows = [] if in_slots else [registers(f32, self.layout.axis(0)) for _ in accs]
        self.of_columns = registers(f32, self.layout.axis())

    def fetch(self, k: Int | int, n: Int, places: Sequence[Int]) -> None:
        """Begin to load those of block k; there are none beyond the last."""
        copy(self.b[n, k], self.of_columns, edge=0)
        if self.of_rows:
            for held, place in zip(self.of_rows, places, strict=True):
                copy(self.a[k].tile((64,), (place,)), held, edge=0)

    def products(self, in_slot: Tensor | None, wg: Int) -> list[Fragment]:
        """Of rows and columns, of each accumulator."""
        if in_slot is None:
            return [held * self.of_columns for held in self.of_rows]
        places = [self.parts * wg + p for p in range(self.parts)]
        rows = [load(in_slot.tile((64,), (place,)), self.layout.axis(0)) for place in places]
        return [held * self.of_columns for held in rows]


def _fetch_scales(scales: Sequence[Scales], trip: Int | int, n: Int, places: Sequence[Int]) -> None:
    """Those of the blocks of a slot."""
    for i, each in enumerate(scales):
        each.fetch(len(scales) * trip + i, n, places)


def _ring(cfg: Blocks, a: Tensor, b: Tensor) -> Ring:
    """Of the tiles of both operands for each block of K of a slot, and scales of rows where they come with it."""
    held = {f"a{i}": slot_for(a, cfg.bm, BLOCK) for i in range(cfg.blocks)}
    held |= {f"b{i}": slot_for(b, cfg.bn, BLOCK) for i in range(cfg.blocks)}
    if cfg.slots:
        assume(a.shape[0] % 4 == 0)  # rows of scales that the copy engine takes
        held["scales"] = shared(f32, (cfg.blocks, cfg.bm))
    return Ring(cfg.stages, **held)


def _fill(
    cfg: Blocks, sources: tuple[Tensor, Tensor, Tensor], tile: Callable[[str], Tensor], at: tuple[Int, Int, Int]
) -> None:
    """A slot, by the names of its tiles, for trip j of tile (m, n)."""
    a, b, scales = sources
    m, n, j = at
    for i in range(cfg.blocks):
        k = cfg.blocks * j + i
        own = a.tile((cfg.bm, BLOCK), (m, k)), tile(f"a{i}")
        _fetch(cfg, own, (b.tile((cfg.bn, BLOCK), (n, k)), tile(f"b{i}")))
    if cfg.slots:
        copy(scales.tile((cfg.blocks, cfg.bm), (j, m)), tile("scales"), via=tma, edge=0)


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


def _leave(cfg: Blocks, accs: Sequence[Fragment], target: Tensor, at: Sequence[Place], boxes: Tensor | None) -> None:
    """Accumulators of 64 rows to global."""
    if boxes is None:
        for acc, place in zip(accs, at, strict=True):
            copy(acc.to(bf16), target.tile((64, BLOCK), place), via=st_global_b16, edge=0)
        return
    together, columns = (int(extent) for extent in boxes.shape[:2])
    for i in range(0, cfg.parts, together):
        for j in range(0, BLOCK // _WIDTH, columns):
            _store(accs[i : i + together], target, at[i : i + together], boxes, j)


def _store(accs: Sequence[Fragment], target: Tensor, at: Sequence[Place], boxes: Tensor, first: int) -> None:
    """Accumulators of 64 rows, from a part of their columns on, each through boxes of its own: all filled, one meeting,
    all sent.
    """
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


def _promote(acc: Fragment, part: Fragment, scale: Fragment) -> None:
    """A block's sum, scaled, into the sum of all: each k that it sums lies in the block of both scales."""
    assert_relation(part, scale, lambda p, s: eq(s.kb, p.k // BLOCK) & eq(s.nb, p.n // BLOCK))
    acc[:] = fma(part, scale, acc)
