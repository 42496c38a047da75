"""Attention forward on Hopper of sequences of any lengths, stored back to back."""

# ruff: noqa: UP037
# Reason: an extent in quotes is an extent.

from __future__ import annotations

from argus.kernels.schedules.attention_hopper import AttentionHopper, attention_hopper
from argus.kernels.schedules.attention_packed import PackedAttention
from argus.language import Int, Tensor, bf16, f16, f32, i32, kernel

CONFIGS = {
    64: {
        "full": AttentionHopper(causal=False, heads=0, warpgroups=3, skip_mask=False),
        "causal": AttentionHopper(heads=0, warpgroups=3, skip_mask=False),
    },
    128: {
        "full": AttentionHopper(causal=False, heads=0, together=True, skip_mask=False),
        "causal": AttentionHopper(heads=0, skip_mask=False),
    },
}
"""The configurations by head dimension."""


@kernel(configs=CONFIGS[64])
def packed_64(
    Q: Tensor["H S 64", bf16],
    K: Tensor["G T 64", bf16],
    V: Tensor["G T 64", bf16],
    O: Tensor["S H 64", bf16],  # noqa: E741 reason: the output's name in every paper
    LSE: Tensor["H S", f32],
    scale: Tensor["1", f32],
    starts_q: Tensor["N", i32],
    starts_k: Tensor["N", i32],
    *,
    sequences: Int,
    longest: Int,
    cfg: AttentionHopper,
) -> None:
    problem = PackedAttention(Q, K, V, O, LSE, scale, starts_q, starts_k, sequences, longest, cfg.causal)
    attention_hopper(problem, cfg)


@kernel(configs=CONFIGS[128])
def packed_128(
    Q: Tensor["H S 128", bf16],
    K: Tensor["G T 128", bf16],
    V: Tensor["G T 128", bf16],
    O: Tensor["S H 128", bf16],  # noqa: E741 reason: the output's name in every paper
    LSE: Tensor["H S", f32],
    scale: Tensor["1", f32],
    starts_q: Tensor["N", i32],
    starts_k: Tensor["N", i32],
    *,
    sequences: Int,
    longest: Int,
    cfg: AttentionHopper,
) -> None:
    problem = PackedAttention(Q, K, V, O, LSE, scale, starts_q, starts_k, sequences, longest, cfg.causal)
    attention_hopper(problem, cfg)


@kernel(configs=CONFIGS[64])
def packed_64_f16(
    Q: Tensor["H S 64", f16],
    K: Tensor["G T 64", f16],
    V: Tensor["G T 64", f16],
    O: Tensor["S H 64", f16],  # noqa: E741 reason: the output's name in every paper
    LSE: Tensor["H S", f32],
    scale: Tensor["1", f32],
    starts_q: Tensor["N", i32],
    starts_k: Tensor["N", i32],
    *,
    sequences: Int,
    longest: Int,
    cfg: AttentionHopper,
) -> None:
    problem = PackedAttention(Q, K, V, O, LSE, scale, starts_q, starts_k, sequences, longest, cfg.causal)
    attention_hopper(problem, cfg)


@kernel(configs=CONFIGS[128])
def packed_128_f16(
    Q: Tensor["H S 128", f16],
    K: Tensor["G T 128", f16],
    V: Tensor["G T 128", f16],
    O: Tensor["S H 128", f16],  # noqa: E741 reason: the output's name in every paper
    LSE: Tensor["H S", f32],
    scale: Tensor["1", f32],
    starts_q: Tensor["N", i32],
    starts_k: Tensor["N", i32],
    *,
    sequences: Int,
    longest: Int,
    cfg: AttentionHopper,
) -> None:
    problem = PackedAttention(Q, K, V, O, LSE, scale, starts_q, starts_k, sequences, longest, cfg.causal)
    attention_hopper(problem, cfg)


FAMILIES = {
    "torch.bfloat16": {64: packed_64, 128: packed_128},
    "torch.float16": {64: packed_64_f16, 128: packed_128_f16},
}
"""The kernel families by torch's name of the element type and head dimension."""
