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
    "causal": AttentionHopper(heads=64, zigzag=True),
    "causal_few": AttentionHopper(heads=4),
}
CONFIGS_64 = {
    "full": AttentionHopper(bn=192, causal=False, together=True),
    "causal": AttentionHopper(heads=64, zigzag=True),
    "causal_few": AttentionHopper(heads=4),
}


_ABOUT = 0.01
"""A difference in evenness that a better use of the L2 cache outweighs."""


@lru_cache(maxsize=1 << 10)
def choose(width: int, queries: int, pairs: int, *, causal: bool) -> str:
    """The configuration of a head dimension for pairs of a head and a sequence.

    Of those that divide work about as evenly as any, the one with the fewest heads at a time in the L2 cache.
    """
    configs = CONFIGS_64 if width == 64 else CONFIGS_128
    fit = {name: cfg for name, cfg in configs.items() if cfg.causal == causal}
    evenness = {name: balance(cfg, -(-queries // cfg.bm), pairs) for name, cfg in fit.items()}
    best = max(evenness.values())
    even = [name for name in fit if evenness[name] >= best - _ABOUT]
    return min(even, key=lambda name: fit[name].heads)


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
