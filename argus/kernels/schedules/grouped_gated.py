"""The Hopper schedule of gated grouped products: activation(A @ gate[e]^T) * (A @ up[e]^T), rows sorted by expert.

As in `argus.kernels.gated`, both consumer warpgroups work on one tile of both products, 64 rows each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from argus.kernels.schedules.contraction import slot_for
from argus.kernels.schedules.epilogues import CUBIC, LINEAR, gelu, silu
from argus.kernels.schedules.grouped import Grouped, GroupedContraction, store_until_end
from argus.kernels.schedules.hopper import store_boxes
from argus.language import (
    Fragment,
    Int,
    Ring,
    Tensor,
    Value,
    assume,
    ceil_div,
    copy,
    elements,
    eq,
    f32,
    loop,
    mma,
    persistent,
    registers,
    role,
    tanh,
    tma,
    total,
    warpgroup,
    warpgroups,
    wgmma,
    when,
)

_ROWS = 64
"""Rows of a warpgroup."""
Activation = Literal["silu", "gelu"]
ACTIVATIONS: dict[Activation, Callable[[Fragment], Fragment]] = {"silu": silu, "gelu": lambda x: gelu(x * 0.5)}


def activated(activation: Activation, x: Value) -> Value:
    """In a formula, silu(x) = x sigmoid(x), or GELU in its tanh form."""
    half = x * 0.5
    inner = half if activation == "silu" else half * (half * half * CUBIC + LINEAR)
    return half * (1 + tanh(inner))


def gated_element(a: Tensor, gate: Tensor, up: Tensor, activation: Activation, at: tuple[Int, Int, Int]) -> Value:
    """In a formula, activation(a @ gate[e]^T) * (a @ up[e]^T) at an expert, a row and a column."""
    e, r, n = at
    of_a = elements(a)

    def product(weights: Tensor) -> Value:
        of_b = elements(weights)
        return total(lambda k: of_a(r, k) * of_b(e, n, k), over=a.shape[1])

    return activated(activation, product(gate)) * product(up)


Store = Callable[[Fragment, Fragment, Int, tuple[Int, Int], Tensor], None]
"""What is done with the sums of both products of a tile: its number, the coordinate among parts of 64 rows, boxes."""


def hopper_grouped_gated(problem: GroupedContraction, up: Tensor, activation: Activation, cfg: Grouped) -> None:
    """Trace the schedule. up: the second factor's matrices; those of the problem are in the activation."""

    def store(gated: Fragment, acc: Fragment, t: Int, at: tuple[Int, Int], boxes: Tensor) -> None:
        store_until_end(ACTIVATIONS[activation](gated) * acc, problem.result(t), at, boxes)

    hopper_grouped_pair(problem, up, cfg, store)
    A, gate = problem.A, problem.B
    problem.claim(lambda e, r, n: gated_element(A, gate, up, activation, (e, r, n)))


def hopper_grouped_pair(problem: GroupedContraction, up: Tensor, cfg: Grouped, store: Store) -> None:
    """The products of rows with two matrices of their expert, those of the problem and `up`.

    A tile of a problem has bn / 2 columns of both products.
    """
    A, gate = problem.A, problem.B
    bm, bn, bk = cfg.bm, cfg.bn // 2, cfg.bk
    counts = problem.tiles, ceil_div(problem.C.shape[1], bn)
    assume(counts[0] * counts[1] < 1 << 23)  # coordinates of tiles then fit 32 bits
    depth = ceil_div(A.shape[1], bk)
    if cfg.stages & (cfg.stages - 1):
        assume(counts[0] * counts[1] * (depth + 1) < 1 << 32)  # uses of the ring's stages then fit 32 bits
    mm = wgmma(A.dtype, n=bn)
    ring = Ring(cfg.stages, a=slot_for(A, bm, bk), w=slot_for(gate, bn, bk), v=slot_for(up, bn, bk))
    boxes = store_boxes(bn, whole=False, dtype=A.dtype, turns=cfg.turns)
    tiles = persistent(counts, order=cfg.order)

    with role("load", warpgroup(0).elected, registers=40):
        for t, n in tiles:
            with problem.where_rows(t):
                a, w = problem.operands(t)
                v = problem.of_expert(up, t)
                for k in loop(depth):
                    with ring.fill() as slot:
                        copy(a.tile((bm, bk), (0, k)), slot.a, via=tma, edge=0)
                        copy(w.tile((bn, bk), (n, k)), slot.w, via=tma, edge=0)
                        copy(v.tile((bn, bk), (n, k)), slot.v, via=tma, edge=0)
        ring.finish()

    with role("math", warpgroups(1, 2), registers=232) as wg:
        acc, gated = registers(f32, mm.C), registers(f32, mm.C)
        for t, n in tiles:
            with problem.where_rows(t):
                for k in loop(depth):
                    slot = ring.wait()
                    mma(mm, gated, slot.a.tile((_ROWS, bk), (wg, 0)), slot.w, init=eq(k, 0))
                    mma(mm, acc, slot.a.tile((_ROWS, bk), (wg, 0)), slot.v, init=eq(k, 0))
                    wgmma.wait(pending=2)  # both wgmmas of k - 1 have read their stage ...
                    with when(k > 0):
                        ring.release()  # ... so release that stage
                wgmma.wait(pending=0)
                ring.release()
                store(gated, acc, t, (wg, n), boxes[wg])
