"""The cost model of GEMM configurations on sm_90a, fitted to times on one H200; chooses a configuration for a shape.

The time of a product is the p-norm of three times that overlap in part: matrix products, traffic of the memory, and
operand traffic from L2. `benchmarks/dense_h200.py search` measures, `benchmarks/fit.py` fits.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, inf

from attrs import frozen

from argus.kernels.schedules.hopper import RESIDENT, Hopper
from argus.kernels.schedules.skinny import Skinny
from argus.kernels.schedules.split import Split
from argus.kernels.schedules.staged import Staged
from argus.kernels.schedules.stream_k import Reduction
from argus.kernels.streamk import Stream

PROCESSORS = 132
"""SMs of an H100 or H200; each works on one tile at a time."""
_ELEMENT = 2
"""Bytes of bf16."""
_SLICE = 64
"""Elements of K per `step`."""
_FEWEST = 3
_ROWS, _HALF, _PAIR = 128, 64, 2
_MOST_WAVES = 2
"""Of tiles of few rows, whose CTAs take one each."""
_TWO = 115_712
"""Bytes of shared memory per CTA with which two CTAs fit on an SM."""


Known = Hopper | Skinny | Split | Staged | Stream


@frozen
class Costs:
    """The fitted parameters; times are in microseconds.

    step: time per 64 of K of a tile with 128 rows, by the tile's columns; half: with 64 rows, relative to that.

    skinny: time per 64 of K and 64 rows of B with swap-AB; column: additional time per row of A; product: least time
    per row of A. alone: time per 64 of K of a tile of 64 rows by one warpgroup; column_alone: additional per column;
    leave: to store 64 columns of it. pad: per row of a tile outside its tensor, which TMA fills with zeros more slowly
    than it loads others.

    store: time to store one box of a tile's columns. single: time to store 64 x 64 of a tile of C^T by single elements,
    singly: by one warpgroup alone; shared: by the CTAs of a cluster, each its part. tile: of a tile without a box.

    launch: fixed time of a launch; once: of one whose clusters have a tile each, or a part of it; least: of CTAs of one
    warpgroup. clustered, fours: in addition, of one with clusters that share tiles, and with more than two CTAs in
    each. memory, cache: bytes per microsecond from memory and from L2; port: into an SM, those by multicast too.
    cache_misaligned: how much longer L2 takes for rows that begin at odd multiples of 64, 32 and 16 bytes;
    port_misaligned: an SM.
    held: bytes of operands that are read from memory once. out: time to write C, relative to reading as many bytes.
    overlap: exponent of the norm.

    exchange: with split-K, time to exchange the partial sums of 128 x 128 of a tile within a cluster; meet: time of the
    cluster's barrier. exchange is None if it has not been measured. spill: time to store those sums to a workspace;
    second: of the launch that adds them, each: for each of its loads in turn, reduce: bytes that it adds in a
    microsecond.
    """

    step: Mapping[int, float]
    half: float
    skinny: float
    column: float
    product: float
    alone: float
    column_alone: float
    leave: float
    pad: float
    store: float
    single: float
    singly: float
    shared: float
    tile: float
    launch: float
    once: float
    least: float
    clustered: float
    fours: float
    memory: float
    cache: float
    port: float
    cache_misaligned: tuple[float, float, float]
    port_misaligned: tuple[float, float, float]
    held: float
    out: float
    overlap: float
    meet: float
    spill: float
    second: float
    each: float
    reduce: float
    exchange: float | None = None


H200 = Costs(
    step={256: 0.4049, 224: 0.3453, 192: 0.2636, 160: 0.2325, 128: 0.2523, 96: 0.1367, 64: 0.1364, 32: 0.1232},
    half=0.5228,
    skinny=0.0672,
    column=0.0002829,
    product=0.000608,
    alone=0.04915,
    column_alone=0.0003228,
    leave=0.1277,
    pad=0.0005941,
    store=0.2264,
    single=0.5899,
    singly=0.8848,
    shared=0.4965,
    tile=0.05212,
    launch=3.342,
    once=2.842,
    least=3.355,
    clustered=0.04888,
    fours=0.08592,
    memory=6.313e6,
    cache=15.11e6,
    port=224700.0,
    cache_misaligned=(0.1725, 0.07274, 1.404),
    port_misaligned=(0.007454, 0.07121, 0.006332),
    held=239.0e6,
    out=2.151,
    overlap=1.617,
    meet=0.8834,
    spill=0.06157,
    second=2.386,
    each=0.1237,
    reduce=1.531e6,
    exchange=2.613,
)

H200_E4M3 = Costs(
    step={256: 0.4604, 224: 0.4048, 192: 0.359, 160: 0.2874, 128: 0.2546, 96: 0.1659, 64: 0.1502, 32: 0.1147},
    half=0.5906,
    skinny=0.06679,
    column=0.0003909,
    product=0.00088,
    alone=0.08839,
    column_alone=0.0001476,
    leave=0.313,
    pad=0.0004685,
    store=0.1383,
    single=0.25,
    singly=0.25,
    shared=0.1421,
    tile=0.1574,
    launch=2.989,
    once=2.455,
    least=2.676,
    clustered=0.0,
    fours=0.0,
    memory=6.841e6,
    cache=21.3e6,
    port=1e9,
    cache_misaligned=(0.4838, 0.3861, 1.485),
    port_misaligned=(0.0, 0.0, 0.0),
    held=202.4e6,
    out=1.741,
    overlap=1.238,
    meet=0.8523,
    spill=0.112,
    second=1.906,
    each=0.01825,
    reduce=2.3e6,
    exchange=1.734,
)
"""For e4m3, whose extent K takes the time of K / 2 in 16 bits: an earlier fit, but for tiles of 192 columns, which take
0.78 of those of 256 in the median of six shapes.
"""


@frozen
class _Tiles:
    """rows, columns: of a tile. cluster: CTAs along both axes. band: rows of tiles of a super-tile.

    splits: CTAs of a cluster that split the K of a tile; parts: clusters that do. store: time of a tile's epilogue that
    is not overlapped; after: time after the last tile. per_sm: CTAs per SM. launch: its fixed time.
    """

    rows: int
    columns: int
    cluster: tuple[int, int]
    band: int
    step: float
    store: float
    launch: float
    splits: int = 1
    parts: int = 1
    after: float = 0.0
    per_sm: int = 1

    @property
    def blocks(self) -> int:
        """CTAs of a cluster."""
        return self.cluster[0] * self.cluster[1] * self.splits

    @property
    def resident(self) -> int:
        """Clusters that run at a time."""
        return min(PROCESSORS * self.per_sm // self.blocks, self.per_sm * RESIDENT.get(self.blocks, PROCESSORS))


def microseconds(config: Known, m: int, n: int, k: int, costs: Costs = H200) -> float:
    """Predicted time of C = A @ B^T of these extents; infinite for larger clusters than pairs that do not all run at a
    time, as those have not been measured, and for more waves of tiles of few rows than two: of shapes with so many,
    persistent tiles were faster wherever both were measured.
    """
    tiles, rows, columns = _tiles(config, m, n, costs)
    across, along = tiles.cluster
    high, wide = ceil(rows / tiles.rows), ceil(columns / tiles.columns)
    outside = (tiles.rows - rows / max(1, high)) + (tiles.columns - columns / max(1, wide))
    clusters = ceil(high / across) * ceil(wide / along) * tiles.parts
    waves = max(1, ceil(clusters / tiles.resident))
    if waves > 1 and tiles.blocks > _PAIR * tiles.splits and tiles.parts == 1:
        return inf
    if waves > _MOST_WAVES and isinstance(config, Skinny):
        return inf
    slices = ceil(k / (_SLICE * tiles.splits * tiles.parts))
    busy = min(PROCESSORS * tiles.per_sm, clusters * tiles.blocks)
    read = (m + n) * k * _ELEMENT
    fetched = waves * _fetched(tiles, high, wide) * k * _ELEMENT
    moved = (min(fetched, read) if read < costs.held else fetched) + costs.out * m * n * _ELEMENT
    from_cache = waves * slices * (tiles.rows / along + tiles.columns / across) * _SLICE * _ELEMENT * busy
    products = waves * ceil(busy / PROCESSORS) * (slices * (tiles.step + costs.pad * outside) + tiles.store)
    into = waves * slices * (tiles.rows + tiles.columns) * _SLICE * _ELEMENT * ceil(busy / PROCESSORS)
    loads = (
        from_cache * _misaligned(k, costs.cache_misaligned) / costs.cache,
        into * _misaligned(k, costs.port_misaligned) / costs.port,
    )
    each = (products, moved / costs.memory, *loads)
    launch = tiles.launch + (costs.clustered if tiles.blocks > tiles.splits else 0.0)
    launch += costs.fours if tiles.blocks > _PAIR else 0.0
    return launch + sum(part**costs.overlap for part in each) ** (1 / costs.overlap) + tiles.after


def _misaligned(k: int, extra_of: tuple[float, float, float]) -> float:
    """Time of loads relative to that for rows that begin at multiples of 128 bytes."""
    levels = [extra for level, extra in enumerate(extra_of) if k % (_SLICE >> level)]
    return 1 + (levels[-1] if levels else 0.0)


def _tiles(config: Known, m: int, n: int, costs: Costs) -> tuple[_Tiles, int, int]:
    """The tiles, and the extents of C that they cover, transposed for swap-AB."""
    if isinstance(config, Skinny):
        single = costs.singly if config.bn == _HALF else costs.single
        leaves = costs.tile + single * config.bn * config.bm / _HALF**2
        step, cluster = _swap_ab_step(config.bn, config.bm, costs), (config.peers, 1)
        made = _Tiles(config.bn, config.bm, cluster, 0, step, leaves, costs.launch)
        return made, n, m
    if isinstance(config, Split):
        exchange = costs.meet + (costs.exchange or 0.0) * config.bm * config.bn / _ROWS**2
        if config.swap_ab:
            exchange += costs.shared * config.bm * config.bn / _HALF**2 / config.splits
        step = (_swap_ab_step if config.swap_ab else _step)(config.bm, config.bn, costs)
        per_sm = 2 if config.bytes <= _TWO else 1
        made = _Tiles(config.bm, config.bn, (1, 1), 0, step, exchange, costs.once, config.splits, per_sm=per_sm)
        return (made, n, m) if config.swap_ab else (made, m, n)
    if isinstance(config, Staged):
        per_sm = 2 if 2 * config.stages * (config.bm + config.bn) * config.bk <= _TWO else 1
        step, store = costs.alone + costs.column_alone * config.bn, costs.leave * config.bn / _HALF
        return _Tiles(config.bm, config.bn, (1, 1), 0, step, store, costs.least, per_sm=per_sm), m, n
    if isinstance(config, Stream):
        step = (_swap_ab_step if config.swap_ab else _step)(config.bm, config.bn, costs)
        high, wide = (n, m) if config.swap_ab else (m, n)
        sums = ceil(high / config.bm) * ceil(wide / config.bn) * config.bm * config.bn * config.chunks
        loads = config.chunks / Reduction(config.runs).at_once
        after = costs.second + costs.each * loads + 2 * _ELEMENT * sums / costs.reduce
        store = costs.tile + costs.spill * config.bm * config.bn / _ROWS**2
        cluster = (config.peers, 1)
        made = _Tiles(config.bm, config.bn, cluster, 0, step, store, costs.once, parts=config.chunks, after=after)
        return made, high, wide
    step = _step(config.bm, config.bn, costs)
    across, along = (*config.cluster, 1)[:2]
    boxes = costs.store * (config.bn // (64 if config.bn % 64 == 0 else 32))
    if config.single:
        boxes += costs.single * config.bm * config.bn / _HALF**2
    band = config.group or config.curve // 2  # a wave covers about half a square
    store, after = (0.0, boxes) if config.pingpong else (boxes, 0.0)
    return _Tiles(config.bm, config.bn, (across, along), band, step, store, costs.launch, after=after), m, n


def _step(rows: int, columns: int, costs: Costs) -> float:
    """Time per 64 of K of a tile."""
    return costs.step[columns] * (costs.half if rows == _HALF else rows / _ROWS)


def _swap_ab_step(rows: int, columns: int, costs: Costs) -> float:
    """Time per 64 of K of a tile of C^T."""
    return rows / _HALF * max(costs.skinny + costs.column * columns, costs.product * columns)


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

    def cost(name: str) -> tuple[float, int]:
        """Predicted time; ties, which L2 causes, go to the configuration that reads the fewest rows per wave."""
        tiles, high, wide = _tiles(fitted[name], m, n, costs)
        rows = _fetched(tiles, ceil(high / tiles.rows), ceil(wide / tiles.columns))
        return microseconds(fitted[name], m, n, k, costs), rows

    return min(fitted, key=cost)


def is_swap_ab(config: object) -> bool:
    """Whether it computes C^T = B A^T (swap-AB), and so stores single elements."""
    return isinstance(config, Skinny) or (isinstance(config, Split) and config.swap_ab)


def stores_elements(config: object) -> bool:
    """Whether it stores single elements of C, so that rows of C may have any length."""
    return is_swap_ab(config) or (isinstance(config, Hopper) and config.single)


def is_fitted(config: Known, costs: Costs) -> bool:
    """Whether the model has measurements of such tiles; a pipeline of two stages waits for memory differently."""
    if isinstance(config, Skinny):
        return True
    if isinstance(config, Staged):
        return config.tma and config.bm == _HALF and config.stages >= _FEWEST
    known = config.stages >= _FEWEST and config.bn in costs.step
    if isinstance(config, Stream):
        return (known or config.swap_ab) and config.run == 1
    if isinstance(config, Split):
        measured = config.bk == _SLICE if config.swap_ab else known
        return measured and costs.exchange is not None
    return known
