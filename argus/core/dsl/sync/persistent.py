"""Persistent kernels: a fixed number of blocks, each of which loops over tiles."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from argus.core import algebra
from argus.core.dsl.control import Iteration
from argus.core.dsl.faults import describe_value, fault
from argus.core.dsl.handles import Int, IntLike, axis_values, extent, unwrap
from argus.core.dsl.source_location import called_by_for, user_frame
from argus.core.dsl.sync.tile_orders import Order, by_rows
from argus.core.dsl.tracer import Tracer, current
from argus.core.index import Bin, Const, Index, Symbol
from argus.core.tile_rounds import TileRounds

ClusterAxis = tuple[int, Index]
"""The blocks of a cluster along one axis of tiles, and the index of this block among them."""


class Persistent:
    """`for m, n in tiles`: iterates over this block's tiles, one a round (`TileRounds`), in the tile order.

    Every role that iterates visits the same tiles; `every(n, start=i)` visits each n-th of them from the i-th on.
    """

    def __init__(
        self,
        counts: tuple[Int, ...],
        order: Order,
        rounds: TileRounds,
        block: Symbol,
        cluster_axes: tuple[ClusterAxis, ...],
    ) -> None:
        self._counts, self._order, self._rounds, self._block = counts, order, rounds, block
        self._cluster_axes = cluster_axes
        self._start: Index = algebra.const(0)
        self._step = 1

    def every(self, step: int, *, start: IntLike = 0) -> Persistent:
        """Each `step`-th of this block's tiles, from the `start`-th on."""
        by, first = extent(step, "the step of tiles"), algebra.mul(unwrap(start), self._step)
        made = Persistent(self._counts, self._order, self._rounds, self._block, self._cluster_axes)
        made._start, made._step = algebra.add(self._start, first), self._step * by
        return made

    def __iter__(self) -> Iterator[tuple[Int, ...]]:
        frame = user_frame()
        if frame is not None and not called_by_for(frame):
            fault(
                "E106",
                "the tiles of a kernel are not iterated by a `for` statement",
                here="`enumerate`, `zip` and `list` would count the one traced iteration",
                help="write `for m, n in tiles:`",
            )
        return _Tiles(current("persistent"), self)

    def index_bounds(self) -> tuple[Index, Index, int]:
        """Start, stop and step of the loop over the indices of this block's tiles."""
        total: Index = algebra.const(1)
        for count in self._counts:
            total = algebra.mul(total, count.node)
        return self._start, self._rounds.count(algebra.sym(self._block), total), self._step

    def coordinates(self, i: Int) -> tuple[Int, ...]:
        """The coordinates of this block's i-th tile."""
        number = Int(self._rounds.number(algebra.sym(self._block), i.node))
        found = axis_values(self._order(number, self._counts), "an order of tiles")
        if len(found) != len(self._counts):
            fault(
                "E106",
                f"the order gives {len(found)} coordinates for {len(self._counts)} axes",
                help="return one coordinate for each count",
            )
        cluster_axes = zip(found, self._cluster_axes, strict=True)
        return tuple(Int(algebra.add(algebra.mul(unwrap(part), size), rank)) for part, (size, rank) in cluster_axes)


class _Tiles:
    """The one traced iteration over tiles."""

    def __init__(self, tracer: Tracer, tiles: Persistent) -> None:
        self._tiles = tiles
        self._inner = Iteration(tracer, *tiles.index_bounds(), None, "tile")

    def __iter__(self) -> _Tiles:
        return self

    def __next__(self) -> tuple[Int, ...]:
        return self._tiles.coordinates(next(self._inner))


def persistent(
    counts: tuple[IntLike, ...], *, order: Order = by_rows, blocks: int | None = None, zigzag: bool = False
) -> Persistent:
    """A grid of `counts` tiles, distributed over `blocks` blocks; declares the kernel's grid.

    blocks: by default the number of processors of the target. order: `by_rows`, `by_columns`, `super_tiled(rows)`,
    `curved(side)`, `longest_first(sections=n)`, or a function of the tile's number and the counts. With clusters, the
    order is over groups of adjacent tiles, one tile per block of a cluster, and a block may get an out-of-bounds tile.
    zigzag: every second round of tiles is distributed from the last block to the first, so that the block with the
    longest tile of one round has the shortest of the next.
    """
    tracer = current("persistent")
    _check_no_grid(tracer)
    if not callable(order):
        fault("E106", f"an order of tiles is a function, found {describe_value(order)}", help="write `order=by_rows`")
    sizes = tuple(Int(unwrap(count)) for count in axis_values(counts, "`persistent`"))
    if not sizes:
        fault("E106", "a grid of no axes", help="count the tiles along one axis at least")
    number = tracer.target.processors if blocks is None else extent(blocks, "the number of blocks")
    cluster_axes = _declare_cluster(tracer, number, len(sizes))
    groups = tuple(Int(_ceil_div(size.node, extent)) for size, (extent, _) in zip(sizes, cluster_axes, strict=True))
    clusters = number // prod(extent for extent, _ in cluster_axes)
    block = Symbol(tracer.unique(f"block_{len(tracer.blocks)}"), "block", 0, clusters - 1)
    tracer.grid, tracer.blocks = (*tracer.grid, algebra.const(clusters)), (*tracer.blocks, block)
    return Persistent(groups, order, TileRounds(clusters, zigzag), block, cluster_axes)


def one_block_of(tracer: Tracer, blocks: int | None) -> tuple[int, Symbol]:
    """Declare a grid of `blocks` blocks without clusters; returns how many they are, and this block."""
    _check_no_grid(tracer)
    number = tracer.target.processors if blocks is None else extent(blocks, "the number of blocks")
    if prod(tracer.cluster) != 1:
        fault("E106", "clusters divide no segments", help="use `persistent`, or blocks without clusters")
    block = Symbol(tracer.unique("block_0"), "block", 0, number - 1)
    tracer.grid, tracer.blocks = (algebra.const(number),), (block,)
    return number, block


def _check_no_grid(tracer: Tracer) -> None:
    if tracer.grid:
        fault("E106", "the grid is declared twice", help="call `persistent` or `block_id` once and keep its result")


def _ceil_div(count: Index, size: int) -> Index:
    """The count divided by a size, rounded up; a count that is a quotient is folded into a single quotient."""
    if size > 1 and isinstance(count, Bin) and count.op == "//" and isinstance(count.right, Const):
        below = count.right.value
        return algebra.floordiv(algebra.add(count.left, below * (size - 1)), below * size)
    return algebra.ceil_div(count, size)


def _declare_cluster(tracer: Tracer, blocks: int, axes: int) -> tuple[ClusterAxis, ...]:
    """For each axis of tiles, the blocks of a cluster along it and the index of this block among them.

    With clusters, declares a first grid axis for the rank. Raises E230 for a cluster that does not fit.
    """
    cluster = tracer.cluster
    total = prod(cluster)
    if total == 1:
        return ((1, algebra.const(0)),) * axes
    if len(cluster) > axes or blocks % total != 0:
        what = f"a cluster of {' x '.join(map(str, cluster))} blocks, {blocks} blocks and {axes} axes of tiles"
        fault("E230", what, help="give as many axes of tiles, and whole clusters of blocks")
    first = Symbol(tracer.unique("block_0"), "block", 0, total - 1)
    rank = algebra.sym(first)
    tracer.grid, tracer.blocks = (algebra.const(total),), (first,)
    tracer.cluster, tracer.rank = (total, 1), rank
    found: list[ClusterAxis] = []
    for size in (*cluster, *(1 for _ in range(axes - len(cluster)))):
        found.append((size, algebra.mod(rank, size)))
        rank = algebra.floordiv(rank, size)
    return tuple(found)
