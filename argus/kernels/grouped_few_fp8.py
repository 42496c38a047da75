"""Grouped GEMM of few rows of each expert, of e4m3 with scales of blocks: per 1 x 128 of the rows, 128 x 128 of B."""

# ruff: noqa: UP037
# Reason: a name in quotes is the name of a size.

from __future__ import annotations

from argus.kernels.schedules.grouped_few import MaskedExperts, PackedExperts
from argus.kernels.schedules.grouped_few_blocks import (
    GroupedFewBlocks,
    hopper_grouped_few_blocks,
    scaled_product_of,
)
from argus.language import Tensor, bf16, e4m3, f32, i32, kernel

CONFIGS = {
    "rows_16": GroupedFewBlocks(16),
    "rows_32": GroupedFewBlocks(32, 4, 128, 2),
    "rows_64": GroupedFewBlocks(64, resident=2),
}


@kernel(configs=CONFIGS)
def packed_fp8_blocks(
    A: Tensor["M K", e4m3],
    B: Tensor["E N K", e4m3],
    scale_a: Tensor["KB M", f32],
    scale_b: Tensor["E NB KB", f32],
    starts: Tensor["R", i32],
    C: Tensor["M N", bf16],
    *,
    cfg: GroupedFewBlocks,
) -> None:
    """C[r, n] = sum over k of A[r, k] scale_a[k // 128, r] * B[e, n, k] scale_b[e, n // 128, k // 128]."""
    problem, scales = PackedExperts(A, B, C, starts), (scale_a, scale_b)
    hopper_grouped_few_blocks(problem, scales, cfg)
    problem.claim(scaled_product_of(problem, scales))


@kernel(configs=CONFIGS)
def masked_fp8_blocks(
    A: Tensor["E R K", e4m3],
    B: Tensor["E N K", e4m3],
    scale_a: Tensor["E KB R", f32],
    scale_b: Tensor["E NB KB", f32],
    counts: Tensor["E", i32],
    C: Tensor["E R N", bf16],
    *,
    cfg: GroupedFewBlocks,
) -> None:
    """The same with rows of their own for each expert: C[e, r, n], for r < counts[e]; scale_a[e, k // 128, r]."""
    problem, scales = MaskedExperts(A, B, C, counts), (scale_a, scale_b)
    hopper_grouped_few_blocks(problem, scales, cfg)
    problem.claim(scaled_product_of(problem, scales))
