"""Chooses how matrices of f32 are multiplied on sm_90a: by parts in bf16; little of them, or few rows or
columns, by plain FMAs.

How many products of parts count is asked of torch: `torch.get_float32_matmul_precision()`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from math import ceil

from argus.kernels import few_rows, gemm_f32, gemm_f32_at_once, gemm_fma, several_rows
from argus.kernels.config_names import name_of
from argus.kernels.cost_sm_90a import PROCESSORS
from argus.kernels.gemm_fma import Fma
from argus.kernels.schedules.parts import Parts
from argus.ops.call_path import Traced, torch

PRODUCTS = {"highest": 6, "high": 3, "medium": 1}
"""Products of parts, by torch's word for the precision: as exact as sums in f32, or with 16 or 8 bits of operands."""
FEW, FEW_COLUMNS = "few_rows_", "few_columns_"
"""The first parts of names of configurations; a number of rows follows, and one of `argus.kernels.few_rows`."""
_SINGLE = 4
"""Bytes of an element."""
_WHOLE = 4
"""Elements in 16 bytes."""
_LONG, _SHORT = 2048, 768
"""K from which a block has a row of the matrix with many, and from which a warp reads 1024 elements at a time."""
_TILES = ((256, 3, (1, 2)), (256, 3, (1,)), (128, 4, (1,)))
"""Rows of a tile, stages for six products, and the cluster."""
_CHUNKS = (0, 512, 1024, 2048, 4096, 8192, 16384)
_STEP, _TILE = {256: 1.95, 128: 1.0}, {256: 4.0, 128: 2.4}
"""Microseconds of six products of 32 of K of a tile, and of a tile besides (`benchmarks/f32_h200.py speed`)."""
_ODD = {256: 1.12, 128: 1.35}
"""Times as long, where rows are no multiples of 16 bytes."""
_FMAS = {4: 0.62, 2: 0.33}
"""Microseconds of a stage of a tile by plain FMAs, by rows of a thread."""
_LAUNCH, _BANDWIDTH = 2.3, 3.3e6
"""Microseconds of a launch, and bytes that are moved in one."""


def precision_of(dtype: object) -> str:
    """torch's word for the precision of products of these elements; empty if they are not f32."""
    return torch().get_float32_matmul_precision() if getattr(dtype, "itemsize", 0) == _SINGLE else ""


@lru_cache(maxsize=4096)
def candidates(
    family: str, sizes: tuple[int, ...], *, a_transposed: bool, b_transposed: bool, device: str, precision: str
) -> tuple[str, ...]:
    """As `argus.ops.choice.candidates`. precision: torch's word for it."""
    del device
    *batch, m, n, k = sizes
    rows = {"a": m if a_transposed else k, "b": n if b_transposed else k}
    few = _few(m, n, k) if not batch and family == "gemm_nt_f32" else None
    if few is not None:
        return (few,)
    wide = not any(each % _WHOLE for each in (*rows.values(), n))
    z = batch[0] if batch else 1
    configs: list[Parts | Fma] = [*_configs(PRODUCTS[precision], wide=wide, chunked=not batch, k=k)]
    configs += () if batch else gemm_fma.CONFIGS.values()
    return (name_of(min(configs, key=lambda each: microseconds(each, z, m, n, k))),)


def _few(m: int, n: int, k: int) -> str | None:
    """The configuration that multiplies few rows of A, or of B, by plain FMAs; None where there are more."""
    count = min(m, n)
    if count > few_rows.MOST or (count > 1 and k < _LONG):
        return None
    reading = few_rows.LONG if k >= _LONG else few_rows.SHORT if k >= _SHORT else few_rows.SHORTEST
    return f"{FEW if m <= n else FEW_COLUMNS}{count}_{reading}{'' if k % _WHOLE else '_wide'}"


def _configs(products: int, *, wide: bool, chunked: bool, k: int) -> Iterator[Parts]:
    for (bm, stages, cluster), chunk in product(_TILES, _CHUNKS):
        if chunk and (not chunked or chunk >= k or cluster != (1,)):
            continue
        bk = 64 if products == 1 else 32
        deep = stages * 3 * 32 // (Parts(products).parts * bk)
        yield Parts(products, bm, bk=bk, stages=min(deep, 8), chunk=chunk, cluster=cluster, wide=wide)


def microseconds(config: Parts | Fma, z: int, m: int, n: int, k: int) -> float:
    """The modelled time of z products."""
    if isinstance(config, Fma):
        waves = ceil(ceil(m / config.rows) * ceil(n / config.rows) / PROCESSORS)
        return _LAUNCH + waves * ceil(k / config.bk) * _FMAS[config.each]
    across = config.cluster[-1]
    chunks = ceil(k / config.chunk) if config.chunk else 1
    tiles = z * ceil(m / config.bm) * ceil(n / config.bn / across) * across * chunks
    step = _STEP[config.bm] * config.products / max(PRODUCTS.values()) * config.bk / 32
    step *= 1.0 if config.wide else _ODD[config.bm]
    multiplying = ceil(tiles / PROCESSORS) * (ceil((config.chunk or k) / config.bk) * step + _TILE[config.bm])
    stored = 4 * z * m * n / _BANDWIDTH
    added = _LAUNCH + (chunks + 1) * stored if config.chunk else 0.0
    splitting = 2 * _LAUNCH + (4 + 2 * config.parts) * z * (m + n) * k / _BANDWIDTH
    return splitting + max(multiplying, stored) + added


def instance(family: str, config: str) -> Traced | None:
    """The kernel or program of a configuration of a family of f32, and its module; None if there is none."""
    for prefix, known, more in (
        (FEW, few_rows.FAMILIES.get(family, {}), several_rows.ROWS),
        (FEW_COLUMNS, few_rows.COLUMNS, several_rows.COLUMNS),
    ):
        if config.startswith(prefix):
            count, _, name = config.removeprefix(prefix).partition("_")
            if not count.isdecimal() or family != "gemm_nt_f32":
                return None
            several, made = several_rows.configuration(name), more.get(int(count))
            if several is not None and made is not None:
                return made.instance(several, name), made.function.__module__
            made = known.get(int(count))
            return (made.trace(name), made.function.__module__) if made is not None and name in made.configs else None
    for module in (gemm_fma, gemm_f32_at_once):
        known = module.configuration(config)
        if known is not None and family in module.FAMILIES:
            plain = module.CHUNKED.get(family) if known.chunk else module.FAMILIES[family]
            return None if plain is None else (plain.instance(known, config), plain.function.__module__)
    template, found = gemm_f32.FAMILIES.get(family), gemm_f32.configuration(config)
    if template is None or found is None or (found.chunk and family.startswith("bmm")):
        return None
    return template.instance(found, config), template.function.__module__
