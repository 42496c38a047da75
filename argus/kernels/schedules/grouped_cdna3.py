"""The MI300X schedule of grouped products: a block takes one tile, of a single expert, by the interleaved mainloop."""

from __future__ import annotations

from argus.kernels.schedules.cdna3_blocks import add_scaled, block_scales
from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved, Operands, assume_descriptors
from argus.kernels.schedules.grouped import GroupedContraction
from argus.language import block_id, buffer_store, ceil_div, copy, remap_xcd, scalar, vmem


def cdna3_grouped(problem: GroupedContraction, cfg: Cdna3Interleaved) -> None:
    """As `cdna3_interleaved`; rows that a tile loads beyond its own are not stored. Blocks without rows do nothing."""
    A, B, C = problem.A, problem.B, problem.C
    assume_descriptors(A, C, *(() if cfg.far else (B,)))
    counts = problem.tiles, ceil_div(C.shape[1], cfg.bn)
    t, n = remap_xcd(block_id, counts, group=cfg.group) if cfg.group else block_id(counts)
    with problem.where_rows(t):
        a, b = problem.operands(t)
        operands, scales = Operands.of(a, (b,), cfg), None
        if problem.scales is not None:
            of_a, of_b = problem.scales
            first, e = scalar(problem.tile_starts[t]), scalar(problem.tile_experts[t])
            mm = operands.instruction
            scales = block_scales(lambda k: of_a[k].rows(first), of_b[e], (0, n), mm, cfg, add_scaled)
        acc = operands.multiply((0, n), 0, ceil_div(A.shape[1], cfg.bk), scales)
        vmem.wait(0)  # of the tile that was loaded last, and is not used
        target, shape = problem.result(t), (cfg.bm, cfg.bn // len(acc))
        for i, sums in enumerate(acc):
            copy(sums.T.to(C.dtype), target.tile(shape, (0, len(acc) * n + i)), via=buffer_store, edge=0)
    problem.finish()
