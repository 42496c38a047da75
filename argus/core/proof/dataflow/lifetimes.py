"""Registers that hold something at once, at least.

A tile is held from an assignment to the last use of what was assigned, round the loops that carry it. A value that
one element-wise assignment computes is not counted: its elements need not exist together.
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
    """The register tiles that hold something where these need most, by size, the largest first."""
    search = _Backwards(_counted(kernel), size)
    search.before(kernel.body, frozenset())
    return tuple(sorted(search.most, key=lambda buffer: (-size(buffer), buffer.name)))


def _counted(kernel: Kernel) -> LiveSet:
    written: Counter[Buffer] = Counter()
    computed: Counter[Buffer] = Counter()
    for stmt in walk(kernel.body):
        if isinstance(stmt, Copy | Map | Fold | Mma) and stmt.target.buffer.space == "register":
            written[stmt.target.buffer] += 1
            computed[stmt.target.buffer] += isinstance(stmt, Map)
    return frozenset(buffer for buffer, times in written.items() if (times, computed[buffer]) != (1, 1))


@define
class _Backwards:
    """What is held before statements, given what is held after them. most: what needed most on the way."""

    counted: LiveSet
    size: Callable[[Buffer], int]
    most: LiveSet = frozenset()

    def before(self, body: tuple[Stmt, ...], after: LiveSet) -> LiveSet:
        held = after
        for stmt in reversed(body):
            self._note(held)
            held = self._one(stmt, held)
        self._note(held)
        return held

    def _note(self, held: LiveSet) -> None:
        if sum(map(self.size, held)) > sum(map(self.size, self.most)):
            self.most = held

    def _one(self, stmt: Stmt, after: LiveSet) -> LiveSet:
        if isinstance(stmt, For):
            first = self.before(stmt.body, after)
            return after | self.before(stmt.body, after | first)
        parts = bodies(stmt)
        if parts:
            return frozenset[Buffer]().union(*(self.before(part, after) for part in parts))
        written = _target(stmt)
        kept = after - {written.buffer} if written is not None and is_whole(written) else after
        return kept | {buffer for buffer in _read(stmt) if buffer in self.counted}


def _target(stmt: Stmt) -> View | None:
    """What a statement assigns whatever was there."""
    match stmt:
        case Copy(target=target) | Map(target=target) | Fold(target=target):
            return target
        case Mma(target=target, init=init) if init is TRUE:
            return target
        case _:
            return None


def _read(stmt: Stmt) -> tuple[Buffer, ...]:
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
