"""The cost model of GEMM configurations on sm_90a, fitted to times on one H200; chooses a configuration for a shape.

The time of a wave of tiles is the p-norm of three times that overlap in part: matrix products, operand traffic from
memory, and operand traffic from L2. `benchmarks/gemm_h200.py` measures, `benchmarks/fit.py` fits.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from attrs import evolve, frozen

from argus.kernels.schedules.hopper import Hopper
from argus.kernels.schedules.skinny import Skinny
from argus.kernels.schedules.split import Split

PROCESSORS = 132
"""SMs of an H100 or H200; each works on one tile at a time."""
_ELEMENT = 2
"""Bytes of bf16."""
_SLICE = 64
"""Elements of K per `step`."""
_FEWEST = 3
_ROWS, _HALF = 128, 64
_MOST_ROWS = 1024
"""Rows of A up to which swap-AB was ever fastest: beyond that its stores of single elements cost more."""
_TWO = 115_712
"""Bytes of shared memory per CTA with which two CTAs fit on an SM."""


Known = Hopper | Skinny | Split


@frozen
class Costs:
    """The fitted parameters; times are in microseconds.

    step: time per 64 of K of a tile with 128 rows, by the tile's columns; half: with 64 rows, relative to that.

    skinny: time per 64 of K and 64 rows of B with swap-AB; column: additional time per row of A. pad: per row of a tile
    outside its tensor, which TMA fills with zeros more slowly than it loads others.

    store: time to store one box of a tile's columns. single: time to store 64 x 64 of a tile of C^T by single elements.

    launch: fixed time of a launch. memory, cache: bytes per microsecond from memory and from L2. held: bytes that L2
    keeps from wave to wave. overlap: exponent of the norm.

    exchange: with split-K, time to exchange the partial sums of 128 x 128 of a tile within a cluster; meet: time of the
    cluster's barrier. exchange is None if it has not been measured.
    """

    step: Mapping[int, float]
    half: float
    skinny: float
    column: float
    pad: float
    store: float
    single: float
    launch: float
    memory: float
    cache: float
    held: float
    overlap: float
    meet: float
    exchange: float | None = None


H200 = Costs(
    step={256: 0.5918, 224: 0.469, 192: 0.43309, 160: 0.35, 128: 0.3270, 64: 0.14182},
    half=0.42343,
    skinny=0.078338,
    column=0.00057943,
    pad=0.0011058,
    store=0.29274,
    single=0.3,
    launch=3.1439,
    memory=7.4315e6,
    cache=26.5836e6,
    held=148.718e6,
    overlap=1.29399,
    meet=2.0001,
    exchange=1.11211,
)


@frozen
class _Tiles:
    """rows, columns: of a tile. cluster: CTAs along both axes. band: rows of tiles of a super-tile.

    splits: CTAs that split the K of a tile. store: time of a tile's epilogue that is not overlapped; after: time of the
    last tile's epilogue, if the others overlap with mainloops. per_sm: CTAs per SM.
    """

    rows: int
    columns: int
    cluster: tuple[int, int]
    band: int
    step: float
    store: float
    splits: int = 1
    after: float = 0.0
    per_sm: int = 1

    @property
    def blocks(self) -> int:
        """CTAs of a cluster."""
        return self.cluster[0] * self.cluster[1] * self.splits


def microseconds(config: Known, m: int, n: int, k: int, costs: Costs = H200) -> float:
    """Predicted time of C = A @ B^T of these extents."""
    tiles, rows, columns = _tiles(config, m, n, costs)
    across, along = tiles.cluster
    high, wide = ceil(rows / tiles.rows), ceil(columns / tiles.columns)
    outside = (tiles.rows - rows / max(1, high)) + (tiles.columns - columns / max(1, wide))
    clusters = ceil(high / across) * ceil(wide / along)
    places = PROCESSORS * tiles.per_sm
    waves = max(1, ceil(clusters / (places // tiles.blocks)))
    slices = ceil(k / (_SLICE * tiles.splits))
    busy = min(places, clusters * tiles.blocks)
    from_memory = _fetched(tiles, high, wide) * k * _ELEMENT
    if (m + n) * k * _ELEMENT < costs.held:
        from_memory = min(from_memory, (m + n) * k * _ELEMENT / waves)
    from_cache = slices * (tiles.rows / along + tiles.columns / across) * _SLICE * _ELEMENT * busy
    products = ceil(busy / PROCESSORS) * (slices * (tiles.step + costs.pad * outside) + tiles.store)
    parts = (products, from_memory / costs.memory, from_cache / costs.cache)
    return costs.launch + waves * sum(part**costs.overlap for part in parts) ** (1 / costs.overlap) + tiles.after


def _tiles(config: Known, m: int, n: int, costs: Costs) -> tuple[_Tiles, int, int]:
    """The tiles, and the extents of C that they cover, transposed for swap-AB."""
    if isinstance(config, Skinny):
        leaves = costs.single * config.bn * config.bm / _HALF**2
        return _Tiles(config.bn, config.bm, (1, 1), 0, _swap_ab_step(config.bn, config.bm, costs), leaves), n, m
    if isinstance(config, Split):
        exchange = costs.meet + (costs.exchange or 0.0) * config.bm * config.bn / _ROWS**2
        if config.swap_ab:
            exchange += costs.single * config.bm * config.bn / _HALF**2 / config.splits
        step = _swap_ab_step(config.bm, config.bn, costs) if config.swap_ab else costs.step[config.bn]
        per_sm = 2 if config.bytes <= _TWO else 1
        made = _Tiles(config.bm, config.bn, (1, 1), 0, step, exchange, config.splits, per_sm=per_sm)
        return (made, n, m) if config.swap_ab else (made, m, n)
    across, along = (*config.cluster, 1)[:2]
    step, store = costs.step[config.bn], costs.store * (config.bn // (64 if config.bn % 64 == 0 else 32))
    band = config.group or config.curve // 2  # a wave covers about half a square
    made = _Tiles(config.bm, config.bn, (across, along), band, step, store)
    if config.pingpong:
        made = evolve(made, step=step * costs.half * config.bm / _HALF, store=0.0, after=store)
    return made, m, n


def _swap_ab_step(rows: int, columns: int, costs: Costs) -> float:
    """Time per 64 of K of a tile of C^T."""
    return rows / _HALF * (costs.skinny + costs.column * columns)


def _fetched(tiles: _Tiles, high: int, wide: int) -> int:
    """Number of rows of both operands that a wave of tiles reads."""
    across, resident = tiles.cluster[0], PROCESSORS * tiles.per_sm // tiles.splits
    if tiles.band:
        rows = max(1, min(tiles.band * across, high))
        columns = min(wide, ceil(resident / rows))
    else:
        columns = max(1, min(wide, resident // across))
        rows = min(high, max(across, ceil(resident / columns)))
    return rows * tiles.rows + columns * tiles.columns


def cheapest(configs: Mapping[str, object], m: int, n: int, k: int, costs: Costs = H200) -> str:
    """The name of the configuration with the least predicted time, among those that the model covers."""
    known = {name: config for name, config in configs.items() if isinstance(config, Known)}
    fitted = {name: config for name, config in known.items() if is_fitted(config, costs)}
    if m > _MOST_ROWS:
        fitted = {name: config for name, config in fitted.items() if not is_swap_ab(config)} or fitted

    def cost(name: str) -> tuple[float, int]:
        """Predicted time; ties, which L2 causes, go to the configuration that reads the fewest rows per wave."""
        tiles, high, wide = _tiles(fitted[name], m, n, costs)
        rows = _fetched(tiles, ceil(high / tiles.rows), ceil(wide / tiles.columns))
        return microseconds(fitted[name], m, n, k, costs), rows

    return min(fitted, key=cost)


def is_swap_ab(config: object) -> bool:
    """Whether it computes C^T = B A^T (swap-AB), and so stores single elements."""
    return isinstance(config, Skinny) or (isinstance(config, Split) and config.swap_ab)


def is_fitted(config: Known, costs: Costs) -> bool:
    """Whether the model has measurements of such tiles; a pipeline of two stages waits for memory differently."""
    if isinstance(config, Skinny):
        return True
    known = config.stages >= _FEWEST and config.bn in costs.step
    if isinstance(config, Split):
        measured = config.bk == _SLICE if config.swap_ab else known and config.bm == _ROWS
        return measured and costs.exchange is not None
    return known
