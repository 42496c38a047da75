"""Chooses the configuration for a matrix product: one that a search has stored, else the cost model's choice.

This is the only place that chooses configurations. It uses the cost models (`argus.kernels.cost_sm_90a`,
`argus.kernels.cost_gfx942`), the tuning database (`argus.runtime.tuning_db`), and each family's shipped configurations;
`argus.search.designs` defines the larger space that a search explores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from math import ceil
from typing import Literal

from attrs import frozen

from argus.kernels import cost_gfx942, fp8, fp8_blocks, fp8_cdna3, fused, i8_cdna3, layouts
from argus.kernels.cost_sm_90a import (
    H200,
    H200_E4M3,
    PROCESSORS,
    Known,
    cheapest,
    is_fitted,
    microseconds,
    stores_elements,
)
from argus.kernels.gemm import CONFIGS, Config, configuration
from argus.kernels.row_alignment import admits_rows
from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved
from argus.kernels.schedules.hopper import Hopper
from argus.kernels.schedules.ragged import Ragged
from argus.kernels.schedules.skinny import Skinny
from argus.ops.choice_fitted import few_candidates, stream_candidates
from argus.ops.choice_unaligned import NARROWS, select_narrow, select_unaligned
from argus.ops.element_types import element_name, no_family, no_schedule
from argus.runtime.tuning_db import Key, best_config

Selector = Callable[[int, int, int], str]
"""Maps M, N and K to the name of a configuration."""


@frozen
class Family:
    """A kernel family. cheapest: the configuration with the least modelled time. named: looks one up by name."""

    cheapest: Selector
    named: Callable[[str], Config | Ragged | None]


def select(m: int, n: int, k: int, dtype: object = "bf16", target: object = "sm_90a", device: str = "") -> str:
    """The name of the configuration expected to be fastest for C = A @ B^T of these extents.

    dtype: of A and B, such as "bf16" or `torch.bfloat16`. The result names a configuration of `gemm` for bf16, of
    `argus.kernels.layouts` for f16, and of `argus.kernels.fp8` for e4m3. device: a GPU's name; a choice that a search
    stored for it (`argus tune`) takes precedence, otherwise a cost model decides.
    Raises ArgusError (E414) where no family multiplies such matrices.
    """
    asked = element_name(dtype), str(target)
    if asked not in FAMILIES:
        raise no_family(*asked, FAMILIES)
    family = FAMILIES[asked]
    found = best_config(device, Key((m, n, k), *asked)) if device else None
    config = None if found is None else family.named(found)
    if found is not None and config is not None and config.target.name == asked[1]:
        return found
    return family.cheapest(m, n, k)


@lru_cache(maxsize=4096)
def candidates(
    family: str, sizes: tuple[int, ...], *, a_transposed: bool, b_transposed: bool, device: str
) -> tuple[str, ...]:
    """The configurations of a 16-bit family to try in order on a GPU of this name; all but the last may be missing.

    sizes: (M, N, K), or (batch, M, N, K).
    """
    *batch, m, n, k = sizes
    if batch:
        return (select_batched(batch[0], m, n, k, a_transposed=a_transposed, b_transposed=b_transposed),)
    if a_transposed or b_transposed:
        known = (select_transposed(m, n, k, a_transposed=a_transposed, b_transposed=b_transposed),)
    else:
        known = stored_or_modelled(m, n, k, family_type(family), device)
    *stored, modelled = known
    unaligned = select_unaligned(m, n, k, a_transposed=a_transposed, b_transposed=b_transposed)
    if unaligned is not None:
        return *stored, unaligned, modelled
    fitted = select_fitted(m, n, k) if family == "gemm_nt" and not stored else None
    return known if fitted is None else (fitted, *known)


def family_type(family: str) -> str:
    """The element type of a family's operands."""
    return "f16" if family.endswith("f16") else "bf16"


def stored_or_modelled(m: int, n: int, k: int, dtype: str, device: str, target: str = "sm_90a") -> tuple[str, ...]:
    """The configuration that a search has stored, if it differs, then the cost model's choice."""
    return tuple(dict.fromkeys((select(m, n, k, dtype, target, device), select(m, n, k, dtype, target))))


def select_transposed(m: int, n: int, k: int, *, a_transposed: bool, b_transposed: bool) -> str:
    """For `argus.kernels.layouts`: row-major or column-major operands."""
    known = layouts.configs_for(m, n, k, a_transposed=a_transposed, b_transposed=b_transposed)
    return select_narrow(m, n, k) if known.keys() == NARROWS.keys() else cheapest(known, m, n, k)


def select_batched(z: int, m: int, n: int, k: int, *, a_transposed: bool = False, b_transposed: bool = False) -> str:
    """For `argus.kernels.batched`: z products are modelled as one product with the rows of all."""
    known = layouts.configs_for(m, n, k, a_transposed=a_transposed, b_transposed=b_transposed)
    fitted = {
        name: config
        for name, config in known.items()
        if isinstance(config, Hopper | Skinny) and is_fitted(config, H200)
    }
    if not fitted:
        return next(iter(known))

    def cost(name: str) -> float:
        config = fitted[name]
        return microseconds(config, z * -(-m // config.bm) * config.bm, n, k)

    return min(fitted, key=cost)


def select_fitted(m: int, n: int, k: int) -> str | None:
    """A configuration made for these extents, where it is expected to take less time than each that is shipped."""
    known = {**few_candidates(m, n, k), **stream_candidates(m, n, k)}
    if not known:
        return None
    found, single = cheapest(known, m, n, k), CONFIGS[_select_16_bit(CONFIGS)(m, n, k)]
    assert isinstance(single, Known)
    return found if microseconds(known[found], m, n, k) < microseconds(single, m, n, k) else None


def select_fp8(m: int, n: int, k: int) -> str:
    """For `argus.kernels.fp8`: an extent k takes the bytes and cycles of k / 2 in 16 bits."""
    return "ragged" if n % 8 else cheapest(fp8.CONFIGS, m, n, k // 2, H200_E4M3)


def select_fused(m: int, n: int, k: int) -> str:
    """For `argus.kernels.fused`: products of these extents."""
    return cheapest(fused.CONFIGS, m, n, k)


Scales = Literal["whole", "blocks", "rows"]
"""What has a scale each: matrices, blocks of them, or the rows of A and the columns of B."""


def select_scaled(m: int, n: int, k: int, *, scales: Scales) -> str:
    """For `argus.scaled_matmul`, for scales of matrices or blocks."""
    return (select_fp8_blocks if scales == "blocks" else select_fp8)(m, n, k)


_FEW = {4: "rows_16", 8: "rows_32"}
"""By the most rows of an expert, on average: the schedule that is bound by reading the matrices of experts."""
_MASKED = {8: "rows_8", 64: "rows_16", 128: "rows_32"}
"""By the most rows that an expert may have, of which most experts have fewer."""
_FEWEST = 32
"""Rows of all experts, up to which each of these has few tiles."""
_FEW_SCALED = 128
"""Rows of all experts of a layer with scales, from which on its low tiles have 32."""
_NARROW_COLUMNS, _SHARING_ROWS = 128, 192
"""Columns of the narrower tiles; rows of an expert, on average, from which on its tiles share columns of B."""


def _low_tiles(rows: int, experts: int, fewest: str = "rows_8") -> str | None:
    """The configuration whose time is that of reading the matrices of experts with rows; None where there are more.

    fewest: that of the lowest tiles.
    """
    if rows <= _FEWEST:
        return fewest
    return next((name for most, name in _FEW.items() if rows <= most * experts), None)


def select_grouped(rows: int, experts: int, n: int, *, blocks: bool) -> str:
    """For `argus.kernels.grouped`: tiles as wide as there are columns for, row by row where experts have few rows
    unless there are scales of blocks.

    With fewer still, a configuration of `argus.kernels.grouped_few`. blocks: for `argus.kernels.grouped_fp8`.
    """
    few = _low_tiles(rows, experts)
    if few is not None:
        return "rows_16" if blocks else few
    shared = rows > _SHARING_ROWS * experts
    if blocks:
        return "columns_192" if n > _NARROW_COLUMNS else "super_tiled" if shared else "by_rows"
    if not shared and n > _NARROW_COLUMNS:
        return "by_rows"
    return "columns_256" if n > _NARROW_COLUMNS else "columns_128"


def select_grouped_rows(rows: int, experts: int, n: int, *, blocks: bool) -> str:
    """As `select_grouped`, for scales of rows and columns: there are no schedules of low tiles."""
    del blocks
    if rows <= _SHARING_ROWS * experts and n > _NARROW_COLUMNS:
        return "by_rows"
    return "columns_256" if n > _NARROW_COLUMNS else "columns_128"


def select_grouped_weights(rows: int, experts: int, high: int, columns: int) -> str:
    """For `argus.kernels.grouped_weights`: tiles as wide as there are columns for."""
    del rows, experts, high
    return "columns_256" if columns > _NARROW_COLUMNS else "columns_128"


def select_masked(rows: int, experts: int, n: int, *, blocks: bool) -> str:
    """For the kernels of `argus.kernels.grouped_few` with counts: experts may have so many rows, most have fewer."""
    del experts, n
    found = next((name for most, name in _MASKED.items() if rows <= most), "rows_64")
    return "rows_16" if blocks and found == "rows_8" else found


def select_moe(rows: int, experts: int, *, blocks: bool) -> str:
    """For `argus.kernels.moe`: low tiles where experts have few rows; else row by row.

    blocks: for `argus.kernels.moe_fp8`, whose low tiles have more rows but for the smallest products.
    """
    few = _low_tiles(rows, experts, fewest="rows_16")
    if few is not None and blocks:
        return "rows_16" if rows < _FEW_SCALED else "rows_32"
    if few is not None:
        return few
    return "by_rows" if rows <= _SHARING_ROWS * experts else "super_tiled" if blocks else "columns_256"


def select_moe_gradient(rows: int, experts: int) -> str:
    """For `argus.kernels.moe_gradient`: row by row where experts have few rows."""
    return "by_rows" if rows <= _SHARING_ROWS * experts else "columns_256"


def select_by_mask(*, causal: bool) -> str:
    """For `argus.kernels.packed_attention` and its gradients, which have a configuration for each mask."""
    return "causal" if causal else "full"


_SMALL = 1 / 1.7
"""The time of a wave of tiles with 128 rows and columns, relative to one with 256 rows."""


def select_fp8_blocks(m: int, n: int, k: int) -> str:
    """For `argus.kernels.fp8_blocks`: the tiles of which waves take the least time, in pairs of CTAs if there are
    several waves; row scales go through stages where TMA can copy them, which needs rows of a multiple of 16 bytes.
    """
    del k
    if n % 8:
        return "ragged"

    def waves(rows: int, columns: int) -> int:
        return ceil(ceil(m / rows) * ceil(n / columns) / PROCESSORS)

    large = waves(256, fp8_blocks.BLOCK)
    if large > _SMALL * waves(128, fp8_blocks.BLOCK):
        return "by_rows"
    if m % fp8_blocks.ALIGNED:
        return "rows_256_bands"
    if 4 * large > 3 * waves(128, 192):  # the time of a wave goes with the elements of a tile
        return "columns_192_pairs"
    return "rows_256_pairs" if large > 1 else "ordered_bands"


def _select_16_bit(known: Mapping[str, Config]) -> Selector:
    """TMA needs rows aligned to 16 bytes: A and B without them are read element by element (`Narrow`).

    If C has no such rows, only the configurations that store element by element remain.
    """
    by_elements = {name: each for name, each in known.items() if stores_elements(each)}

    def choose(m: int, n: int, k: int) -> str:
        return select_narrow(m, n, k) if k % 8 else cheapest(by_elements if n % 8 else known, m, n, k)

    return choose


def _select_8_bit(m: int, n: int, k: int) -> str:
    if k % 16:
        raise no_schedule((m, n, k), "sm_90a", "K must be a multiple of 16")
    return select_fp8(m, n, k)


def _fp8_config(name: str) -> Hopper | Ragged | None:
    return fp8.CONFIGS.get(name)


_WHOLE = 16
"""Bits of elements of which rows may begin anywhere on MI300X: those of fewer are loaded in vectors alone."""


def _select_cdna3(known: Mapping[str, Config], bits: int = 16) -> Selector:
    """bits: of an element of A and B. The cost model is for 16 bits: k others take the time of k * bits / 16."""
    vector = 128 // bits

    def choose(m: int, n: int, k: int) -> str:
        if bits < _WHOLE and k % vector:
            raise no_schedule((m, n, k), "gfx942", f"K must be a multiple of {vector}")
        fitted = {name: each for name, each in known.items() if admits_rows(each, {"M": m, "N": n, "K": k})}
        return cost_gfx942.cheapest(fitted, m, n, k * bits // 16)

    return choose


def _fnuz_config(name: str) -> Cdna3Interleaved | None:
    return fp8_cdna3.CONFIGS.get(name)


def _i8_config(name: str) -> Cdna3Interleaved | None:
    return i8_cdna3.CONFIGS.get(name)


FAMILIES: dict[tuple[str, str], Family] = {
    ("bf16", "sm_90a"): Family(_select_16_bit(CONFIGS), configuration),
    ("f16", "sm_90a"): Family(_select_16_bit(layouts.NT_CONFIGS), configuration),
    ("e4m3", "sm_90a"): Family(_select_8_bit, _fp8_config),
    ("bf16", "gfx942"): Family(_select_cdna3(CONFIGS), configuration),
    ("f16", "gfx942"): Family(_select_cdna3(layouts.NT_CONFIGS), configuration),
    ("e4m3fnuz", "gfx942"): Family(_select_cdna3(fp8_cdna3.CONFIGS, bits=8), _fnuz_config),
    ("i8", "gfx942"): Family(_select_cdna3(i8_cdna3.CONFIGS, bits=8), _i8_config),
}
"""Kernel families by element type of the operands and target."""
