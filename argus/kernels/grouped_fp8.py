"""Grouped GEMM of e4m3 with scales: of blocks, 1 x 128 of the rows and 128 x 128 of each expert's matrix; or of each
row, and of each column of each matrix.
"""

# ruff: noqa: UP037
# Reason: a name in quotes is the name of a size.

from __future__ import annotations

from argus.kernels.schedules.grouped import Grouped, GroupedContraction, hopper_grouped
from argus.kernels.schedules.grouped_blocks import GroupedBlocks, hopper_grouped_blocks
from argus.kernels.schedules.grouped_few_blocks import GroupedFewBlocks, hopper_grouped_few_blocks
from argus.kernels.schedules.grouped_listed import ListedExperts
from argus.language import Tensor, bf16, e4m3, f32, i32, kernel

ROWS_CONFIGS = {
    "columns_256": Grouped(bk=128),
    "by_rows": Grouped(bk=128, group=0),
    "columns_128": Grouped(bn=128, bk=128, stages=6),
}
CONFIGS = {
    "super_tiled": GroupedBlocks(),
    "by_rows": GroupedBlocks(group=0),
    "columns_192": GroupedBlocks(bn=192, stages=4, rounds=4),
}


@kernel(configs=CONFIGS)
def grouped_fp8_blocks(
    A: Tensor["M K", e4m3],
    B: Tensor["E N K", e4m3],
    scale_a: Tensor["KB M", f32],
    scale_b: Tensor["E NB KB", f32],
    starts: Tensor["R", i32],
    tile_starts: Tensor["S", i32],
    tile_experts: Tensor["T", i32],
    C: Tensor["M N", bf16],
    *,
    cfg: GroupedBlocks | GroupedFewBlocks,
) -> None:
    """C[r, n] = sum over k of A[r, k] scale_a[k // 128, r] * B[e, n, k] scale_b[e, n // 128, k // 128]."""
    scales = scale_a, scale_b
    problem = GroupedContraction(A, B, C, starts, tile_starts, tile_experts, cfg.bm, scales)
    match cfg:
        case GroupedBlocks():
            hopper_grouped_blocks(problem, scales, cfg)
        case GroupedFewBlocks():
            hopper_grouped_few_blocks(ListedExperts(problem), scales, cfg)
            problem.finish()


@kernel(configs=ROWS_CONFIGS)
def grouped_fp8_rows(
    A: Tensor["M K", e4m3],
    B: Tensor["E N K", e4m3],
    scale_a: Tensor["M", f32],
    scale_b: Tensor["E N", f32],
    starts: Tensor["R", i32],
    tile_starts: Tensor["S", i32],
    tile_experts: Tensor["T", i32],
    C: Tensor["M N", bf16],
    *,
    cfg: Grouped,
) -> None:
    """C[r, n] = scale_a[r] * scale_b[e, n] * sum over k of A[r, k] * B[e, n, k], which the matrix unit sums."""
    problem = GroupedContraction(A, B, C, starts, tile_starts, tile_experts, cfg.bm, (scale_a, scale_b))
    hopper_grouped(problem, cfg)
