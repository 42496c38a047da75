"""Computes by liveness analysis a lower bound on the register tiles that are live at once.

A tile is live from an assignment to the last use of the assigned value, including across loop iterations. A tile that
a single elementwise assignment computes is not counted: its elements need not be live at the same time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from attrs import define

from argus.core.algebra import TRUE
from argus.core.ir import Buffer, Copy, Fold, For, Kernel, Map, Mma, Stmt, View, bodies, walk
from argus.core.ir.element_walk import gets
from argus.core.proof.dataflow.timeline import is_whole

LiveSet = frozenset[Buffer]


def peak_live_tiles(kernel: Kernel, size: Callable[[Buffer], int]) -> tuple[Buffer, ...]:
    """The live register tiles at the point where their total `size` is greatest, the largest first."""
    search = _Liveness(_counted_tiles(kernel), size)
    search.live_before(kernel.body, frozenset())
    return tuple(sorted(search.peak, key=lambda buffer: (-size(buffer), buffer.name)))


def _counted_tiles(kernel: Kernel) -> LiveSet:
    """The register tiles that count: all written ones except those that a single `Map` computes."""
    written: Counter[Buffer] = Counter()
    computed: Counter[Buffer] = Counter()
    for stmt in walk(kernel.body):
        if isinstance(stmt, Copy | Map | Fold | Mma) and stmt.target.buffer.space == "register":
            written[stmt.target.buffer] += 1
            computed[stmt.target.buffer] += isinstance(stmt, Map)
    return frozenset(buffer for buffer, times in written.items() if (times, computed[buffer]) != (1, 1))


@define
class _Liveness:
    """Backward liveness over statements. peak: the live set of the greatest total size so far."""

    counted: LiveSet
    size: Callable[[Buffer], int]
    peak: LiveSet = frozenset()

    def live_before(self, body: tuple[Stmt, ...], after: LiveSet) -> LiveSet:
        live = after
        for stmt in reversed(body):
            self._update_peak(live)
            live = self._transfer(stmt, live)
        self._update_peak(live)
        return live

    def _update_peak(self, live: LiveSet) -> None:
        if sum(map(self.size, live)) > sum(map(self.size, self.peak)):
            self.peak = live

    def _transfer(self, stmt: Stmt, after: LiveSet) -> LiveSet:
        if isinstance(stmt, For):
            first = self.live_before(stmt.body, after)
            return after | self.live_before(stmt.body, after | first)
        parts = bodies(stmt)
        if parts:
            return frozenset[Buffer]().union(*(self.live_before(part, after) for part in parts))
        written = _overwritten_view(stmt)
        surviving = after - {written.buffer} if written is not None and is_whole(written) else after
        return surviving | {buffer for buffer in _read_buffers(stmt) if buffer in self.counted}


def _overwritten_view(stmt: Stmt) -> View | None:
    """The view that a statement overwrites without reading it; None if there is none."""
    match stmt:
        case Copy(target=target) | Map(target=target) | Fold(target=target):
            return target
        case Mma(target=target, init=init) if init is TRUE:
            return target
        case _:
            return None


def _read_buffers(stmt: Stmt) -> tuple[Buffer, ...]:
    match stmt:
        case Copy(source=source) | Fold(source=source):
            return (source.buffer,)
        case Map(elem=elem):
            return tuple(get.view.buffer for get in gets(elem))
        case Mma(target=target, a=a, b=b, init=init):
            views = (a, b) if init is TRUE else (target, a, b)
            return tuple(view.buffer for view in views)
        case _:
            return ()
