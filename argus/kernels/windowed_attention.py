"""Attention forward on Hopper in a sliding window, and with a soft cap on scores: one proof for all windows."""

# ruff: noqa: UP037
# Reason: an extent in quotes is an extent.

from __future__ import annotations

from attrs import evolve

from argus.kernels.schedules.attention import Attention
from argus.kernels.schedules.attention_hopper import AttentionHopper, attention_hopper
from argus.language import Int, Tensor, bf16, f16, f32, kernel


def _configs(base: AttentionHopper) -> dict[str, AttentionHopper]:
    """In order of heads, and with the longest tiles first, for windows without a left end; both also capped."""
    wide = evolve(base, heads=64, zigzag=True)
    return {
        "window": base,
        "window_wide": wide,
        "capped": evolve(base, capped=True),
        "capped_wide": evolve(wide, capped=True),
    }


CONFIGS = {
    64: _configs(AttentionHopper(heads=0, warpgroups=3, boxes=1, skip_mask=False)),
    128: _configs(AttentionHopper(heads=0, skip_mask=False)),
    256: _configs(AttentionHopper(heads=0, bn=64, boxes=1, skip_mask=False)),
}
"""The configurations by head dimension."""


def choose(width: int, *, wide: bool, capped: bool) -> str:
    """The configuration of a head dimension. wide: later tiles see more keys, as in a window without a left end."""
    chosen = f"{'capped' if capped else 'window'}{'_wide' if wide else ''}"
    assert chosen in CONFIGS[width]
    return chosen


@kernel(configs=CONFIGS[64])
def windowed_64(
    Q: Tensor["B H S 64", bf16],
    K: Tensor["B G T 64", bf16],
    V: Tensor["B G T 64", bf16],
    O: Tensor["B H S 64", bf16],  # noqa: E741 reason: the output's name in every paper
    LSE: Tensor["B H S", f32],
    scale: Tensor["1", f32],
    inner: Tensor["1", f32],
    *,
    left: Int,
    right: Int,
    cfg: AttentionHopper,
) -> None:
    problem = Attention(Q, K, V, O, LSE, scale, True, True, (left, right), inner if cfg.capped else None)
    attention_hopper(problem, cfg)


@kernel(configs=CONFIGS[128])
def windowed_128(
    Q: Tensor["B H S 128", bf16],
    K: Tensor["B G T 128", bf16],
    V: Tensor["B G T 128", bf16],
    O: Tensor["B H S 128", bf16],  # noqa: E741 reason: the output's name in every paper
    LSE: Tensor["B H S", f32],
    scale: Tensor["1", f32],
    inner: Tensor["1", f32],
    *,
    left: Int,
    right: Int,
    cfg: AttentionHopper,
) -> None:
    problem = Attention(Q, K, V, O, LSE, scale, True, True, (left, right), inner if cfg.capped else None)
    attention_hopper(problem, cfg)


@kernel(configs=CONFIGS[256])
def windowed_256(
    Q: Tensor["B H S 256", bf16],
    K: Tensor["B G T 256", bf16],
    V: Tensor["B G T 256", bf16],
    O: Tensor["B H S 256", bf16],  # noqa: E741 reason: the output's name in every paper
    LSE: Tensor["B H S", f32],
    scale: Tensor["1", f32],
    inner: Tensor["1", f32],
    *,
    left: Int,
    right: Int,
    cfg: AttentionHopper,
) -> None:
    problem = Attention(Q, K, V, O, LSE, scale, True, True, (left, right), inner if cfg.capped else None)
    attention_hopper(problem, cfg)


@kernel(configs=CONFIGS[64])
def windowed_64_f16(
    Q: Tensor["B H S 64", f16],
    K: Tensor["B G T 64", f16],
    V: Tensor["B G T 64", f16],
    O: Tensor["B H S 64", f16],  # noqa: E741 reason: the output's name in every paper
    LSE: Tensor["B H S", f32],
    scale: Tensor["1", f32],
    inner: Tensor["1", f32],
    *,
    left: Int,
    right: Int,
    cfg: AttentionHopper,
) -> None:
    problem = Attention(Q, K, V, O, LSE, scale, True, True, (left, right), inner if cfg.capped else None)
    attention_hopper(problem, cfg)


@kernel(configs=CONFIGS[128])
def windowed_128_f16(
    Q: Tensor["B H S 128", f16],
    K: Tensor["B G T 128", f16],
    V: Tensor["B G T 128", f16],
    O: Tensor["B H S 128", f16],  # noqa: E741 reason: the output's name in every paper
    LSE: Tensor["B H S", f32],
    scale: Tensor["1", f32],
    inner: Tensor["1", f32],
    *,
    left: Int,
    right: Int,
    cfg: AttentionHopper,
) -> None:
    problem = Attention(Q, K, V, O, LSE, scale, True, True, (left, right), inner if cfg.capped else None)
    attention_hopper(problem, cfg)


@kernel(configs=CONFIGS[256])
def windowed_256_f16(
    Q: Tensor["B H S 256", f16],
    K: Tensor["B G T 256", f16],
    V: Tensor["B G T 256", f16],
    O: Tensor["B H S 256", f16],  # noqa: E741 reason: the output's name in every paper
    LSE: Tensor["B H S", f32],
    scale: Tensor["1", f32],
    inner: Tensor["1", f32],
    *,
    left: Int,
    right: Int,
    cfg: AttentionHopper,
) -> None:
    problem = Attention(Q, K, V, O, LSE, scale, True, True, (left, right), inner if cfg.capped else None)
    attention_hopper(problem, cfg)
