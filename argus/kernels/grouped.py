"""Grouped GEMM: rows of A sorted by expert, each multiplied by its own expert's matrix B[e]^T, for any numbers of rows.

A kernel's name gives the layout of B as in `argus.kernels.layouts`: `nt` is (experts, N, K), `nn` (experts, K, N).
"""

# Without `from __future__ import annotations`: those that name a type are evaluated where they stand.

from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved
from argus.kernels.schedules.grouped import Grouped, GroupedContraction
from argus.kernels.schedules.grouped_by_target import multiply
from argus.kernels.schedules.grouped_heights import GroupedHeights
from argus.language import DType, Template, Tensor, bf16, f16, i32, kernel

CONFIGS: dict[str, Grouped | Cdna3Interleaved] = {
    "columns_256": Grouped(),
    "by_rows": Grouped(group=0),
    "columns_128": Grouped(bn=128, stages=6),
    "heights": GroupedHeights(),
    "heights_by_rows": GroupedHeights(group=0),
    "interleaved": Cdna3Interleaved(far=True),
    "interleaved_128": Cdna3Interleaved(bm=128, bn=128, agprs=False, far=True, free=True),
    "interleaved_64": Cdna3Interleaved(bm=64, bn=128, ordered=False, agprs=False, far=True),
}


def family(name: str, dtype: DType, *, transposed: bool) -> Template:
    """The kernel for operands of this type. transposed: B is (experts, K, N)."""

    @kernel(configs=CONFIGS, name=name)
    def grouped(
        A: Tensor["M K", dtype],
        B: Tensor["E K N" if transposed else "E N K", dtype],
        starts: Tensor["R", i32],
        tile_starts: Tensor["S", i32],
        tile_experts: Tensor["T", i32],
        C: Tensor["M N", dtype],
        *,
        cfg: Grouped | Cdna3Interleaved,
    ) -> None:
        multiply(GroupedContraction(A, B.mT if transposed else B, C, starts, tile_starts, tile_experts, cfg.bm), cfg)

    return grouped


grouped_nt = family("grouped_nt", bf16, transposed=False)
grouped_nn = family("grouped_nn", bf16, transposed=True)
grouped_nt_f16 = family("grouped_nt_f16", f16, transposed=False)
grouped_nn_f16 = family("grouped_nn_f16", f16, transposed=True)
