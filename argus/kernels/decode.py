"""Decode attention on paged keys and values, on Hopper: parts of each sequence, and their merge, with their claims."""

# ruff: noqa: UP037
# Reason: an extent in quotes is an extent.

from __future__ import annotations

from argus.kernels.schedules.decode import Cache, Decode, Merge, decode_merge, decode_parts
from argus.kernels.schedules.decode_claims import Claims
from argus.language import Tensor, bf16, f32, i32, kernel, program, workspace

PAGES = (16, 64, 128)
_BN = Decode().bn
_BLOCKS = (2, 4, 8, 16, 32, 64)
CONFIGS = {
    f"page_{page}_blocks_{blocks}": Decode(page=page, blocks=blocks, causal=False)
    for page in PAGES
    for blocks in _BLOCKS
}
"""The configurations for one token of groups of at most 8 heads of 128 elements, by page and blocks of a part."""
_ENOUGH = 128
"""Parts that keep the memory busy: about one for each processor."""


def choose(page: int, keys: int, pairs: int) -> str:
    """The configuration of pages of so many keys, for pairs of a sequence and a group: the longest parts of which there
    are enough, if there are; keys: of the longest sequence.
    """
    enough = [n for n in _BLOCKS if pairs * -(-keys // (n * _BN)) >= _ENOUGH]
    return f"page_{page}_blocks_{max(enough, default=_BLOCKS[0])}"


@kernel
def parts_bf16(
    Q: Tensor["B G R S D", bf16],
    K: Tensor["P G C D", bf16],
    V: Tensor["P G C D", bf16],
    table: Tensor["B N", i32],
    lengths: Tensor["B", i32],
    scale: Tensor["1", f32],
    values: Tensor["B G S Z H D", f32],
    tops: Tensor["B G S Z H", f32],
    sums: Tensor["B G S Z H", f32],
    *,
    cfg: Decode,
) -> None:
    decode_parts(Q, Cache(K, V, table, lengths, cfg.page), scale, (values, tops, sums), cfg)


@kernel
def merge_bf16(
    values: Tensor["B G S Z H D", f32],
    tops: Tensor["B G S Z H", f32],
    sums: Tensor["B G S Z H", f32],
    lengths: Tensor["B", i32],
    scale: Tensor["1", f32],
    O: Tensor["B G R S D", bf16],  # noqa: E741 reason: the output's name in every paper
    LSE: Tensor["B G R S", f32],
    *,
    cfg: Merge,
) -> None:
    decode_merge((values, tops, sums), lengths, scale, (O, LSE), cfg)


@program(configs=CONFIGS)
def decode_bf16(
    Q: Tensor["B G R S D", bf16],
    K: Tensor["P G C D", bf16],
    V: Tensor["P G C D", bf16],
    table: Tensor["B N", i32],
    lengths: Tensor["B", i32],
    scale: Tensor["1", f32],
    O: Tensor["B G R S D", bf16],  # noqa: E741 reason: the output's name in every paper
    LSE: Tensor["B G R S", f32],
    *,
    cfg: Decode,
) -> None:
    (B, G, _, S, D), pages = Q.shape, table.shape[1]
    inner = (B, G, S, cfg.parts(pages), cfg.heads)
    values, tops, sums = workspace(f32, (*inner, D)), workspace(f32, inner), workspace(f32, inner)
    parts_bf16(Q, K, V, table, lengths, scale, values, tops, sums, cfg=cfg)
    merge_bf16(values, tops, sums, lengths, scale, O, LSE, cfg=Merge(cfg))
    Claims(Q, Cache(K, V, table, lengths, cfg.page), scale, cfg).state(O, LSE)


FAMILIES = {"torch.bfloat16": decode_bf16}
"""The programs by type."""
