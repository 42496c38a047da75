"""Attention forward on Hopper, for every number of queries and keys: one claim for all schedules."""

# ruff: noqa: UP037
# Reason: an extent in quotes is an extent.

from __future__ import annotations

from functools import lru_cache

from argus.kernels.schedules.attention import Attention
from argus.kernels.schedules.attention_hopper import AttentionHopper, attention_hopper, balance
from argus.language import Tensor, bf16, f32, kernel

CONFIGS_128 = {
    "full": AttentionHopper(causal=False, together=True),
    "causal": AttentionHopper(heads=32),
    "causal_few": AttentionHopper(heads=4),
}
CONFIGS_64 = {
    "full": AttentionHopper(bn=192, causal=False, together=True),
    "causal": AttentionHopper(heads=32),
    "causal_few": AttentionHopper(heads=4),
}


@lru_cache(maxsize=1 << 10)
def choose(width: int, queries: int, pairs: int, *, causal: bool) -> str:
    """The configuration of a head dimension that divides work most evenly, for pairs of a head and a sequence."""
    configs = CONFIGS_64 if width == 64 else CONFIGS_128
    fit = {name: cfg for name, cfg in configs.items() if cfg.causal == causal}
    return max(fit, key=lambda name: balance(fit[name], -(-queries // fit[name].bm), pairs))


@kernel(configs=CONFIGS_128)
def attention_128(
    Q: Tensor["B H S 128", bf16],
    K: Tensor["B G T 128", bf16],
    V: Tensor["B G T 128", bf16],
    O: Tensor["B H S 128", bf16],  # noqa: E741 reason: the output's name in every paper
    LSE: Tensor["B H S", f32],
    scale: Tensor["1", f32],
    *,
    cfg: AttentionHopper,
) -> None:
    attention_hopper(Attention(Q, K, V, O, LSE, scale, cfg.causal), cfg)


@kernel(configs=CONFIGS_64)
def attention_64(
    Q: Tensor["B H S 64", bf16],
    K: Tensor["B G T 64", bf16],
    V: Tensor["B G T 64", bf16],
    O: Tensor["B H S 64", bf16],  # noqa: E741 reason: as above
    LSE: Tensor["B H S", f32],
    scale: Tensor["1", f32],
    *,
    cfg: AttentionHopper,
) -> None:
    attention_hopper(Attention(Q, K, V, O, LSE, scale, cfg.causal), cfg)
