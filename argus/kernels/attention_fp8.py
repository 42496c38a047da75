"""Attention forward of 8-bit elements on Hopper, with a factor for each head: a program of two launches."""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# Reason: parameters are annotated with tensors of a variable number of elements, by which one text serves all.
# Without `from __future__ import annotations`, since such annotations are evaluated where they stand.

from collections.abc import Mapping
from functools import lru_cache

from attrs import evolve, field, frozen

from argus.kernels.schedules.attention import Attention, Scores, Seen, claim_values
from argus.kernels.schedules.attention_hopper import SECTION, AttentionHopper, attention_hopper
from argus.kernels.schedules.attention_hopper import choose as choose_config
from argus.kernels.schedules.turned_values import TurnedValues, turn_values
from argus.language import ProgramTemplate, Tensor, bf16, ceil_div, e4m3, f32, kernel, program, workspace


@frozen
class AttentionFp8:
    """The configurations of the two launches."""

    attention: AttentionHopper
    values: TurnedValues = field(factory=TurnedValues)


_CAUSAL = AttentionHopper(heads=64, zigzag=True, together=True, tiles_ahead=1)
_FULL = AttentionHopper(causal=False, together=True, tiles_ahead=1)


def _configs(full: AttentionHopper, causal: AttentionHopper) -> dict[str, AttentionFp8]:
    """Causal ones are for as many queries as keys at most, and for more."""
    every = {"full": full, "causal": causal, "causal_masked_rows": evolve(causal, skip_mask=False)}
    return {name: AttentionFp8(each) for name, each in every.items()}


CONFIGS = {
    64: _configs(evolve(_FULL, bn=160, warpgroups=3, boxes=1), evolve(_CAUSAL, warpgroups=3, boxes=1)),
    128: {
        **_configs(evolve(_FULL, bn=192), _CAUSAL),
        "causal_section": AttentionFp8(evolve(_CAUSAL, heads=SECTION)),
        "causal_few": AttentionFp8(evolve(_CAUSAL, heads=4, zigzag=False)),
    },
    256: _configs(_FULL, _CAUSAL),
}
"""The configurations by head dimension."""


@lru_cache(maxsize=1 << 10)
def choose(width: int, queries: int, keys: int, pairs: int, *, causal: bool) -> str:
    """The configuration of a head dimension, for pairs of a head and a sequence."""
    configs = {name: each.attention for name, each in CONFIGS[width].items()}
    return choose_config(configs, queries, keys, pairs, causal=causal)


def family(width: int) -> ProgramTemplate:
    """The program for heads of so many elements."""
    of_queries, of_keys = Tensor[f"B H S {width}", e4m3], Tensor[f"B G T {width}", e4m3]
    turned, out = Tensor[f"B G {width} P", e4m3], Tensor[f"B H S {width}", bf16]
    each_query, each_key, sums, number = Tensor["B H", f32], Tensor["B G", f32], Tensor["B H S", f32], Tensor["1", f32]

    @kernel
    def attention_fp8_values(V: of_keys, W: turned, *, cfg: TurnedValues) -> None:
        turn_values(V, W, cfg)

    @kernel
    def attention_fp8_queries(
        Q: of_queries,
        K: of_keys,
        W: turned,
        scale: number,
        scale_q: each_query,
        scale_k: each_key,
        scale_v: each_key,
        O: out,  # noqa: E741 reason: the output's name in every paper
        LSE: sums,
        *,
        cfg: AttentionHopper,
    ) -> None:
        descale = scale_q, scale_k, scale_v
        problem = Attention(Q, K, W, O, LSE, scale, cfg.causal, cfg.masked_rows, descale=descale, padded=cfg.bn)
        attention_hopper(problem, cfg)

    @program(configs=CONFIGS[width])
    def attention_fp8(
        Q: of_queries,
        K: of_keys,
        V: of_keys,
        scale: number,
        scale_q: each_query,
        scale_k: each_key,
        scale_v: each_key,
        O: out,  # noqa: E741 reason: as above
        LSE: sums,
        *,
        cfg: AttentionFp8,
    ) -> None:
        B, G, T, _ = V.shape
        bn = cfg.attention.bn
        W = workspace(e4m3, (B, G, width, ceil_div(T, bn) * bn))
        attention_fp8_values(V, W, cfg=cfg.values)
        attention_fp8_queries(Q, K, W, scale, scale_q, scale_k, scale_v, O, LSE, cfg=cfg.attention)
        seen = Seen(Q.shape[2], T, cfg.attention.causal, cfg.attention.masked_rows)
        claim_values(Scores(Q, K, V, scale, (scale_q, scale_k, scale_v)), O, LSE, seen)

    return attention_fp8


FAMILIES: Mapping[int, ProgramTemplate] = {width: family(width) for width in CONFIGS}
"""The programs by head dimension."""
