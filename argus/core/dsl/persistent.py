"""Persistent kernels: a fixed number of blocks, each of which takes tile after tile."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core import algebra
from argus.core.dsl.control import Iteration
from argus.core.dsl.faults import described, fault
from argus.core.dsl.handles import Int, IntLike, extent, several, unwrap
from argus.core.dsl.orders import Order, by_rows
from argus.core.dsl.place import called_by_for, user_frame
from argus.core.dsl.tracer import Tracer, current
from argus.core.index import Index, Symbol


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

    order: `by_rows`, `by_columns`, `super_tiled(rows)`, `longest_first(sections=n)`, or a function of the tile's number
    and the counts.
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
