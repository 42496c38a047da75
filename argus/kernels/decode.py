"""Decode attention on paged keys and values, on Hopper: parts of each sequence, and their merge, with their claims."""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# Reason: parameters are annotated with tensors of a variable type, by which one text serves all types.
# Without `from __future__ import annotations`, since such annotations are evaluated where they stand.

from collections.abc import Mapping

from argus.kernels.schedules.decode import Cache, Decode, Merge, decode_merge, decode_parts
from argus.kernels.schedules.decode_claims import Claims
from argus.language import DType, ProgramTemplate, Tensor, bf16, f16, f32, i32, kernel, program, workspace

PAGES, HEADS, WIDTHS = (16, 64, 128), (8, 16), (64, 128)
"""Keys of a page, query heads of a group at most, and elements of a head."""
ROWS = 128
"""Query heads of a group times tokens, at most."""
_BN = Decode().bn
_BLOCKS = (4, 8, 16, 32, 64, 128)
_ENOUGH = 128
"""Parts that keep the memory busy: about one for each processor."""


def _name(page: int, blocks: int, heads: int, tokens: int) -> str:
    """tokens: 1, or the most that there may be."""
    wide = "" if heads == HEADS[0] else f"_heads_{heads}"
    return f"page_{page}_blocks_{blocks}{wide}" + ("" if tokens == 1 else f"_tokens_{tokens}")


def _configs(width: int) -> Mapping[str, Decode]:
    """The configurations by page, blocks of a part, heads and tokens."""
    found: dict[str, Decode] = {}
    for page in PAGES:
        for blocks in _BLOCKS:
            for heads in HEADS:
                one = Decode(heads=heads, blocks=blocks, page=page, width=width, causal=False)
                several = [Decode(heads=heads, blocks=blocks, page=page, width=width, warpgroups=n) for n in (1, 2)]
                found[_name(page, blocks, heads, 1)] = one
                found |= {_name(page, blocks, heads, each.tokens): each for each in several}
    return found


CONFIGS = {width: _configs(width) for width in WIDTHS}
"""The configurations by elements of a head."""


def choose(page: int, keys: int, pairs: int, heads: int, tokens: int) -> str:
    """The configuration of pages of so many keys, for pairs of a sequence and a group of heads: the longest parts of
    which there are enough, if there are; keys: of the longest sequence; tokens: of each.
    """
    enough = [n for n in _BLOCKS if pairs * -(-keys // (n * _BN)) >= _ENOUGH]
    held = next(each for each in HEADS if each >= heads)
    room = next(n for n in (ROWS // 2 // held, ROWS // held) if n >= tokens)
    return _name(page, max(enough, default=_BLOCKS[0]), held, 1 if tokens == 1 else room)


def family(width: int, dtype: DType) -> ProgramTemplate:
    """The program for heads of so many elements of this type."""
    queries, paged = Tensor[f"B G R S {width}", dtype], Tensor[f"P G C {width}", dtype]
    pages, counts, number = Tensor["B N", i32], Tensor["B", i32], Tensor["1", f32]
    parts, of_parts = Tensor[f"B G S Z H {width}", f32], Tensor["B G S Z H", f32]
    logarithms = Tensor["B G R S", f32]

    @kernel
    def decode_of_parts(
        Q: queries,
        K: paged,
        V: paged,
        table: pages,
        lengths: counts,
        scale: number,
        values: parts,
        tops: of_parts,
        sums: of_parts,
        *,
        cfg: Decode,
    ) -> None:
        decode_parts(Q, Cache(K, V, table, lengths, cfg.page), scale, (values, tops, sums), cfg)

    @kernel
    def decode_merged(
        values: parts,
        tops: of_parts,
        sums: of_parts,
        lengths: counts,
        scale: number,
        O: queries,  # noqa: E741 reason: the output's name in every paper
        LSE: logarithms,
        *,
        cfg: Merge,
    ) -> None:
        decode_merge((values, tops, sums), lengths, scale, (O, LSE), cfg)

    @program(configs=CONFIGS[width])
    def decode(
        Q: queries,
        K: paged,
        V: paged,
        table: pages,
        lengths: counts,
        scale: number,
        O: queries,  # noqa: E741 reason: as above
        LSE: logarithms,
        *,
        cfg: Decode,
    ) -> None:
        (B, G, _, S, _), N = Q.shape, table.shape[1]
        inner = (B, G, S, cfg.parts(N), cfg.heads)
        values, tops, sums = workspace(f32, (*inner, width)), workspace(f32, inner), workspace(f32, inner)
        decode_of_parts(Q, K, V, table, lengths, scale, values, tops, sums, cfg=cfg)
        decode_merged(values, tops, sums, lengths, scale, O, LSE, cfg=Merge(cfg))
        Claims(Q, Cache(K, V, table, lengths, cfg.page), scale, cfg).state(O, LSE)

    return decode


FAMILIES: Mapping[str, Mapping[int, ProgramTemplate]] = {
    name: {width: family(width, dtype) for width in WIDTHS}
    for name, dtype in (("torch.bfloat16", bf16), ("torch.float16", f16))
}
"""The programs by type and elements of a head."""
