"""Gated GEMM: C = silu(A @ W^T) * (A @ V^T), the first half of a gated feed-forward layer, in one kernel."""

from __future__ import annotations

from math import prod

from argus.kernels.epilogues import CDNA3, Config, gate_of
from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved, cdna3_interleaved_pair
from argus.kernels.schedules.contraction import Contraction, element_of, part, slot_for
from argus.kernels.schedules.epilogues import Deferred, Epilogue, TileCoord, silu
from argus.kernels.schedules.hopper import Hopper, epilogue_parts, store_boxes, store_by_tma
from argus.language import (
    Fragment,
    Ring,
    Tensor,
    assert_equals,
    assume,
    bf16,
    bulk,
    ceil_div,
    cluster,
    copy,
    elected,
    eq,
    f32,
    kernel,
    loop,
    mma,
    persistent,
    registers,
    role,
    tag,
    tma,
    warpgroup,
    warpgroups,
    wgmma,
    when,
)

CONFIGS: dict[str, Config] = {
    "by_rows": Hopper(bn=128),
    "super_tiled": Hopper(bn=128, group=8),
    "pairs": Hopper(bn=128, cluster=(2, 1), group=8),
    "pairs_by_rows": Hopper(bn=128, cluster=(2, 1)),
    **CDNA3,
}


@kernel(configs=CONFIGS)
def gemm_gated_silu(
    A: Tensor["M K", bf16], W: Tensor["N K", bf16], V: Tensor["N K", bf16], C: Tensor["M N", bf16], *, cfg: Config
) -> None:
    """C = silu(A @ W^T) * (A @ V^T)."""
    problem = Contraction(A, W, C)
    tag(V, lambda n, k: dict(n=n, k=k))
    if isinstance(cfg, Cdna3Interleaved):
        cdna3_interleaved_pair(problem, V, cfg, lambda gate, acc: silu(gate) * acc)
    else:
        _by_tma(problem, V, cfg)
    problem.finish()
    assert_equals(C, lambda m, n: gate_of(problem.element(m, n)) * element_of(A, V, m, n))


def _by_tma(problem: Contraction, V: Tensor, cfg: Hopper) -> None:
    """Both consumer warpgroups work on one tile of both products, 64 rows each; a stage has tiles of A, W and V."""
    A, W, C = problem.A, problem.B, problem.C
    bm, bn, bk = cfg.bm, cfg.bn, cfg.bk
    count = problem.count(bm, bn)
    problem.assume_aligned()
    assume(count < 1 << 23)  # so that 256 rows times any tile number fit 32 bits
    mm = wgmma(A.dtype, n=bn)
    ring = Ring(cfg.stages, a=slot_for(A, bm, bk), w=slot_for(W, bn, bk), v=slot_for(V, bn, bk))
    boxes = store_boxes(bn, whole=cfg.whole, dtype=C.dtype)
    tiles = persistent(problem.tiles(bm, bn), order=problem.order(cfg.order))
    depth = ceil_div(A.shape[-1], bk)
    problem.assume_ring_bounds(count, depth, cfg.stages)

    with role("load", warpgroup(0).elected, registers=40):
        for m, n in tiles:
            for k in loop(depth):
                with ring.fill() as slot:
                    copy(A.tile((bm, bk), (m, k)), slot.a, via=tma, edge=0)
                    for source, target in ((W, slot.w), (V, slot.v)):
                        _fetch(source.tile((bn, bk), (n, k)), target, cfg)
        ring.finish()

    with role("math", warpgroups(1, 2), registers=232) as wg:
        acc, gate = registers(f32, mm.C), registers(f32, mm.C)
        for m, n in tiles:
            for k in loop(depth):
                slot = ring.wait()
                mma(mm, gate, slot.a.tile((64, bk), (wg, 0)), slot.w, init=eq(k, 0))
                mma(mm, acc, slot.a.tile((64, bk), (wg, 0)), slot.v, init=eq(k, 0))
                wgmma.wait(pending=2)  # both wgmmas of k - 1 have read their stage ...
                with when(k > 0):
                    ring.release()  # ... so release that stage
            parts = epilogue_parts(_gated_by(gate, int(boxes.shape[-1])), acc, (2 * m + wg, n), boxes)
            wgmma.wait(pending=0)
            ring.release()
            problem.complete(acc)
            problem.complete(gate)
            store_by_tma(parts, C, boxes[wg])
        with elected():
            bulk.wait(0, of="reads")  # the stores have read the boxes; they complete without the CTA


def _fetch(source: Tensor, target: Tensor, cfg: Hopper) -> None:
    """Load a tile of a weight; in a cluster each CTA multicasts its part to all."""
    blocks = prod(cfg.cluster)
    if blocks == 1:
        copy(source, target, via=tma, edge=0)
    else:
        mine = (part(each, cluster.rank, blocks) for each in (source, target))
        copy(*mine, via=tma.multicast(tuple(range(blocks))), edge=0)


def _gated_by(gate: Fragment, width: int) -> Epilogue:
    """The epilogue silu(gate) * acc, for successive parts of `width` columns."""
    parts = iter([gate.tile((gate.shape[0], width), (0, j)) for j in range(gate.shape[1] // width)])

    def epilogue(acc: Fragment, at: TileCoord) -> Deferred:
        del at
        gate_part = next(parts)
        return lambda: silu(gate_part) * acc

    return epilogue
