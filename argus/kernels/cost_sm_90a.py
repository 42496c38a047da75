"""Which configuration of the GEMM family suits a shape: a model of what a tile costs, fitted to times on one H200.

A wave of tiles takes the time of its products, of its operands' way from memory, and of their way from the second-level
cache, which overlap in part: the p-norm of the three. `benchmarks/gemm_h200.py` measures, `benchmarks/fit.py` fits.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from attrs import evolve, frozen

from argus.kernels.schedules.hopper import Hopper
from argus.kernels.schedules.skinny import Skinny
from argus.kernels.schedules.split import Split

PROCESSORS = 132
"""Multiprocessors of an H100 or H200, each of which has one tile at a time."""
_ELEMENT = 2
"""Bytes of bf16."""
_SLICE = 64
"""Elements of K that `step` speaks of."""
_FEWEST = 3
_ROWS, _HALF = 128, 64
_MOST_ROWS = 1024
"""Of A, up to which exchanged operands were ever fastest: sums that leave by single elements cost more then."""
_TWO = 115_712
"""Bytes of shared memory of which two blocks have room on a multiprocessor, with what each has besides."""


Known = Hopper | Skinny | Split


@frozen
class Costs:
    """step: microseconds for 64 of K of 128 rows, by the columns of a tile; half: of 64 rows, as a share of that.

    skinny: for 64 of K of 64 rows of B, where operands are exchanged; column: beside that for each row of A. pad: for
    each row of a tile outside its tensor, which the copy engine fills with zeros, and takes longer for than for others.

    store: for one box of a tile's columns to leave, and to leave beside others of its tile. single: for 64 x 64 of a
    tile of C^T to leave, by single elements.

    launch: microseconds around all tiles. memory, cache: bytes a microsecond, from memory and from the second-level
    cache. held: bytes that this cache keeps from wave to wave. overlap: the norm's exponent.

    exchange: microseconds until the blocks that share out K have each other's sums of 128 x 128 of a tile, and meet:
    until they have met. None while nobody has measured that.
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
    """rows, columns: of a tile. together: blocks of a cluster along both axes. band: rows of tiles of a super-tile.

    parts: blocks that share out the K of a tile. store: for the sums of a tile to leave, before the next tile; after:
    for those of the last tile, where others leave beside products. beside: blocks of a multiprocessor at once.
    """

    rows: int
    columns: int
    together: tuple[int, int]
    band: int
    step: float
    store: float
    parts: int = 1
    after: float = 0.0
    beside: int = 1

    @property
    def blocks(self) -> int:
        """Of a cluster."""
        return self.together[0] * self.together[1] * self.parts


def microseconds(config: Known, m: int, n: int, k: int, costs: Costs = H200) -> float:
    """What C = A @ B^T of these extents is expected to take."""
    tiles, rows, columns = _tiles(config, m, n, costs)
    across, along = tiles.together
    high, wide = ceil(rows / tiles.rows), ceil(columns / tiles.columns)
    outside = (tiles.rows - rows / max(1, high)) + (tiles.columns - columns / max(1, wide))
    clusters = ceil(high / across) * ceil(wide / along)
    places = PROCESSORS * tiles.beside
    waves = max(1, ceil(clusters / (places // tiles.blocks)))
    slices = ceil(k / (_SLICE * tiles.parts))
    busy = min(places, clusters * tiles.blocks)
    from_memory = _fetched(tiles, high, wide) * k * _ELEMENT
    if (m + n) * k * _ELEMENT < costs.held:
        from_memory = min(from_memory, (m + n) * k * _ELEMENT / waves)
    from_cache = slices * (tiles.rows / along + tiles.columns / across) * _SLICE * _ELEMENT * busy
    products = ceil(busy / PROCESSORS) * (slices * (tiles.step + costs.pad * outside) + tiles.store)
    parts = (products, from_memory / costs.memory, from_cache / costs.cache)
    return costs.launch + waves * sum(part**costs.overlap for part in parts) ** (1 / costs.overlap) + tiles.after


def _tiles(config: Known, m: int, n: int, costs: Costs) -> tuple[_Tiles, int, int]:
    """Tiles, and the extents that they cover: of few rows of A, rows of B are the rows of a tile."""
    if isinstance(config, Skinny):
        leaves = costs.single * config.bn * config.bm / _HALF**2
        return _Tiles(config.bn, config.bm, (1, 1), 0, _exchanged(config.bn, config.bm, costs), leaves), n, m
    if isinstance(config, Split):
        exchange = costs.meet + (costs.exchange or 0.0) * config.bm * config.bn / _ROWS**2
        if config.swap_ab:
            exchange += costs.single * config.bm * config.bn / _HALF**2 / config.splits
        step = _exchanged(config.bm, config.bn, costs) if config.swap_ab else costs.step[config.bn]
        beside = 2 if config.bytes <= _TWO else 1
        made = _Tiles(config.bm, config.bn, (1, 1), 0, step, exchange, config.splits, beside=beside)
        return (made, n, m) if config.swap_ab else (made, m, n)
    across, along = (*config.cluster, 1)[:2]
    step, store = costs.step[config.bn], costs.store * (config.bn // (64 if config.bn % 64 == 0 else 32))
    band = config.group or config.curve // 2  # of a wave, half of a square
    made = _Tiles(config.bm, config.bn, (across, along), band, step, store)
    if config.pingpong:
        made = evolve(made, step=step * costs.half * config.bm / _HALF, store=0.0, after=store)
    return made, m, n


def _exchanged(rows: int, columns: int, costs: Costs) -> float:
    """For 64 of K of a tile of C^T."""
    return rows / _HALF * (costs.skinny + costs.column * columns)


def _fetched(tiles: _Tiles, high: int, wide: int) -> int:
    """Rows of both operands that a wave of tiles reads."""
    across, together = tiles.together[0], PROCESSORS * tiles.beside // tiles.parts
    if tiles.band:
        rows = max(1, min(tiles.band * across, high))
        columns = min(wide, ceil(together / rows))
    else:
        columns = max(1, min(wide, together // across))
        rows = min(high, max(across, ceil(together / columns)))
    return rows * tiles.rows + columns * tiles.columns


def cheapest(configs: Mapping[str, object], m: int, n: int, k: int, costs: Costs = H200) -> str:
    """The name of the configuration that is expected to take least, of those that the model speaks of."""
    known = {name: config for name, config in configs.items() if isinstance(config, Known)}
    fitted = {name: config for name, config in known.items() if is_fitted(config, costs)}
    if m > _MOST_ROWS:
        fitted = {name: config for name, config in fitted.items() if not is_exchanged(config)} or fitted

    def cost(name: str) -> tuple[float, int]:
        """Of those that the cache makes equal, the one that leaves it most room."""
        tiles, high, wide = _tiles(fitted[name], m, n, costs)
        rows = _fetched(tiles, ceil(high / tiles.rows), ceil(wide / tiles.columns))
        return microseconds(fitted[name], m, n, k, costs), rows

    return min(fitted, key=cost)


def is_exchanged(config: object) -> bool:
    """Whether C^T = B A^T is what it computes: its sums leave by single elements."""
    return isinstance(config, Skinny) or (isinstance(config, Split) and config.swap_ab)


def is_fitted(config: Known, costs: Costs) -> bool:
    """Whether tiles like these have been measured; a ring of two slots waits for memory in another way."""
    if isinstance(config, Skinny):
        return True
    known = config.stages >= _FEWEST and config.bn in costs.step
    if isinstance(config, Split):
        measured = config.bk == _SLICE if config.swap_ab else known and config.bm == _ROWS
        return measured and costs.exchange is not None
    return known
