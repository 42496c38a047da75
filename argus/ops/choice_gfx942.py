"""Chooses configurations for gfx942, and refuses calls for which no kernel for it is proved."""

from __future__ import annotations

from functools import lru_cache
from math import prod

from argus.kernels import cost_gfx942, grouped_fp8_cdna3, layouts
from argus.kernels import grouped as grouped_kernels
from argus.kernels.attention import CDNA3
from argus.kernels.gemm import CONFIGS
from argus.kernels.schedules.cdna3_interleaved import MOST_INTEGERS, Cdna3Interleaved
from argus.kernels.schedules.stream_cdna3 import CDNA3 as CDNA3_STREAMS
from argus.ops.choice import Scales, family_type, select, stored_or_modelled
from argus.ops.element_types import no_kernel, no_schedule

_TARGET = "gfx942"
_ROWS = 128
"""The most rows of a tile of grouped products."""
_WHOLE, _COLUMNS, _VECTOR = 4, 8, 16
"""Columns of C that the sum of the parts stores at once; those in 16 bytes; 8-bit elements in 16 bytes."""


@lru_cache(maxsize=4096)
def candidates(
    family: str, sizes: tuple[int, ...], *, a_transposed: bool, b_transposed: bool, device: str
) -> tuple[str, ...]:
    """As `argus.ops.choice.candidates`."""
    *batch, m, n, k = sizes
    if not (batch or a_transposed or b_transposed):
        known = stored_or_modelled(m, n, k, family_type(family), device, _TARGET)
        parts = select_parts(m, n, k) if len(known) == 1 else None
        return known if parts is None else (parts, *known)
    known = layouts.configs_for(m, n, k, a_transposed=a_transposed, b_transposed=b_transposed, target=_TARGET)
    return (cost_gfx942.cheapest(known, prod(batch) * m, n, k),)


def scaled(m: int, n: int, k: int, *, scales: Scales) -> str:
    """As `argus.ops.choice.select_scaled`: integers have scales of rows, floats of matrices or blocks.

    Raises ArgusError (E414) for rows that are no whole vectors of 16 bytes, or too long for sums of integers.
    """
    if scales == "blocks":
        return select_blocks(m, n, k)
    if scales == "rows" and k >= MOST_INTEGERS:
        raise no_kernel("scaled_matmul", _TARGET, f"of int8 with K = {k}: i32 holds sums of fewer than 2^17 products")
    return select(m, n, k, "i8" if scales == "rows" else "e4m3fnuz", _TARGET)


def select_blocks(m: int, n: int, k: int) -> str:
    """For `argus.kernels.fp8_blocks_cdna3`: whether rows of C begin at multiples of 16 bytes decides.

    Raises ArgusError (E414) for rows of operands that are no whole vectors.
    """
    if k % _VECTOR:
        raise no_schedule((m, n, k), _TARGET, f"K must be a multiple of {_VECTOR}")
    return "interleaved_any" if n % _COLUMNS else "interleaved_128"


def select_parts(m: int, n: int, k: int) -> str | None:
    """For `argus.kernels.streamk`: the configuration for MI300X where K in parts is predicted to take less time."""
    if n % _WHOLE or k % 8:
        return None
    single = {name: each for name, each in CONFIGS.items() if each.target.name == _TARGET}
    return cost_gfx942.cheapest_in_parts(CDNA3_STREAMS, single, m, n, k)


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


def attention(width: int, queries: int, keys: int, pairs: int, *, causal: bool) -> str:
    """As `argus.kernels.attention.choose`. Raises ArgusError (E414) for causal attention of more queries than keys."""
    del pairs
    if causal and queries > keys:
        raise no_kernel("attention", _TARGET, "that is causal, with more queries than keys")
    config = "cdna3_causal" if causal else "cdna3"
    assert config in CDNA3[width]
    return config
