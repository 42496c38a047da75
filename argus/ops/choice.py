"""Which configuration multiplies matrices of a shape: one that a search has stored, else the cost model's choice.

The one place where a configuration is chosen. It reads the cost models (`argus.kernels.cost_sm_90a`,
`argus.kernels.cost_gfx942`), the table of searches (`argus.runtime.tuning_db`), and the configurations that each family
ships; all that a search may try is `argus.search.designs`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import ceil

from attrs import frozen

from argus.kernels import cost_gfx942, fp8, fp8_blocks, fused, layouts, streamk
from argus.kernels.config_names import name_of
from argus.kernels.cost_sm_90a import H200, PROCESSORS, cheapest, is_fitted, is_swap_ab, microseconds
from argus.kernels.gemm import CONFIGS, Config, configuration
from argus.kernels.schedules.hopper import Hopper
from argus.kernels.schedules.ragged import Ragged
from argus.kernels.schedules.skinny import Skinny
from argus.ops.element_types import element_name, no_family, no_schedule
from argus.runtime.tuning_db import Key, choice

Selected = Callable[[int, int, int], str]
"""Of M, N and K the name of a configuration."""


@frozen
class Family:
    """cheapest: the configuration that the cost model expects to take least. named: a configuration by its name."""

    cheapest: Selected
    named: Callable[[str], Config | Ragged | None]


def select(m: int, n: int, k: int, dtype: object = "bf16", target: object = "sm_90a", device: str = "") -> str:
    """The name of the configuration that is expected to take least for C = A @ B^T of these extents.

    dtype: of A and B, such as "bf16" or `torch.bfloat16`; what it names is a configuration of `gemm` for bf16, of
    `argus.kernels.layouts` for f16 and of `argus.kernels.fp8` for e4m3. device: a GPU's name, for what a search has
    stored of it (`argus tune`) to come first; else, and for other shapes, a cost model decides.
    Raises ArgusError (E414) where no family multiplies such matrices.
    """
    asked = element_name(dtype), str(target)
    if asked not in FAMILIES:
        raise no_family(*asked, FAMILIES)
    family = FAMILIES[asked]
    found = choice(device, Key((m, n, k), *asked)) if device else None
    config = None if found is None else family.named(found)
    if found is not None and config is not None and config.target.name == asked[1]:
        return found
    return family.cheapest(m, n, k)


@lru_cache(maxsize=4096)
def candidates(
    family: str, sizes: tuple[int, ...], *, a_transposed: bool, b_transposed: bool, device: str
) -> tuple[str, ...]:
    """The configurations of a 16-bit family to try in turn on a GPU of this name: all but the last are hints.

    sizes: M, N and K, before them the number of products of a batch.
    """
    *batch, m, n, k = sizes
    if batch:
        return (select_batched(batch[0], m, n, k, a_transposed=a_transposed, b_transposed=b_transposed),)
    if a_transposed or b_transposed:
        return (select_transposed(m, n, k, a_transposed=a_transposed, b_transposed=b_transposed),)
    known = stored_or_modelled(m, n, k, "f16" if family.endswith("f16") else "bf16", device)
    parts = select_stream_k(m, n, k) if family == "gemm_nt" and len(known) == 1 else None
    return known if parts is None else (parts, *known)


def stored_or_modelled(m: int, n: int, k: int, dtype: str, device: str) -> tuple[str, ...]:
    """What a search has stored, if that is another configuration, before what the cost model chooses."""
    return tuple(dict.fromkeys((select(m, n, k, dtype, device=device), select(m, n, k, dtype))))


def select_transposed(m: int, n: int, k: int, *, a_transposed: bool, b_transposed: bool) -> str:
    """For `argus.kernels.layouts`: operands that lie row-major or column-major."""
    known = layouts.configs_for(m, n, k, a_transposed=a_transposed, b_transposed=b_transposed)
    return "narrow" if "narrow" in known and len(known) == 1 else cheapest(known, m, n, k)


def select_batched(z: int, m: int, n: int, k: int, *, a_transposed: bool = False, b_transposed: bool = False) -> str:
    """For `argus.kernels.batched`: the cost of z products is that of one with the rows of all."""
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


_LEAST_ROWS, _LEAST_DEPTH = 65, 1024
_SPLIT_ROWS, _SPLIT_COLUMNS = 80, 4096
"""Up to so many rows and from so many columns on, split-K within clusters (split.py) fills the GPU in one launch."""


def select_stream_k(m: int, n: int, k: int) -> str | None:
    """For `argus.kernels.streamk`: a configuration where dividing K pays, as measured on one H200; None elsewhere.

    Tiles of 128 x 128, by pairs of blocks where rows of tiles make pairs, each in as many parts as fill the GPU: at
    least two by pairs, and three by single blocks, of at least 1024 of K. Few rows are left to split-K in one launch.
    """
    high, wide = ceil(m / 128), ceil(n / 128)
    peers = 1 if high % 2 else 2
    parts = PROCESSORS // max(1, high * wide)
    pays = parts >= 4 - peers and k >= _LEAST_DEPTH * parts
    in_one_launch = m <= _SPLIT_ROWS and n >= _SPLIT_COLUMNS
    if m < _LEAST_ROWS or in_one_launch or n % 8 or k % 8 or not pays:
        return None
    return name_of(streamk.stream(128, 128, parts, 1, peers))


def select_fp8(m: int, n: int, k: int) -> str:
    """For `argus.kernels.fp8`: 128 of k take the bytes and the cycles of 64 in 16 bits."""
    return "ragged" if n % 8 else cheapest(fp8.CONFIGS, m, n, k // 2)


def select_fused(m: int, n: int, k: int) -> str:
    """For `argus.kernels.fused`: sums of these extents."""
    return cheapest(fused.CONFIGS, m, n, k)


_LARGE = 1.7
"""What a wave of tiles of 256 rows takes, as a multiple of one of 128."""


def select_fp8_blocks(m: int, n: int, k: int) -> str:
    """For `argus.kernels.fp8_blocks`: tiles of 256 rows, which take less than two of 128, with scales of rows in stages
    where TMA takes those: rows of whole 16 bytes.
    """
    del k
    if n % 8:
        return "ragged"
    large, small = (ceil(ceil(m / rows) * ceil(n / fp8_blocks.BLOCK) / PROCESSORS) for rows in (256, 128))
    if _LARGE * large > small:
        return "by_rows"
    return "rows_256_bands" if m % fp8_blocks.ALIGNED else "ordered_bands"


_FEW_ROWS = 16


def _of_16_bits(m: int, n: int, k: int) -> str:
    """TMA moves rows that begin at multiples of 16 bytes: others go element by element.

    C that has no such rows leaves the configurations for few rows of A, which store elements. Up to 16 rows these are
    fastest wherever they have been measured, by a third and more, which the model does not tell.
    """
    if k % 8:
        return "narrow"
    if n % 8 or m <= _FEW_ROWS:
        return cheapest({name: each for name, each in CONFIGS.items() if is_swap_ab(each)}, m, n, k)
    return cheapest(CONFIGS, m, n, k)


def _of_8_bits(m: int, n: int, k: int) -> str:
    if k % 16:
        raise no_schedule((m, n, k), "sm_90a", "K is expected to be a multiple of 16")
    return select_fp8(m, n, k)


def _fp8(name: str) -> Hopper | Ragged | None:
    return fp8.CONFIGS.get(name)


def _cdna3(m: int, n: int, k: int) -> str:
    if k % 8:
        raise no_schedule((m, n, k), "gfx942", "K is expected to be a multiple of 8")
    return cost_gfx942.cheapest(CONFIGS, m, n, k)


FAMILIES: dict[tuple[str, str], Family] = {
    ("bf16", "sm_90a"): Family(_of_16_bits, configuration),
    ("f16", "sm_90a"): Family(_of_16_bits, configuration),
    ("e4m3", "sm_90a"): Family(_of_8_bits, _fp8),
    ("bf16", "gfx942"): Family(_cdna3, configuration),
}
"""By element type of the operands, and target."""
