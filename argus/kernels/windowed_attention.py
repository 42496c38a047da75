"""Attention forward on Hopper in a sliding window, and with a soft cap on scores: one proof for all windows."""

# Without `from __future__ import annotations`: those that name a width and a type are evaluated where they stand.

from collections.abc import Mapping

from attrs import evolve

from argus.kernels.schedules.attention import Attention
from argus.kernels.schedules.attention_hopper import AttentionHopper, attention_hopper
from argus.language import DType, Int, Template, Tensor, bf16, f16, f32, kernel


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


def family(width: int, dtype: DType, name: str) -> Template:
    """The kernel for heads of so many elements of this type."""

    @kernel(configs=CONFIGS[width], name=name)
    def windowed(
        Q: Tensor[f"B H S {width}", dtype],
        K: Tensor[f"B G T {width}", dtype],
        V: Tensor[f"B G T {width}", dtype],
        O: Tensor[f"B H S {width}", dtype],  # noqa: E741 reason: the output's name in every paper
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

    return windowed


windowed_64, windowed_64_f16 = family(64, bf16, "windowed_64"), family(64, f16, "windowed_64_f16")
windowed_128, windowed_128_f16 = family(128, bf16, "windowed_128"), family(128, f16, "windowed_128_f16")
windowed_256, windowed_256_f16 = family(256, bf16, "windowed_256"), family(256, f16, "windowed_256_f16")
FAMILIES: Mapping[DType, Mapping[int, Template]] = {
    bf16: {64: windowed_64, 128: windowed_128, 256: windowed_256},
    f16: {64: windowed_64_f16, 128: windowed_128_f16, 256: windowed_256_f16},
}
"""The kernels by type and head dimension."""
