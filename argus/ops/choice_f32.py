"""Chooses how matrices of f32 are multiplied on sm_90a: by parts in bf16; little of them, or few rows or
columns, by plain FMAs.

How many products of parts count is asked of torch: `torch.get_float32_matmul_precision()`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product

from attrs import evolve

from argus.kernels import few_rows, gemm_f32, gemm_f32_at_once, gemm_f32_in_ring, gemm_fma, several_rows
from argus.kernels.config_names import name_of
from argus.kernels.gemm_fma import Fma
from argus.kernels.schedules.parts import Parts
from argus.kernels.schedules.parts_at_once import AtOnce
from argus.kernels.schedules.parts_in_ring import InRing
from argus.ops.call_path import Traced, torch
from argus.ops.times_f32 import Config, microseconds

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
_SEVERAL = {8: "several_steps2", 16: "several_rows2"}
"""Configurations of `argus.kernels.several_rows`, by the most rows that each is for."""
_TWO, _MANY = 2, 2048
"""Rows up to which a block has one row of the other matrix, and rows of that one for which warps have several."""
_TILES = ((256, 3, (1, 2)), (256, 3, (1,)), (128, 4, (1,)))
"""Rows of a tile, stages for six products, and the cluster."""
_LOW, _EXACT = 128, 6
"""Rows of a tile of which registers hold what sums lose, and products that are as exact as sums in f32."""
_CHUNKS = (0, 256, 512, 1024, 2048, 4096, 8192, 16384)
_SHORTEST_CHUNK = 128
"""Of schedules that begin soon."""
_LARGE = 1 << 20
"""Elements of C from which on SGEMM is a chain of FMAs for each, or two, so that sums of stages are more exact as they
are; of fewer, it adds short chains, which only compensated sums are as exact as.
"""
_SHORT_CHAIN, _FEW_STAGES = 64, 128
"""K of a chain of FMAs that is as exact as SGEMM of badly scaled operands, and K of which a sum has four stages."""


def precision_of(dtype: object) -> str:
    """torch's word for the precision of products of these elements; empty if they are not f32."""
    return torch().get_float32_matmul_precision() if getattr(dtype, "itemsize", 0) == _SINGLE else ""


@lru_cache(maxsize=4096)
def candidates(
    family: str, sizes: tuple[int, ...], *, a_transposed: bool, b_transposed: bool, device: str, precision: str
) -> tuple[str, ...]:
    """As `argus.ops.choice.candidates`: after tiles in a ring, what is to be used where those are not proved.

    precision: torch's word for it.
    """
    del device
    *batch, m, n, k = sizes
    rows = {"a": m if a_transposed else k, "b": n if b_transposed else k}
    few = _few(m, n, k) if not batch and family == "gemm_nt_f32" else None
    if few is not None:
        return (few,)
    wide = not any(each % _WHOLE for each in (*rows.values(), n))
    sizes_of_all = batch[0] if batch else 0, m, n, k
    ring = wide and not a_transposed
    found = (
        _fastest(sizes_of_all, PRODUCTS[precision], wide=wide, ring=each, shared="_shared" in family)[0]
        for each in dict.fromkeys((ring, False))
    )
    return tuple(dict.fromkeys(map(name_of, found)))


def _fastest(
    sizes: tuple[int, int, int, int], products: int, *, wide: bool, ring: bool, shared: bool
) -> tuple[Config, float]:
    """The configuration with the least modelled time for sizes (Z, M, N, K), with Z = 0 for one product, and the time.

    wide: rows are multiples of 16 bytes. ring: so they are, and rows of A are contiguous. shared: all products have
    one matrix A.
    """
    batched, m, n, k = sizes
    z = batched or 1
    compensated = products == _EXACT and z * m * n < _LARGE
    fmas = not batched and (not compensated or k <= _SHORT_CHAIN)
    configs: list[Config] = [*_fmas(wide=wide, k=k)] if fmas else []
    if not compensated or k > _SHORT_CHAIN or batched:
        configs += _parts(products, wide=wide, chunked=not batched, k=k, compensated=compensated)
        configs += _at_once(wide=wide, k=k, chunked=not batched) if compensated else ()
    if ring and not compensated and products > 1:
        configs.append(InRing(products))
    times = {each: microseconds(each, z, m, n, k, shared=shared) for each in configs}
    found = min(configs, key=lambda each: times[each])
    return found, times[found]


def time_of_batch(sizes: tuple[int, int, int, int], precision: str) -> float:
    """Modelled microseconds of products of one row-major matrix A with each of Z matrices B, for sizes (Z, M, N, K).

    precision: torch's word for it.
    """
    _, _, n, k = sizes
    wide = not any(each % _WHOLE for each in (k, n))
    return _fastest(sizes, PRODUCTS[precision], wide=wide, ring=wide, shared=True)[1]


def _few(m: int, n: int, k: int) -> str | None:
    """The configuration that multiplies few rows of A, or of B, by plain FMAs; None where there are more."""
    count, many = min(m, n), max(m, n)
    if count > 1 and k < _LONG:
        return None
    first = f"{FEW if m <= n else FEW_COLUMNS}{count}_"
    if count > _TWO and many >= _MANY and k % _WHOLE == 0:
        several = next((name for most, name in _SEVERAL.items() if count <= most), None)
        return None if several is None else first + several
    if count > few_rows.MOST:
        return None
    reading = few_rows.LONG if k >= _LONG else few_rows.SHORT if k >= _SHORT else few_rows.SHORTEST
    return f"{first}{reading}{'' if k % _WHOLE else '_wide'}"


def _parts(products: int, *, wide: bool, chunked: bool, k: int, compensated: bool) -> Iterator[Parts]:
    for (bm, stages, cluster), chunk in product(_TILES, _CHUNKS):
        if chunk and (not chunked or chunk >= k or bm != _LOW):
            continue
        bk = 64 if products == 1 else 32
        deep = stages * 3 * 32 // (Parts(products).parts * bk)
        made = Parts(products, bm, bk=bk, stages=min(deep, 8), chunk=chunk, cluster=cluster, wide=wide)
        if not compensated or k <= _FEW_STAGES:
            yield made
        elif bm == _LOW:
            yield evolve(made, compensated=True)


def _at_once(*, wide: bool, k: int, chunked: bool) -> Iterator[AtOnce]:
    for each in _chunks(k) if chunked else (0,):
        yield AtOnce(chunk=each, wide=wide, compensated=True)
    if chunked and k > _SHORT_CHAIN:
        yield AtOnce(bk=16, chunk=64, wide=wide)


def _fmas(*, wide: bool, k: int) -> Iterator[Fma]:
    vector = _WHOLE if wide else 1
    return (Fma(each, chunk=chunk, vector=vector) for each, chunk in product((4, 2), _chunks(k)))


def _chunks(k: int) -> Iterator[int]:
    """Those that divide K, and 0."""
    return (each for each in (_SHORTEST_CHUNK, *_CHUNKS) if each < k)


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
    for module in (gemm_fma, gemm_f32_at_once, gemm_f32_in_ring):
        known = module.configuration(config)
        if known is not None and family in module.FAMILIES:
            plain = module.CHUNKED.get(family) if known.chunk else module.FAMILIES[family]
            return None if plain is None else (plain.instance(known, config), plain.function.__module__)
    template, found = gemm_f32.FAMILIES.get(family), gemm_f32.configuration(config)
    if template is None or found is None or (found.chunk and family.startswith("bmm")):
        return None
    return template.instance(found, config), template.function.__module__
