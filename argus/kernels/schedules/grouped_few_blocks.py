"""The schedule of `grouped_few` for e4m3 with scales of blocks: per 1 x 128 of the rows, 128 x 128 of the experts.

As in `argus.kernels.schedules.grouped_blocks`, each 128 of K has a partial sum of its own, which is scaled and added in
f32. Its scales are loaded while the one before is multiplied. That takes longer than one block of matrices in flight
from memory, so several thread blocks share a processor.
"""

from __future__ import annotations

from attrs import frozen

from argus.kernels.schedules.contraction import slot_for
from argus.kernels.schedules.grouped import BLOCK
from argus.kernels.schedules.grouped_few import COLUMNS, Experts, Formula
from argus.language import (
    Int,
    IntLike,
    Ring,
    Tensor,
    Value,
    assume,
    ceil_div,
    copy,
    e4m3,
    elements,
    eq,
    f32,
    fma,
    ld_global_b32,
    loop,
    minimum,
    mma,
    registers,
    role,
    sm_90a,
    st_global_b16,
    tma,
    total,
    warpgroup,
    warpgroups,
    wgmma,
)


@frozen
class GroupedFewBlocks:
    """As `GroupedFew`, with 128 of K per stage."""

    bm: int = 16
    stages: int = 4
    bn: int = COLUMNS
    resident: int = 4
    bk = BLOCK
    target = sm_90a

    @property
    def threads(self) -> int:
        """The warpgroups that multiply, and one that loads."""
        return 128 + 2 * self.bn


def hopper_grouped_few_blocks(problem: Experts, scales: tuple[Tensor, Tensor], cfg: GroupedFewBlocks) -> None:
    """Trace the schedule.

    scales: of A, (K / 128, rows) or (experts, K / 128, rows), and of B, (experts, N / 128, K / 128).
    """
    (scale_a, scale_b), B, bm, bn = scales, problem.B, cfg.bm, cfg.bn
    _, columns, K = B.shape
    agents, depth = bn // COLUMNS, ceil_div(K, BLOCK)
    assume(eq(scale_a.shape[-2], depth), eq(scale_b.shape[2], depth), eq(scale_b.shape[1], ceil_div(columns, BLOCK)))
    assume(scale_b.shape[0] * scale_b.shape[1] * scale_b.shape[2] < 1 << 40)
    ring = Ring(cfg.stages, a=slot_for(problem.A, bm, BLOCK), b=slot_for(B, bn, BLOCK))
    tiles = problem.tiles(cfg)

    with role("load", warpgroup(0).elected):
        for at in tiles:
            m, n, e = problem.place(*at)
            with problem.where_rows(e):
                for k in loop(depth):
                    with ring.fill() as slot:
                        copy(problem.rows(e).tile((bm, BLOCK), (m, k)), slot.a, via=tma, edge=0)
                        copy(problem.of_expert(B, e).tile((bn, BLOCK), (n, k)), slot.b, via=tma, edge=0)
        ring.finish()

    with role("math", warpgroups(*range(1, agents + 1))) as wg:
        mm = wgmma(e4m3, n=bm)
        part, acc = registers(f32, mm.C), registers(f32, mm.C)
        of_rows, of_columns = registers(f32, mm.C.axis(1)), registers(f32, mm.C.axis())
        for at in tiles:
            m, n, e = problem.place(*at)
            with problem.where_rows(e):

                def fetch(k: IntLike, m: IntLike = m, n: Int = n, e: Int = e) -> None:
                    copy(problem.of_expert(scale_b, e)[n * bn // BLOCK, k], of_columns, edge=0)
                    copy(problem.of_rows(scale_a, e, k).tile((bm,), (m,)), of_rows, via=ld_global_b32, edge=0)

                acc[:] = 0.0
                fetch(0)
                for k in loop(depth):
                    slot = ring.wait()
                    mma(mm, part, slot.b.tile((COLUMNS, BLOCK), (wg, 0)), slot.a, init=True)
                    factors = of_rows * of_columns  # overlaps with the wgmma, as do the loads of the next scales
                    fetch(k + 1)
                    wgmma.wait(0)
                    ring.release()
                    acc[:] = fma(part, factors, acc)
                out = problem.result(e).T.tile((COLUMNS, bm), (agents * n + wg, m))
                copy(acc.to(problem.C.dtype), out, via=st_global_b16, edge=0)


def scaled_product_of(problem: Experts, scales: tuple[Tensor, Tensor]) -> Formula:
    """The sum over blocks of 128 products, each times its two scales."""
    a, b, of_a, of_b = map(elements, (problem.A, problem.B, *scales))
    K = problem.B.shape[2]

    def value(row: tuple[Int, ...], e: Int, n: Int) -> Value:
        *outer, r = row

        def block(k: Int) -> Value:
            over = (BLOCK * k, minimum(K, BLOCK * k + BLOCK))
            inside = total(lambda i: a(*row, i) * b(e, n, i), over=over)
            return inside * (of_a(*outer, k, r) * of_b(e, n // BLOCK, k))

        return total(block, over=ceil_div(K, BLOCK))

    return value
