"""Attention's gradients on Hopper: a program for each head dimension and type."""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# Reason: parameters are annotated with tensors of a variable type, by which one text serves all types.
# Without `from __future__ import annotations`, since such annotations are evaluated where they stand.

from collections.abc import Mapping

from attrs import evolve, field, frozen

from argus.kernels.schedules.attention_backward import AttentionBackward
from argus.kernels.schedules.attention_backward_keys import BackwardKeys, backward_keys
from argus.kernels.schedules.attention_backward_queries import BackwardQueries, backward_queries
from argus.kernels.schedules.attention_backward_rows import BackwardRows, backward_rows
from argus.language import DType, ProgramTemplate, Tensor, bf16, ceil_div, f16, f32, kernel, program, workspace


@frozen
class Backward:
    """The configurations of the launches. values: of those of values; None where `keys` computes both."""

    causal: bool = False
    rows: BackwardRows = field(factory=BackwardRows)
    values: BackwardKeys | None = None
    keys: BackwardKeys = field(factory=BackwardKeys)
    queries: BackwardQueries = field(factory=BackwardQueries)


CONFIGS = {
    "full": Backward(),
    "causal": Backward(causal=True),
    "causal_short": Backward(causal=True, keys=BackwardKeys(heads=True)),
}
_VALUES, _KEYS = BackwardKeys(of="values"), BackwardKeys(bm=32, of="keys")
"""For 256 elements a head, of which the gradients of keys and values do not fit the registers together."""


def configs(width: int) -> Mapping[str, Backward]:
    """The configurations for heads of so many elements."""
    return CONFIGS if width <= 128 else {name: _wide(each) for name, each in CONFIGS.items()}


def _wide(like: Backward) -> Backward:
    values, keys = (evolve(each, heads=like.keys.heads) for each in (_VALUES, _KEYS))
    return Backward(like.causal, values=values, keys=keys, queries=BackwardQueries(bn=32, stages=2))


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
    def attention_backward_values(
        Q: of_queries,
        K: of_keys,
        V: of_keys,
        dO: of_queries,
        L: padded,
        Delta: padded,
        scale: number,
        dV: of_keys,
        *,
        cfg: BackwardKeys,
        causal: bool,
    ) -> None:
        backward_keys(AttentionBackward(Q, K, V, dO, L, Delta, scale, causal), None, dV, cfg)

    @kernel
    def attention_backward_keys_alone(
        Q: of_queries,
        K: of_keys,
        V: of_keys,
        dO: of_queries,
        L: padded,
        Delta: padded,
        scale: number,
        dK: of_keys,
        *,
        cfg: BackwardKeys,
        causal: bool,
    ) -> None:
        backward_keys(AttentionBackward(Q, K, V, dO, L, Delta, scale, causal), dK, None, cfg)

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

    @program(configs=configs(width))
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
        if cfg.values is None:
            attention_backward_keys(Q, K, V, dO, L, Delta, scale, dK, dV, cfg=cfg.keys, causal=cfg.causal)
        else:
            attention_backward_values(Q, K, V, dO, L, Delta, scale, dV, cfg=cfg.values, causal=cfg.causal)
            attention_backward_keys_alone(Q, K, V, dO, L, Delta, scale, dK, cfg=cfg.keys, causal=cfg.causal)
        attention_backward_queries(Q, K, V, dO, L, Delta, scale, dQ, cfg=cfg.queries, causal=cfg.causal)

    return attention_backward


FAMILIES: Mapping[DType, Mapping[int, ProgramTemplate]] = {
    dtype: {width: family(width, dtype) for width in (64, 128, 256)} for dtype in (bf16, f16)
}
"""The programs by type and head dimension."""
