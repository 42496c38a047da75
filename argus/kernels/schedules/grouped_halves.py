"""Hopper schedules of grouped products with two matrices of each expert: both products, and the sum of two products."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from argus.kernels.schedules.contraction import slot_for
from argus.kernels.schedules.grouped import Grouped, GroupedContraction, store_until_end
from argus.kernels.schedules.grouped_gated import hopper_grouped_pair
from argus.kernels.schedules.grouped_halves_claims import claim_sum_of_halves, claim_two_halves
from argus.kernels.schedules.hopper import store_boxes
from argus.language import (
    Fragment,
    Int,
    Ring,
    Tensor,
    assume,
    ceil_div,
    copy,
    eq,
    f32,
    loop,
    mma,
    persistent,
    registers,
    role,
    tma,
    warpgroup,
    warpgroups,
    wgmma,
    when,
)

_ROWS = 64
"""Rows of a warpgroup."""


@frozen
class GroupedHalves(Grouped):
    """As `Grouped`; a stage has bk of K of each half."""

    bk: int = 32


def grouped_two_halves(halves: Sequence[GroupedContraction], matrices: Tensor, made: Tensor, cfg: Grouped) -> None:
    """Trace the schedule of both products: made[i] is that with matrices[:, i].

    halves: the products of the same rows. matrices: (experts, 2, N, K). made: (2, rows, N).
    """
    one, other = halves

    def store(first: Fragment, second: Fragment, t: Int, at: tuple[Int, Int], boxes: Tensor) -> None:
        store_until_end(first, one.result(t), at, boxes)
        store_until_end(second, other.result(t), at, boxes)

    hopper_grouped_pair(one, other.B, cfg, store)
    claim_two_halves(one, matrices, made)


def grouped_sum_of_halves(halves: Sequence[GroupedContraction], cfg: GroupedHalves) -> None:
    """Trace the schedule of the sum of two products, which differ in A and B alone."""
    problem, other = halves
    bm, bn, bk = cfg.bm, cfg.bn, cfg.bk
    counts = problem.tiles, ceil_div(problem.C.shape[1], bn)
    assume(counts[0] * counts[1] < 1 << 24)  # coordinates of tiles then fit 32 bits
    depth = ceil_div(problem.A.shape[1], bk)
    if cfg.stages & (cfg.stages - 1):
        assume(counts[0] * counts[1] * (depth + 1) < 1 << 32)  # uses of the ring's stages then fit 32 bits
    mm = wgmma(problem.A.dtype, n=bn)
    slots = (slot_for(each, rows, bk) for of in halves for each, rows in ((of.A, bm), (of.B, bn)))
    ring = Ring(cfg.stages, **dict(zip(("a0", "b0", "a1", "b1"), slots, strict=True)))
    boxes = store_boxes(bn, whole=False, dtype=problem.C.dtype, turns=cfg.turns)
    tiles = persistent(counts, order=cfg.order)

    with role("load", warpgroup(0).elected, registers=40):
        for t, n in tiles:
            with problem.where_rows(t):
                (a0, b0), (a1, b1) = problem.operands(t), other.operands(t)
                for k in loop(depth):
                    with ring.fill() as slot:
                        for rows, matrix, of_a, of_b in ((a0, b0, slot.a0, slot.b0), (a1, b1, slot.a1, slot.b1)):
                            copy(rows.tile((bm, bk), (0, k)), of_a, via=tma, edge=0)
                            copy(matrix.tile((bn, bk), (n, k)), of_b, via=tma, edge=0)
        ring.finish()

    with role("math", warpgroups(1, 2), registers=232) as wg:
        acc = registers(f32, mm.C)
        for t, n in tiles:
            with problem.where_rows(t):
                for k in loop(depth):
                    slot = ring.wait()
                    mma(mm, acc, slot.a0.tile((_ROWS, bk), (wg, 0)), slot.b0, init=eq(k, 0))
                    mma(mm, acc, slot.a1.tile((_ROWS, bk), (wg, 0)), slot.b1)
                    wgmma.wait(pending=2)  # both of k - 1 have read their stage ...
                    with when(k > 0):
                        ring.release()  # ... so release that stage
                wgmma.wait(pending=0)
                ring.release()
                store_until_end(acc, problem.result(t), (wg, n), boxes[wg])
    claim_sum_of_halves(halves)
