"""Thread-value layouts for copies, reductions and replicated values, and elected lanes."""

from __future__ import annotations

from math import prod

from attrs import frozen

from argus.core import algebra
from argus.core.dsl.faults import fault
from argus.core.dsl.handles import extent, extents
from argus.core.dsl.tracer import current
from argus.core.index import Const
from argus.core.ir import View
from argus.core.layout import TV, Layout
from argus.core.tiling import spread as spread_layout


def spread(tile: tuple[int, ...], *, threads: int | None = None, vector: int) -> TV:
    """A layout of `threads` over the rows of a tile (or a one-dimensional tile), `vector` consecutive elements each.

    threads: by default those of the block, or of the agent inside a role. Raises E109 if they do not divide the tile.
    """
    covered, among, width = extents(tile, "`tile`"), _threads(threads, "spread"), extent(vector, "`vector`")
    if len(covered) not in (1, 2):
        fault("E106", f"threads are spread over one axis or two, found {len(covered)}", help="write `(rows, columns)`")
    try:
        if len(covered) == 2:
            return spread_layout((covered[0], covered[1]), among, width)
        return _spread_axis(covered[0], among, width)
    except ValueError as problem:
        fault("E109", str(problem), help="change the tile, the threads or the vector so that they divide")


def _spread_axis(count: int, threads: int, vector: int) -> TV:
    if count % (threads * vector) != 0:
        raise ValueError(f"{threads} threads of {vector} elements do not divide {count}")
    times = count // (threads * vector)
    return TV(Layout(threads, vector), Layout((vector, times), (1, threads * vector)), (count,))


def runs(tile: tuple[int, ...], *, threads: int | None = None, vector: int) -> TV:
    """A blocked layout of a one-dimensional tile: thread t holds the t-th run of consecutive elements.

    threads: by default those of the block, or of the agent inside a role. Raises E109 unless the runs are multiples of
    `vector`.
    """
    covered, among, width = extents(tile, "`tile`"), _threads(threads, "runs"), extent(vector, "`vector`")
    if len(covered) != 1:
        fault("E106", f"runs take a tile of one axis, found {len(covered)}", help="write `(elements,)`")
    if covered[0] % (among * width) != 0:
        fault(
            "E109",
            f"{covered[0]} elements are not runs of multiples of {width} for {among} threads",
            help="change the tile, the threads or the vector so that they divide",
        )
    run = covered[0] // among
    return TV(Layout(among, run), Layout(run, 1), covered)


def replicated(threads: int | None = None) -> TV:
    """The layout of a scalar that every thread holds; by default every thread of the block, or of the agent."""
    return TV(Layout(_threads(threads, "replicated"), 0), Layout(1, 0), ())


def _threads(given: int | None, what: str) -> int:
    """The threads of a layout: those given, or those that run the current statements. Raises E105 outside a kernel."""
    return current(what).agent.threads if given is None else extent(given, "`threads`")


@frozen
class AllToEach:
    """The argument of `load` by which every thread holds every element of the tile."""

    threads: int

    def layout_for(self, view: View) -> TV:
        """The layout for this view. Raises E209 for symbolic extents."""
        shape = tuple(size.value for size in view.shape if isinstance(size, Const))
        if len(shape) != len(view.shape):
            fault("E209", f"`{view.buffer.name}` has a symbolic extent", help="load tiles of static shape")
        return TV(Layout(self.threads, 0), Layout(prod(shape), 1), shape)


def all_to_each(threads: int | None = None) -> AllToEach:
    """The layout of a `load` by which each of `threads` threads, by default all, gets the whole tile."""
    return AllToEach(_threads(threads, "all_to_each"))


@frozen
class ElectedLane:
    """The first or last lane of each warp, or the first thread alone, for a copy of a value that all of them hold."""

    from_end: bool
    alone: bool = False

    def mask(self, target: View) -> View:
        """The target, masked out for all other lanes, so that they write nothing."""
        tracer = current("copy")
        unit, number = tracer.target.unit, algebra.sym(tracer.agent.thread)
        lane = number if self.alone else algebra.mod(number, unit)
        chosen = algebra.eq(lane, unit - 1 if self.from_end else 0)
        return View(target.buffer, target.shape, target.at, algebra.all_of((target.where, chosen)), target.peer)


first_lane = ElectedLane(from_end=False)
last_lane = ElectedLane(from_end=True)
"""`copy(x, box, by=first_lane)`: only the first (last) lane of each warp writes."""
first_thread = ElectedLane(from_end=False, alone=True)
"""`copy(x, box, by=first_thread)`: only the first thread of the block, or of the agent, writes."""
