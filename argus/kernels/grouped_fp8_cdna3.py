"""Grouped GEMM of e4m3fnuz on MI300X, with scales of blocks: per 1 x 128 of the rows, and per 128 x 128 of matrices."""

# ruff: noqa: UP037
# Reason: a name in quotes is the name of a size.

from __future__ import annotations

from argus.kernels.schedules.cdna3_blocks import BLOCK
from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved
from argus.kernels.schedules.grouped import GroupedContraction
from argus.kernels.schedules.grouped_cdna3 import cdna3_grouped
from argus.language import Tensor, bf16, e4m3fnuz, f32, i32, kernel

CONFIGS = {
    "interleaved_128": Cdna3Interleaved(bm=128, bn=128, bk=BLOCK, agprs=False, far=True),
    "interleaved_64": Cdna3Interleaved(bm=64, bn=128, bk=BLOCK, ordered=False, agprs=False, far=True),
}


@kernel(configs=CONFIGS)
def grouped_fp8_fnuz_blocks(
    A: Tensor["M K", e4m3fnuz],
    B: Tensor["E N K", e4m3fnuz],
    scale_a: Tensor["KB M", f32],
    scale_b: Tensor["E NB KB", f32],
    starts: Tensor["R", i32],
    tile_starts: Tensor["S", i32],
    tile_experts: Tensor["T", i32],
    C: Tensor["M N", bf16],
    *,
    cfg: Cdna3Interleaved,
) -> None:
    """C[r, n] = sum over k of A[r, k] scale_a[k // 128, r] * B[e, n, k] scale_b[e, n // 128, k // 128]."""
    problem = GroupedContraction(A, B, C, starts, tile_starts, tile_experts, cfg.bm, (scale_a, scale_b))
    cdna3_grouped(problem, cfg)
