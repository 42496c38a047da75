"""Persistent kernels: a fixed number of blocks, each of which takes tile after tile."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from argus.core import algebra
from argus.core.dsl.control import Iteration
from argus.core.dsl.faults import described, fault
from argus.core.dsl.handles import Int, IntLike, extent, several, unwrap
from argus.core.dsl.place import called_by_for, user_frame
from argus.core.dsl.tracer import Tracer, current
from argus.core.index import Index, Symbol

Order = Callable[[Int, tuple[Int, ...]], tuple[IntLike, ...]]
"""From a tile's number and the counts of tiles to its coordinates: a bijection, which is proved."""


def by_rows(number: Int, counts: tuple[Int, ...]) -> tuple[Int, ...]:
    """Last axis fastest."""
    return tuple(reversed(_digits(number, tuple(reversed(counts)))))


def by_columns(number: Int, counts: tuple[Int, ...]) -> tuple[Int, ...]:
    """First axis fastest."""
    return _digits(number, counts)


def _digits(number: Int, counts: tuple[Int, ...]) -> tuple[Int, ...]:
    found: list[Int] = []
    for count in counts[:-1]:
        found.append(number % count)
        number = number // count
    return (*found, number)


def super_tiled(rows: int) -> Order:
    """Two axes: bands of `rows` rows (the last may be lower), each column by column, so that tiles nearby in time
    share rows and columns in the second-level cache.
    """
    height = extent(rows, "the rows of a super-tile")

    def order(number: Int, counts: tuple[Int, ...]) -> tuple[Int, ...]:
        if len(counts) != 2:
            fault("E106", f"super-tiles of {len(counts)} axes", help="order tiles of two axes so")
        m, n = counts
        band = number // (n * height)
        inside = number - band * (n * height)
        high = Int(algebra.minimum(height, (m - band * height).node))
        column = inside // high
        return band * height + (inside - column * high), column

    return order


class Persistent:
    """`for m, n in tiles`: this block's tiles, block + i * blocks in the order given.

    Each role that iterates walks the same tiles; `every(n, start=i)` takes each n-th of them from i on.
    """

    def __init__(
        self, counts: tuple[Int, ...], order: Order, blocks: int, block: Symbol, start: Index, step: int
    ) -> None:
        self._counts, self._order, self._blocks, self._block = counts, order, blocks, block
        self._start, self._step = start, step

    def every(self, step: int, *, start: IntLike = 0) -> Persistent:
        """Each `step`-th tile of this block, from number `start` on."""
        by, first = extent(step, "the step of tiles"), algebra.mul(unwrap(start), self._step)
        return Persistent(
            self._counts, self._order, self._blocks, self._block, algebra.add(self._start, first), self._step * by
        )

    def __iter__(self) -> Iterator[tuple[Int, ...]]:
        frame = user_frame()
        if frame is not None and not called_by_for(frame):
            fault(
                "E106",
                "the tiles of a kernel are not those of a `for` statement",
                here="`enumerate`, `zip` and `list` would count the one traced iteration",
                help="write `for m, n in tiles:`",
            )
        return _Tiles(current("persistent"), self)

    def bounds(self) -> tuple[Index, Index, int]:
        """Of the number of a tile among this block's."""
        total: Index = algebra.const(1)
        for count in self._counts:
            total = algebra.mul(total, count.node)
        mine = algebra.ceil_div(algebra.sub(total, algebra.sym(self._block)), self._blocks)
        return self._start, mine, self._step

    def place(self, i: Int) -> tuple[Int, ...]:
        """The coordinates of this block's tile number i."""
        found = several(
            self._order(Int(algebra.sym(self._block)) + i * self._blocks, self._counts), "an order of tiles"
        )
        if len(found) != len(self._counts):
            fault(
                "E106",
                f"the order gives {len(found)} coordinates for {len(self._counts)} axes",
                help="return one coordinate for each count",
            )
        return tuple(Int(unwrap(part)) for part in found)


class _Tiles:
    """The one traced iteration over tiles."""

    def __init__(self, tracer: Tracer, tiles: Persistent) -> None:
        self._tiles = tiles
        self._inner = Iteration(tracer, *tiles.bounds(), None, "tile")

    def __iter__(self) -> _Tiles:
        return self

    def __next__(self) -> tuple[Int, ...]:
        return self._tiles.place(next(self._inner))


def persistent(counts: tuple[IntLike, ...], *, order: Order = by_rows, blocks: int | None = None) -> Persistent:
    """Tiles in a grid of `counts`, taken by `blocks` blocks (the target's processors); declares the kernel's grid.

    order: `by_rows`, `by_columns`, `super_tiled(rows)`, or a function of the tile's number and the counts.
    """
    tracer = current("persistent")
    if tracer.grid:
        fault("E106", "the grid is declared twice", help="call `persistent` or `block_id` once and keep its result")
    if not callable(order):
        fault("E106", f"an order of tiles is a function, found {described(order)}", help="write `order=by_rows`")
    sizes = tuple(Int(unwrap(count)) for count in several(counts, "`persistent`"))
    if not sizes:
        fault("E106", "a grid of no axes", help="count the tiles along one axis at least")
    number = tracer.target.processors if blocks is None else extent(blocks, "the number of blocks")
    block = Symbol(tracer.unique("block_0"), "block", 0, number - 1)
    tracer.grid, tracer.blocks = (algebra.const(number),), (block,)
    return Persistent(sizes, order, number, block, algebra.const(0), 1)
