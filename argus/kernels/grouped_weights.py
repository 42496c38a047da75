"""Gradients of experts' matrices: D[e] = X^T G over the rows of expert e, of rows that are sorted by expert."""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# Reason: parameters are annotated with tensors of a variable type, by which one text serves all types.
# Without `from __future__ import annotations`: those that name a type are evaluated where they stand.

from collections.abc import Mapping

from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved
from argus.kernels.schedules.grouped_weights import Copying, ExpertRows, GroupedWeights
from argus.kernels.schedules.grouped_weights_cdna3 import cdna3_grouped_weights
from argus.kernels.schedules.grouped_weights_claims import BLOCK, claim_weights
from argus.language import DType, ProgramTemplate, Tensor, bf16, f16, i32, kernel, program, workspace

CONFIGS: dict[str, GroupedWeights | Cdna3Interleaved] = {
    "columns_256": GroupedWeights(),
    "columns_128": GroupedWeights(bn=128, stages=4),
    "interleaved": Cdna3Interleaved(),
    "interleaved_128": Cdna3Interleaved(bm=128, bn=128, agprs=False, free=True),
}


def family(dtype: DType) -> ProgramTemplate:
    """The program for operands of this type."""
    of_x, of_g, of_starts = Tensor["M K", dtype], Tensor["M N", dtype], Tensor["R", i32]
    last_x, last_g = Tensor[f"E {BLOCK} K", dtype], Tensor[f"E {BLOCK} N", dtype]
    of_d = Tensor["E K N", dtype]

    @kernel
    def copy_last_rows(X: of_x, G: of_g, starts: of_starts, P: last_x, Q: last_g, *, cfg: Copying) -> None:
        ExpertRows(X, G, starts, P.shape[0]).copy_last(P, Q, cfg)

    @kernel
    def multiply_rows(
        X: of_x,
        G: of_g,
        P: last_x,
        Q: last_g,
        starts: of_starts,
        D: of_d,
        *,
        cfg: GroupedWeights,
    ) -> None:
        ExpertRows(X, G, starts, D.shape[0]).multiply(P, Q, D, cfg)

    @kernel
    def multiply_in_place(X: of_x, G: of_g, starts: of_starts, D: of_d, *, cfg: Cdna3Interleaved) -> None:
        cdna3_grouped_weights(X, G, starts, D, cfg)

    @program(configs=CONFIGS)
    def grouped_weights(
        X: of_x, G: of_g, starts: of_starts, D: of_d, *, cfg: GroupedWeights | Cdna3Interleaved
    ) -> None:
        match cfg:
            case GroupedWeights():
                P, Q = (workspace(dtype, (D.shape[0], BLOCK, each.shape[1])) for each in (X, G))
                copy_last_rows(X, G, starts, P, Q, cfg=Copying())
                multiply_rows(X, G, P, Q, starts, D, cfg=cfg)
            case Cdna3Interleaved():
                multiply_in_place(X, G, starts, D, cfg=cfg)
        claim_weights(X, G, starts, D)

    return grouped_weights


FAMILIES: Mapping[DType, ProgramTemplate] = {dtype: family(dtype) for dtype in (bf16, f16)}
"""The programs by type."""
