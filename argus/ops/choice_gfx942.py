"""Chooses configurations for gfx942, and refuses calls for which no kernel for it is proved."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import prod

from attrs import evolve

from argus.kernels import (
    cost_gfx942,
    fp8_cdna3,
    grouped_fp8_cdna3,
    i8_cdna3,
    layouts,
    streamk_cdna3,
    streamk_scaled_cdna3,
)
from argus.kernels import grouped as grouped_kernels
from argus.kernels import grouped_weights as weights_kernels
from argus.kernels.attention import CDNA3
from argus.kernels.config_names import name_of
from argus.kernels.gemm import CONFIGS, Config
from argus.kernels.row_alignment import admits_rows
from argus.kernels.schedules.cdna3_interleaved import MOST_INTEGERS, Cdna3Interleaved
from argus.ops.choice import Scales, family_type, select, stored_or_modelled
from argus.ops.element_types import no_kernel, no_schedule

_TARGET = "gfx942"
_ROWS = 128
"""The most rows of a tile of grouped products."""
_MANY_ROWS = 192
"""Of an expert, on average."""
_WHOLE, _COLUMNS, _VECTOR = 4, 8, 16
"""Columns of C that the sum of the parts stores at once; those in 16 bytes; 8-bit elements in 16 bytes."""
_ALIGNMENTS, _BYTES = (16, 4, 2), 2
"""Of rows that are loaded in vectors of so many bytes; the size of an element."""


@lru_cache(maxsize=4096)
def candidates(
    family: str, sizes: tuple[int, ...], *, a_transposed: bool, b_transposed: bool, device: str
) -> tuple[str, ...]:
    """As `argus.ops.choice.candidates`."""
    *batch, m, n, k = sizes
    single = _undivided(family, m, n, k, a_transposed=a_transposed, b_transposed=b_transposed)
    if batch or a_transposed or b_transposed:
        known = (cost_gfx942.cheapest(single, m, n, k, prod(batch)),)
    else:
        known = stored_or_modelled(m, n, k, family_type(family), device, _TARGET)
    parts = select_parts(family, *sizes, a_transposed=a_transposed, b_transposed=b_transposed)
    return known if parts is None or len(known) > 1 else (parts, *known)


def _undivided(family: str, m: int, n: int, k: int, *, a_transposed: bool, b_transposed: bool) -> Mapping[str, Config]:
    """The configurations of a family that multiply such operands by one launch."""
    if family == "gemm_nt":
        sizes = {"M": m, "N": n, "K": k}
        return {
            name: each for name, each in CONFIGS.items() if each.target.name == _TARGET and admits_rows(each, sizes)
        }
    return layouts.configs_for(m, n, k, a_transposed=a_transposed, b_transposed=b_transposed, target=_TARGET)


def scaled(m: int, n: int, k: int, *, scales: Scales) -> str:
    """As `argus.ops.choice.select_scaled`: integers have scales of rows, floats of matrices or blocks.

    Raises ArgusError (E414) for rows that are no whole vectors of 16 bytes, or too long for sums of integers.
    """
    if scales == "blocks":
        return select_blocks(m, n, k)
    if scales == "rows" and k >= MOST_INTEGERS:
        raise no_kernel("scaled_matmul", _TARGET, f"of int8 with K = {k}: i32 holds sums of fewer than 2^17 products")
    kind, of = ("i8", i8_cdna3.CONFIGS) if scales == "rows" else ("e4m3fnuz", fp8_cdna3.CONFIGS)
    single, wide = select(m, n, k, kind, _TARGET), n % _WHOLE == 0
    known = {
        name: each
        for name, each in streamk_scaled_cdna3.CONFIGS.items()
        if each.wide == wide and (scales != "rows" or k <= streamk_scaled_cdna3.longest_sum(each))
    }
    parts = cost_gfx942.cheapest_in_parts(known, {single: of[single]}, m, n, k // 2) if known else None
    return parts or single


def select_blocks(m: int, n: int, k: int) -> str:
    """For `argus.kernels.fp8_blocks_cdna3`: whether rows of C begin at multiples of 16 bytes decides.

    Raises ArgusError (E414) for rows of operands that are no whole vectors.
    """
    if k % _VECTOR:
        raise no_schedule((m, n, k), _TARGET, f"K must be a multiple of {_VECTOR}")
    return "interleaved_any" if n % _COLUMNS else "interleaved_128"


def select_parts(family: str, *sizes: int, a_transposed: bool = False, b_transposed: bool = False) -> str | None:
    """For `argus.kernels.streamk_cdna3`: the configuration where K in parts is predicted to take less time.

    sizes: (M, N, K), or (batch, M, N, K).
    """
    *batch, m, n, k = sizes
    lengths = m if a_transposed else k, n if b_transposed else k
    align = next(each for each in _ALIGNMENTS if all(length * _BYTES % each == 0 for length in lengths))
    wide = n % _WHOLE == 0
    known = streamk_cdna3.CONFIGS
    if align < _VECTOR or not wide:
        made = (evolve(each, align=align, wide=wide) for each in known.values() if align == _VECTOR or not each.agprs)
        known = {name_of(each): each for each in made}
    single = _undivided(family, m, n, k, a_transposed=a_transposed, b_transposed=b_transposed)
    return cost_gfx942.cheapest_in_parts(known, single, m, n, k, prod(batch))


def grouped(rows: int, experts: int, n: int, *, blocks: bool) -> str:
    """As `argus.ops.choice.select_grouped`: an expert's last tile is taken to be half full on average.

    Not among tiles of 256 rows, which `argus perf` predicts to be slower than those of 128 for each product tried.
    """
    every = grouped_fp8_cdna3.CONFIGS if blocks else grouped_kernels.CONFIGS
    known = {n: each for n, each in every.items() if isinstance(each, Cdna3Interleaved) and each.bm <= _ROWS}

    def cost(name: str) -> float:
        rows_of_tiles = rows + experts * known[name].bm // 2
        return cost_gfx942.microseconds(known[name], rows_of_tiles, n, known[name].bk)

    return min(known, key=cost)


def grouped_weights(rows: int, experts: int, high: int, columns: int) -> str:
    """As `argus.ops.choice.select_grouped_weights`: each expert is taken to have its share of the rows."""
    known = weights_kernels.CONFIGS
    return cost_gfx942.cheapest(known, high, columns, -(-rows // experts), experts)


def moe(rows: int, experts: int, *, blocks: bool) -> str:
    """As `argus.ops.choice.select_moe`: tiles of 64 rows up to so many of an expert, as `grouped` mostly chooses."""
    del blocks
    return "interleaved_64" if rows <= _MANY_ROWS * experts else "interleaved_128"


def moe_gradient(rows: int, experts: int) -> str:
    """As `argus.ops.choice.select_moe_gradient`, with the tiles of the layer itself."""
    return moe(rows, experts, blocks=False)


def attention(width: int, queries: int, keys: int, pairs: int, *, causal: bool) -> str:
    """As `argus.kernels.attention.choose`. Raises ArgusError (E414) for causal attention of more queries than keys."""
    del pairs
    if causal and queries > keys:
        raise no_kernel("attention", _TARGET, "that is causal, with more queries than keys")
    config = "cdna3_causal" if causal else "cdna3"
    assert config in CDNA3[width]
    return config
