"""Persistent kernels over segments: one after another, each a grid of tiles, of counts that only the device knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from attrs import frozen

from argus.core import algebra
from argus.core.dsl.control import Iteration
from argus.core.dsl.faults import fault
from argus.core.dsl.handles import Int, IntLike, axis_values, unwrap
from argus.core.dsl.source_location import called_by_for, user_frame
from argus.core.dsl.sync.persistent import one_block_of
from argus.core.dsl.sync.tile_orders import Order, by_rows
from argus.core.dsl.sync.use_counters import UseCounters
from argus.core.dsl.tracer import Scope, Tracer, current
from argus.core.index import Cond, Index, Symbol
from argus.core.ir import If, Origin
from argus.core.tile_rounds import TileRounds

Counts = Callable[[Int], tuple[IntLike, ...]]
"""The counts of a segment's tiles."""


@frozen(eq=False)
class Segments:
    """`for m, n, s in tiles`: iterates over this block's tiles of all segments, in their order; s is the segment."""

    count: Int
    counts: Counts
    order: Order
    rounds: TileRounds
    block: Symbol
    passed: UseCounters

    def __iter__(self) -> Iterator[tuple[Int, ...]]:
        frame = user_frame()
        if frame is not None and not called_by_for(frame):
            fault(
                "E106",
                "the tiles of a kernel are not iterated by a `for` statement",
                here="`enumerate`, `zip` and `list` would count the one traced iteration",
                help="write `for m, n, s in tiles:`",
            )
        return _Tiles(current("segments"), self)


class _Tiles:
    """The one traced iteration over tiles."""

    def __init__(self, tracer: Tracer, tiles: Segments) -> None:
        self._tracer, self._of = tracer, tiles
        self._outer = Iteration(tracer, algebra.const(0), tiles.count.node, 1, None, "segment")
        self._left: tuple[Iteration, Cond, Scope] | None = None
        self._total: Index = algebra.const(1)

    def __iter__(self) -> _Tiles:
        return self

    def __next__(self) -> tuple[Int, ...]:
        if self._left is not None:
            self._leave(*self._left)
            raise StopIteration
        of, tracer = self._of, self._tracer
        segment = next(self._outer)
        counts = tuple(Int(unwrap(each)) for each in axis_values(of.counts(segment), "the counts of a segment"))
        for each in counts:
            self._total = algebra.mul(self._total, each.node)
        blocks = of.rounds.blocks
        _, begin = of.passed.read(tracer, "passed", _ORIGIN)
        turn = algebra.mod(segment.node, 2)
        if of.rounds.zigzag:
            begin = algebra.add(begin, algebra.mul(turn, self._passed))
        own = algebra.mod(algebra.add(algebra.sym(of.block), begin), blocks)
        rounds = Iteration(tracer, algebra.const(0), algebra.ceil_div(self._total, blocks), 1, None, "round")
        i = next(rounds).node
        place = of.rounds.place(own, algebra.add(i, turn) if of.rounds.zigzag else i)
        number = algebra.add(place, algebra.mul(i, blocks))
        self._left = rounds, algebra.lt(number, self._total), tracer.open("when")
        found = axis_values(of.order(Int(number), counts), "an order of tiles")
        return (*(Int(unwrap(each)) for each in found), segment)

    @property
    def _passed(self) -> Index:
        """How far a segment moves the blocks back."""
        return algebra.mod(algebra.mul(self._total, -1), self._of.rounds.blocks)

    def _leave(self, rounds: Iteration, taken: Cond, scope: Scope) -> None:
        tracer, of = self._tracer, self._of
        tracer.emit(If(taken, tracer.leave(scope), span=scope.span))
        with suppress(StopIteration):
            next(rounds)
        of.passed.advance(tracer, "passed", self._passed, _ORIGIN)
        with suppress(StopIteration):
            next(self._outer)


_ORIGIN = Origin("segments", 0)


def segments(
    count: IntLike, counts: Counts, *, order: Order = by_rows, blocks: int | None = None, zigzag: bool = False
) -> Segments:
    """Segments of `counts` tiles each, distributed over `blocks` blocks; declares the kernel's grid.

    A segment's first tile goes to the block after that of the last tile of the segment before, and so on in rounds.
    counts: of a segment's tiles along each axis, which may depend on integers from memory, such as offsets of packed
    rows. order: as for `persistent`. zigzag: every second round goes from the last block to the first; segments of odd
    number begin so, from the other end, so that the blocks with the long tiles of one have the short ones of the next.

    Each block runs through all segments, so that many that have fewer tiles than there are blocks cost time.
    """
    tracer = current("segments")
    number, block = one_block_of(tracer, blocks)
    return Segments(Int(unwrap(count)), counts, order, TileRounds(number, zigzag), block, UseCounters("segments"))
