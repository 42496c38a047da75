"""Grouped GEMM of few rows of each expert: rows sorted by expert, or a matrix of rows for each with a number of them.

A kernel's name gives the layout of B as in `argus.kernels.layouts`: `nt` is (experts, N, K), `nn` (experts, K, N).
"""

# Without `from __future__ import annotations`: those that name a type are evaluated where they stand.

from argus.kernels.schedules.grouped_few import GroupedFew, MaskedExperts, PackedExperts, hopper_grouped_few, product_of
from argus.language import DType, Template, Tensor, bf16, f16, i32, kernel

CONFIGS = {
    "rows_8": GroupedFew(8, 256, 4, checks=True),
    "rows_16": GroupedFew(16, 64, 8, 128, checks=True),
    "rows_32": GroupedFew(32, 64, 8, 128),
    "rows_64": GroupedFew(64, 64, 8, 128),
}


def multiply(problem: PackedExperts | MaskedExperts, cfg: GroupedFew) -> None:
    """Trace the schedule, and claim the value of C."""
    hopper_grouped_few(problem, cfg)
    problem.claim(product_of(problem.A, problem.B))


def packed(name: str, dtype: DType, *, transposed: bool) -> Template:
    """The kernel for rows sorted by expert. transposed: B is (experts, K, N)."""

    @kernel(configs=CONFIGS, name=name)
    def few(
        A: Tensor["M K", dtype],
        B: Tensor["E K N" if transposed else "E N K", dtype],
        starts: Tensor["R", i32],
        C: Tensor["M N", dtype],
        *,
        cfg: GroupedFew,
    ) -> None:
        multiply(PackedExperts(A, B.mT if transposed else B, C, starts), cfg)

    return few


def masked(name: str, dtype: DType, *, transposed: bool) -> Template:
    """The kernel for a matrix of rows for each expert, of which the first ones count."""

    @kernel(configs=CONFIGS, name=name)
    def few(
        A: Tensor["E R K", dtype],
        B: Tensor["E K N" if transposed else "E N K", dtype],
        counts: Tensor["E", i32],
        C: Tensor["E R N", dtype],
        *,
        cfg: GroupedFew,
    ) -> None:
        multiply(MaskedExperts(A, B.mT if transposed else B, C, counts), cfg)

    return few


packed_nt = packed("packed_nt", bf16, transposed=False)
packed_nn = packed("packed_nn", bf16, transposed=True)
packed_nt_f16 = packed("packed_nt_f16", f16, transposed=False)
packed_nn_f16 = packed("packed_nn_f16", f16, transposed=True)
masked_nt = masked("masked_nt", bf16, transposed=False)
masked_nn = masked("masked_nn", bf16, transposed=True)
masked_nt_f16 = masked("masked_nt_f16", f16, transposed=False)
masked_nn_f16 = masked("masked_nn_f16", f16, transposed=True)
