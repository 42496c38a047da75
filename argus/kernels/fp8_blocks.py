"""C = A @ B^T of 8-bit floats (e4m3) whose blocks have scales: 1 x 128 of A, 128 x 128 of B.

Each 128 of k is multiplied into a sum of its own in the matrix unit, which keeps few bits, then scaled and added to the
sum of all in full single precision: promotion [DeepSeek-V3 2024, section 3.3.2].
"""

from __future__ import annotations

from collections.abc import Sequence
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
    bn = BLOCK
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
    ring = Ring(cfg.stages, a=slot_for(A, bm, BLOCK), b=slot_for(B, bn, BLOCK))
    parts = bm // 128  # of 64 rows, of each warpgroup
    held = (2, parts if cfg.whole else 1, bn // _WIDTH, 64, _WIDTH)
    boxes = None if cfg.ragged else shared(bf16, held, swizzle=128)
    tiles = persistent((rows, columns), order=super_tiled(cfg.group) if cfg.group else by_rows)
    problem.bounded(rows * columns, depth, cfg.stages)

    with role("load", warpgroup(0).elected, registers=40):
        for m, n in tiles:
            for k in loop(depth):
                with ring.fill() as slot:
                    _fetch(cfg, (A.tile((bm, BLOCK), (m, k)), slot.a), (B.tile((bn, BLOCK), (n, k)), slot.b))
        ring.finish()

    with role("math", warpgroups(1, 2), registers=232) as wg:
        part, accs = registers(f32, mm.C), [registers(f32, mm.C) for _ in range(parts)]
        scales = Scales(scale_a, scale_b, [registers(f32, mm.C.axis(0)) for _ in accs], registers(f32, mm.C.axis()))
        for m, n in tiles:
            for acc in accs:
                acc[:] = 0.0
            places = [2 * parts * m + parts * wg + i for i in range(parts)]
            scales.fetch(0, n, places)
            for k in loop(depth):
                factors = scales.products()
                slot = ring.wait()
                for i, acc in enumerate(accs):
                    mma(mm, part, slot.a.tile((64, BLOCK), (parts * wg + i, 0)), slot.b, init=True)
                    if i == 0:
                        scales.fetch(k + 1, n, places)  # under the products
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
                    _store(accs[i : i + together], C, at[i : i + together], boxes[wg])
        if boxes is not None:
            with elected():
                bulk.wait(0, of="reads")  # what is on its way out arrives by itself
    problem.finish()


@frozen
class Scales:
    """Registers for the scales of one block of k: of the rows of each accumulator, and of all columns."""

    a: Tensor
    b: Tensor
    of_rows: Sequence[Fragment]
    of_columns: Fragment

    def fetch(self, k: Int | int, n: Int, places: Sequence[Int]) -> None:
        """Begin to load those of block k; there are none beyond the last."""
        copy(self.b[n, k], self.of_columns, edge=0)
        for held, place in zip(self.of_rows, places, strict=True):
            copy(self.a[k].tile((64,), (place,)), held, edge=0)

    def products(self) -> list[Fragment]:
        return [held * self.of_columns for held in self.of_rows]


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


def _store(accs: Sequence[Fragment], target: Tensor, at: Sequence[Place], boxes: Tensor) -> None:
    """Accumulators of 64 rows to global, each through boxes of its own: all filled, one meeting, all sent."""
    with elected():
        bulk.wait(pending=0, of="reads")  # what was sent last has left the boxes
    sync()
    sent = [(i, j) for i in range(len(accs)) for j in range(BLOCK // _WIDTH)]
    for i, j in sent:
        copy(accs[i].tile((64, _WIDTH), (0, j)).to(bf16), boxes[i, j], via=stmatrix.x4)
    fence("async proxy")
    sync()
    with elected():
        for i, j in sent:
            row, column = at[i]
            place = row, column * (BLOCK // _WIDTH) + j
            copy(boxes[i, j], target.tile((64, _WIDTH), place), via=tma, edge=0)
        bulk.commit()


def _store_elements(accs: Sequence[Fragment], target: Tensor, at: Sequence[Place]) -> None:
    for acc, place in zip(accs, at, strict=True):
        copy(acc.to(bf16), target.tile((64, BLOCK), place), via=st_global_b16, edge=0)


def _promote(acc: Fragment, part: Fragment, scale: Fragment) -> None:
    """A block's sum, scaled, into the sum of all: each k that it sums lies in the block of both scales."""
    assert_relation(part, scale, lambda p, s: eq(s.kb, p.k // BLOCK) & eq(s.nb, p.n // BLOCK))
    acc[:] = fma(part, scale, acc)
