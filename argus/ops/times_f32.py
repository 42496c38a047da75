"""A model of the times of products of f32 on an H200, in microseconds, fitted to `benchmarks/f32_h200.py speed`."""

from __future__ import annotations

from math import ceil

from argus.kernels.cost_sm_90a import PROCESSORS
from argus.kernels.gemm_fma import Fma
from argus.kernels.schedules.parts import Parts
from argus.kernels.schedules.parts_at_once import AtOnce
from argus.kernels.schedules.parts_in_ring import InRing

Config = Parts | AtOnce | InRing | Fma
_MOST = 6
"""Products of parts, of which times are of."""
_STEP, _TILE = {256: 1.95, 128: 1.0}, {256: 4.0, 128: 2.4}
"""Of six products of 32 of K of a tile, and of a tile besides, by rows of a tile."""
_ODD = {256: 1.12, 128: 1.35}
"""Times as long, where rows are no multiples of 16 bytes."""
_COMPENSATED = 1.25
"""Times as long, where sums of stages are compensated."""
_AT_ONCE, _BEGIN = 1.0, 2.0
"""Of a stage of 32 of K that is split and multiplied by a block alone on a multiprocessor, and of a tile besides; two
blocks take twice as long.
"""
_IN_RING, _FIRST = 1.58, 4.3
"""Of a stage of 32 of K that two warpgroups split and multiply, and of a tile besides."""
_FMAS = {4: 0.62, 2: 0.33}
"""Of a stage of a tile by plain FMAs, by rows of a thread."""
_LAUNCH, _ADDING, _BANDWIDTH = 2.3, 1.0, 3.3e6
"""Of a launch, and of one that adds chunks besides, and bytes that are moved in one."""


def microseconds(config: Config, z: int, m: int, n: int, k: int, *, shared: bool = False) -> float:
    """The modelled time of z products. shared: all have one matrix A."""
    chunks = ceil(k / config.chunk) if config.chunk else 1
    stored = 4 * z * m * n / _BANDWIDTH
    added = _ADDING + (chunks + 1) * stored if config.chunk else 0.0
    split = _split(config, ((1 if shared else z) * m + z * n) * k)
    return max(_multiplied(config, z * chunks, m, n, config.chunk or k), stored) + split + added


def copied(elements: int) -> float:
    """The modelled time of a launch that copies elements of f32."""
    return _LAUNCH + 8 * elements / _BANDWIDTH


def _split(config: Config, elements: int) -> float:
    """Of launches that split operands with so many elements."""
    if not isinstance(config, Parts):
        return _LAUNCH
    return 2 * _LAUNCH + (4 + 2 * config.parts) * elements / _BANDWIDTH


def _multiplied(config: Config, z: int, m: int, n: int, k: int) -> float:
    match config:
        case Fma():
            tiles = z * ceil(m / config.rows) * ceil(n / config.columns)
            return ceil(tiles / PROCESSORS) * ceil(k / config.bk) * _FMAS[config.each]
        case AtOnce():
            tiles = z * ceil(m / 64) * ceil(n / config.bn)
            return _BEGIN + ceil(tiles / PROCESSORS) * ceil(k / config.bk) * _AT_ONCE * config.bk / 32
        case InRing():
            tiles = z * ceil(m / config.bm) * ceil(n / config.bn)
            step = _IN_RING * max(config.products / _MOST, 0.75)
            return ceil(tiles / PROCESSORS) * (ceil(k / config.bk) * step + _FIRST)
        case Parts():
            across = config.cluster[-1]
            tiles = z * ceil(m / config.bm) * ceil(n / config.bn / across) * across
            step = _STEP[config.bm] * config.products / _MOST * config.bk / 32
            step *= (1.0 if config.wide else _ODD[config.bm]) * (_COMPENSATED if config.compensated else 1.0)
            return ceil(tiles / PROCESSORS) * (ceil(k / config.bk) * step + _TILE[config.bm])
