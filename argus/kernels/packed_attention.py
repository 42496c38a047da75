"""Attention forward on Hopper of sequences of any lengths, stored back to back."""

# Without `from __future__ import annotations`: those that name a width and a type are evaluated where they stand.

from collections.abc import Mapping

from attrs import evolve

from argus.kernels.schedules.attention_hopper import AttentionHopper, attention_hopper
from argus.kernels.schedules.attention_packed import PackedAttention
from argus.language import DType, Int, Template, Tensor, bf16, f16, f32, i32, kernel

_NARROW, _WIDE = AttentionHopper(warpgroups=3, boxes=1, tiles_ahead=1), AttentionHopper(boxes=1, tiles_ahead=1)
_WIDEST = AttentionHopper(bn=80, boxes=0)
CONFIGS = {
    64: {
        "full": evolve(_NARROW, causal=False),
        "causal": evolve(_NARROW, zigzag=True),
        "full_short": evolve(_NARROW, causal=False, heads=0, zigzag=True, by_segments=False),
        "causal_short": evolve(_NARROW, zigzag=True, by_segments=False),
    },
    128: {
        "full": evolve(_WIDE, causal=False, together=True),
        "causal": evolve(_WIDE, zigzag=True),
        "full_short": evolve(_WIDE, causal=False, heads=0, zigzag=True, together=True, by_segments=False),
        "causal_short": evolve(_WIDE, heads=16, by_segments=False),
    },
    256: {
        "full": evolve(_WIDEST, causal=False, together=True),
        "causal": evolve(_WIDEST, zigzag=True),
        "full_short": evolve(_WIDEST, causal=False, heads=0, zigzag=True, together=True, by_segments=False),
        "causal_short": evolve(_WIDEST, heads=8, zigzag=True, by_segments=False),
    },
}
"""The configurations by head dimension; "short": of many short sequences."""
_MANY = 256
"""Sequences from which on a run through all of them may take longer than tiles that hold no query."""
_SEGMENT, _EMPTY = 260, 750
"""Cycles that a block takes for a sequence of which it has no tile, and for a tile that holds no query, on an H200."""


def choose(width: int, sequences: int, rows: int, longest: int, heads: int, *, causal: bool) -> str:
    """The configuration for so many sequences of so many rows in all.

    Where each sequence has as many tiles as the longest, blocks do not run through sequences, but through tiles, of
    which some hold no query. About half of a sequence's last tile is empty.
    """
    kind = "causal" if causal else "full"
    cfg = CONFIGS[width][kind]
    empty = sequences * (-(-longest // cfg.bm)) - rows / cfg.bm - sequences / 2
    through_tiles = empty * heads * _EMPTY / cfg.target.processors
    return f"{kind}_short" if sequences >= _MANY and through_tiles < sequences * _SEGMENT else kind


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
