"""Attention forward for every number of queries and keys: one claim for all schedules."""

# Without `from __future__ import annotations`: those that name a width and a type are evaluated where they stand.

from collections.abc import Mapping
from functools import lru_cache
from typing import assert_never

from attrs import evolve

from argus.kernels.schedules.attention import Attention
from argus.kernels.schedules.attention_cdna3 import AttentionCdna3, attention_cdna3
from argus.kernels.schedules.attention_hopper import SECTION, AttentionHopper, attention_hopper
from argus.kernels.schedules.attention_hopper import choose as choose_config
from argus.language import DType, Template, Tensor, bf16, f16, f32, kernel

_NARROW, _WIDE = AttentionHopper(warpgroups=3, boxes=1, tiles_ahead=1), AttentionHopper(tiles_ahead=1)
CONFIGS = {
    64: {
        "full": evolve(_NARROW, causal=False),
        "causal": evolve(_NARROW, heads=64, zigzag=True),
        "causal_few": evolve(_NARROW, heads=4),
        "causal_masked_rows": evolve(_NARROW, heads=64, zigzag=True, skip_mask=False),
    },
    128: {
        "full": evolve(_WIDE, causal=False, together=True),
        "causal": evolve(_WIDE, heads=64, zigzag=True),
        "causal_section": evolve(_WIDE, heads=SECTION, zigzag=True),
        "causal_few": evolve(_WIDE, heads=4),
        "causal_masked_rows": evolve(_WIDE, heads=64, zigzag=True, skip_mask=False),
    },
    256: {
        "full": AttentionHopper(bn=64, causal=False, together=True, boxes=1),
        "causal": AttentionHopper(bn=64, heads=64, zigzag=True, boxes=1, skip_mask=False),
        "causal_few": AttentionHopper(bn=64, heads=4, boxes=1, skip_mask=False),
    },
}
"""The configurations for Hopper by head dimension."""
CDNA3 = {
    64: {"cdna3": AttentionCdna3(bn=128, causal=False), "cdna3_causal": AttentionCdna3(bn=128)},
    128: {"cdna3": AttentionCdna3(causal=False, slices=4), "cdna3_causal": AttentionCdna3()},
    256: {"cdna3": AttentionCdna3(bn=32, causal=False, mfma=16), "cdna3_causal": AttentionCdna3(bn=32, mfma=16)},
}
"""The configurations for MI300X by head dimension."""
Config = AttentionHopper | AttentionCdna3


@lru_cache(maxsize=1 << 10)
def choose(width: int, queries: int, keys: int, pairs: int, *, causal: bool) -> str:
    """The configuration for Hopper of a head dimension, for pairs of a head and a sequence."""
    return choose_config(CONFIGS[width], queries, keys, pairs, causal=causal)


def attend(problem: Attention, cfg: Config) -> None:
    """Trace the schedule of a configuration."""
    match cfg:
        case AttentionHopper():
            attention_hopper(problem, cfg)
        case AttentionCdna3():
            attention_cdna3(problem, cfg)
        case _:
            assert_never(cfg)


def family(width: int, dtype: DType, name: str) -> Template:
    """The kernel for heads of so many elements of this type."""

    @kernel(configs=CONFIGS[width] | CDNA3[width], name=name)
    def attention(
        Q: Tensor[f"B H S {width}", dtype],
        K: Tensor[f"B G T {width}", dtype],
        V: Tensor[f"B G T {width}", dtype],
        O: Tensor[f"B H S {width}", dtype],  # noqa: E741 reason: the output's name in every paper
        LSE: Tensor["B H S", f32],
        scale: Tensor["1", f32],
        *,
        cfg: Config,
    ) -> None:
        attend(Attention(Q, K, V, O, LSE, scale, cfg.causal, cfg.masked_rows), cfg)

    return attention


attention_64, attention_64_f16 = family(64, bf16, "attention_64"), family(64, f16, "attention_64_f16")
attention_128, attention_128_f16 = family(128, bf16, "attention_128"), family(128, f16, "attention_128_f16")
attention_256, attention_256_f16 = family(256, bf16, "attention_256"), family(256, f16, "attention_256_f16")
FAMILIES: Mapping[DType, Mapping[int, Template]] = {
    bf16: {64: attention_64, 128: attention_128, 256: attention_256},
    f16: {64: attention_64_f16, 128: attention_128_f16, 256: attention_256_f16},
}
"""The kernels by type and head dimension."""
