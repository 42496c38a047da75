"""Attention's gradients on Hopper: a program of three launches for each head dimension and type."""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# Reason: parameters are annotated with tensors of a variable type, by which one text serves all types.
# Without `from __future__ import annotations`, since such annotations are evaluated where they stand.

from collections.abc import Mapping

from attrs import field, frozen

from argus.kernels.schedules.attention_backward import AttentionBackward
from argus.kernels.schedules.attention_backward_keys import BackwardKeys, backward_keys
from argus.kernels.schedules.attention_backward_queries import BackwardQueries, backward_queries
from argus.kernels.schedules.attention_backward_rows import BackwardRows, backward_rows
from argus.language import DType, ProgramTemplate, Tensor, bf16, ceil_div, f16, f32, kernel, program, workspace


@frozen
class Backward:
    """The configurations of the three launches."""

    causal: bool = False
    rows: BackwardRows = field(factory=BackwardRows)
    keys: BackwardKeys = field(factory=BackwardKeys)
    queries: BackwardQueries = field(factory=BackwardQueries)


CONFIGS = {"full": Backward(), "causal": Backward(causal=True)}


def family(width: int, dtype: DType) -> ProgramTemplate:
    """The program for heads of so many elements of this type."""
    of_queries, of_keys = Tensor[f"B H S {width}", dtype], Tensor[f"B G T {width}", dtype]
    sums, padded, number = Tensor["B H S", f32], Tensor["B H R", f32], Tensor["1", f32]

    @kernel
    def attention_backward_rows(
        O: of_queries,  # noqa: E741 reason: the output's name in every paper
        dO: of_queries,
        LSE: sums,
        L: padded,
        Delta: padded,
        *,
        cfg: BackwardRows,
    ) -> None:
        backward_rows(O, dO, LSE, L, Delta, cfg)

    @kernel
    def attention_backward_keys(
        Q: of_queries,
        K: of_keys,
        V: of_keys,
        dO: of_queries,
        L: padded,
        Delta: padded,
        scale: number,
        dK: of_keys,
        dV: of_keys,
        *,
        cfg: BackwardKeys,
        causal: bool,
    ) -> None:
        backward_keys(AttentionBackward(Q, K, V, dO, L, Delta, scale, causal), dK, dV, cfg)

    @kernel
    def attention_backward_queries(
        Q: of_queries,
        K: of_keys,
        V: of_keys,
        dO: of_queries,
        L: padded,
        Delta: padded,
        scale: number,
        dQ: of_queries,
        *,
        cfg: BackwardQueries,
        causal: bool,
    ) -> None:
        backward_queries(AttentionBackward(Q, K, V, dO, L, Delta, scale, causal), dQ, cfg)

    @program(configs=CONFIGS)
    def attention_backward(
        Q: of_queries,
        K: of_keys,
        V: of_keys,
        O: of_queries,  # noqa: E741 reason: as above
        dO: of_queries,
        LSE: sums,
        scale: number,
        dQ: of_queries,
        dK: of_keys,
        dV: of_keys,
        *,
        cfg: Backward,
    ) -> None:
        B, H, S, _ = Q.shape
        R = ceil_div(S, cfg.rows.rows) * cfg.rows.rows
        L, Delta = workspace(f32, (B, H, R)), workspace(f32, (B, H, R))
        attention_backward_rows(O, dO, LSE, L, Delta, cfg=cfg.rows)
        attention_backward_keys(Q, K, V, dO, L, Delta, scale, dK, dV, cfg=cfg.keys, causal=cfg.causal)
        attention_backward_queries(Q, K, V, dO, L, Delta, scale, dQ, cfg=cfg.queries, causal=cfg.causal)

    return attention_backward


FAMILIES: Mapping[DType, Mapping[int, ProgramTemplate]] = {
    dtype: {width: family(width, dtype) for width in (64, 128)} for dtype in (bf16, f16)
}
"""The programs by type and head dimension."""
