"""Attention forward on Hopper of sequences of any lengths, stored back to back."""

# Without `from __future__ import annotations`: those that name a width and a type are evaluated where they stand.

from collections.abc import Mapping

from argus.kernels.schedules.attention_hopper import AttentionHopper, attention_hopper
from argus.kernels.schedules.attention_packed import PackedAttention
from argus.language import DType, Int, Template, Tensor, bf16, f16, f32, i32, kernel

CONFIGS = {
    64: {
        "full": AttentionHopper(causal=False, heads=0, zigzag=True, warpgroups=3),
        "causal": AttentionHopper(zigzag=True, warpgroups=3),
    },
    128: {
        "full": AttentionHopper(causal=False, heads=0, zigzag=True, together=True),
        "causal": AttentionHopper(heads=16),
    },
    256: {
        "full": AttentionHopper(bn=80, causal=False, heads=0, zigzag=True, together=True),
        "causal": AttentionHopper(bn=80, heads=8, zigzag=True),
    },
}
"""The configurations by head dimension."""


def family(width: int, dtype: DType, name: str) -> Template:
    """The kernel for heads of so many elements of this type."""

    @kernel(configs=CONFIGS[width], name=name)
    def packed(
        Q: Tensor[f"H S {width}", dtype],
        K: Tensor[f"G T {width}", dtype],
        V: Tensor[f"G T {width}", dtype],
        O: Tensor[f"S H {width}", dtype],  # noqa: E741 reason: the output's name in every paper
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

    return packed


packed_64, packed_64_f16 = family(64, bf16, "packed_64"), family(64, f16, "packed_64_f16")
packed_128, packed_128_f16 = family(128, bf16, "packed_128"), family(128, f16, "packed_128_f16")
packed_256, packed_256_f16 = family(256, bf16, "packed_256"), family(256, f16, "packed_256_f16")
FAMILIES: Mapping[DType, Mapping[int, Template]] = {
    bf16: {64: packed_64, 128: packed_128, 256: packed_256},
    f16: {64: packed_64_f16, 128: packed_128_f16, 256: packed_256_f16},
}
"""The kernels by type and head dimension."""
