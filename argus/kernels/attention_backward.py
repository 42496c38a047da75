"""Attention's gradients on Hopper: a program for each head dimension and type."""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# Reason: parameters are annotated with tensors of a variable type, by which one text serves all types.
# Without `from __future__ import annotations`, since such annotations are evaluated where they stand.

from collections.abc import Mapping

from attrs import evolve, field, frozen

from argus.kernels.schedules.attention_backward import AttentionBackward
from argus.kernels.schedules.attention_backward_at_once import (
    BackwardAtOnce,
    BackwardSums,
    backward_at_once,
    clear_sums,
    round_sums,
)
from argus.kernels.schedules.attention_backward_formulas import Inputs, claim_queries
from argus.kernels.schedules.attention_backward_keys import BackwardKeys, backward_keys
from argus.kernels.schedules.attention_backward_queries import BackwardQueries, backward_queries
from argus.kernels.schedules.attention_backward_rows import BackwardRows, backward_rows
from argus.language import DType, ProgramTemplate, Tensor, bf16, ceil_div, f16, f32, kernel, program, workspace


@frozen
class Backward:
    """The configurations of the launches. values: of those of values; None where `keys` computes both.

    added: of the one that computes all three, and adds up those of queries, in place of `keys` and `queries`.
    """

    causal: bool = False
    rows: BackwardRows = field(factory=BackwardRows)
    values: BackwardKeys | None = None
    keys: BackwardKeys = field(factory=BackwardKeys)
    queries: BackwardQueries = field(factory=BackwardQueries)
    added: BackwardAtOnce | None = None


CONFIGS = {
    "full": Backward(),
    "causal": Backward(causal=True),
    "causal_short": Backward(causal=True, keys=BackwardKeys(heads=True)),
}
ADDED = {
    "full_added": Backward(added=BackwardAtOnce()),
    "causal_added": Backward(causal=True, added=BackwardAtOnce()),
    "causal_short_added": Backward(causal=True, added=BackwardAtOnce(heads=True)),
}
"""With the gradients of queries added up in memory: in an order that differs from run to run."""
_VALUES, _KEYS = BackwardKeys(of="values"), BackwardKeys(bm=32, of="keys")
"""For 256 elements a head, of which the gradients of keys and values do not fit the registers together."""


_SHORT = 2048
"""Keys up to which the tiles of one head follow each other."""


def choose(keys: int, group: int, *, causal: bool, added: bool) -> str:
    """The configuration for so many keys, of which each head serves a group of heads of queries.

    added: whether the gradients of queries are added up in memory.
    """
    if not causal:
        return "full_added" if added else "full"
    if added:
        return "causal_short_added" if group == 1 or keys <= _SHORT else "causal_added"
    return "causal" if keys > _SHORT else "causal_short"


def configs(width: int) -> Mapping[str, Backward]:
    """The configurations for heads of so many elements."""
    return {**CONFIGS, **ADDED} if width <= 128 else {name: _wide(each) for name, each in CONFIGS.items()}


def _wide(like: Backward) -> Backward:
    values, keys = (evolve(each, heads=like.keys.heads) for each in (_VALUES, _KEYS))
    return Backward(like.causal, values=values, keys=keys, queries=BackwardQueries(bn=32, stages=2))


def family(width: int, dtype: DType) -> ProgramTemplate:
    """The program for heads of so many elements of this type."""
    of_queries, of_keys = Tensor[f"B H S {width}", dtype], Tensor[f"B G T {width}", dtype]
    sums, padded, number = Tensor["B H S", f32], Tensor["B H R", f32], Tensor["1", f32]
    added = Tensor[f"B H R {width}", f32]

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

    @kernel
    def attention_backward_clear(sums: added, *, cfg: BackwardSums) -> None:
        clear_sums(sums, cfg)

    @kernel
    def attention_backward_at_once(
        Q: of_queries,
        K: of_keys,
        V: of_keys,
        dO: of_queries,
        L: padded,
        Delta: padded,
        scale: number,
        sums: added,
        dK: of_keys,
        dV: of_keys,
        *,
        cfg: BackwardAtOnce,
        causal: bool,
    ) -> None:
        backward_at_once(AttentionBackward(Q, K, V, dO, L, Delta, scale, causal), sums, dK, dV, cfg)

    @kernel
    def attention_backward_round(sums: added, scale: number, dQ: of_queries, *, cfg: BackwardSums) -> None:
        round_sums(sums, scale, dQ, cfg)

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
        B, H, S, D = Q.shape
        R = ceil_div(S, cfg.rows.rows) * cfg.rows.rows
        L, Delta = workspace(f32, (B, H, R)), workspace(f32, (B, H, R))
        attention_backward_rows(O, dO, LSE, L, Delta, cfg=cfg.rows)
        if cfg.added is not None:
            total = workspace(f32, (B, H, R, D))
            attention_backward_clear(total, cfg=cfg.added.sums)
            attention_backward_at_once(Q, K, V, dO, L, Delta, scale, total, dK, dV, cfg=cfg.added, causal=cfg.causal)
            attention_backward_round(total, scale, dQ, cfg=cfg.added.sums)
            claim_queries(Inputs(Q, K, V, O, dO, LSE, scale, cfg.causal), dQ)
            return
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
