"""Claims about tags, judged on what each thread holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never, cast

import numpy as np

from argus.core.algebra import TRUE, coord
from argus.core.index import Cond, Index
from argus.core.ir import Assert, Buffer, Covers, Distinct, Equal, Order, Products, Relation, TagOf, View, WrittenOnce
from argus.core.layout import TV
from argus.core.walk import evaluate, show
from argus.interp.journal import Spot, spots
from argus.interp.machine import Wave
from argus.interp.memory import BOTTOM, MISSING, AnyArray, BoolArray, IntArray
from argus.interp.places import is_whole
from argus.interp.prepared import first_where, registers_of
from argus.interp.sets import LOOSE, is_set, is_single
from argus.interp.state import Block, Contribution, Gathered, coordinates
from argus.interp.stored import with_sets
from argus.interp.sums import Group, alike, deviation, groups
from argus.interp.violation import Event, not_built


def claim(block: Block, wave: Wave, stmt: Assert, event: Event) -> None:
    """Judge a claim for one wave; claims about whole blocks or tensors are judged at their end."""
    match stmt.claim:
        case Equal(left=left, right=right):
            _Judge(block, wave, event).equal(left, right)
        case Relation():
            _Judge(block, wave, event).relation(stmt.claim)
        case Distinct(components=components):
            _Judge(block, wave, event).gather(components)
        case Covers():
            _Judge(block, wave, event).covers(stmt.claim)
        case WrittenOnce() | Products():
            pass
        case Order():
            raise not_built(type(stmt.claim).__name__, stmt)
        case _:
            assert_never(stmt.claim)


class _Judge:
    """One claim, one wave. Garbage is passed over: what made it has been reported."""

    def __init__(self, block: Block, wave: Wave, event: Event) -> None:
        self.block, self.wave, self.event = block, wave, event
        self.records = block.launch.records

    def equal(self, left: TagOf, right: TagOf) -> None:
        a, b = self._component(left), self._component(right)
        if a.shape != b.shape:
            raise not_built("equality of fragments of different shapes", self.event.stmt)
        self._report_unequal(left, right, a, b, (a != b) & (a != MISSING) & (b != MISSING))

    def _report_unequal(self, left: TagOf, right: TagOf, a: IntArray, b: IntArray, bad: BoolArray) -> None:
        if not bad.any():
            return
        at = first_where(bad)
        facts = tuple((f"{of.view.buffer.name}.{of.name}", str(int(x[at]))) for of, x in ((left, a), (right, b)))
        message = f"`{left.view.buffer.name}.{left.name}` and `{right.view.buffer.name}.{right.name}` differ"
        self._report("I39", message, left.view, at, facts, bad)

    def relation(self, stated: Relation) -> None:
        """Judge a condition on components, those of a part of a tile as the threads that hold the whole have them.

        A component that is a set stands for each of its members.
        """
        leader = self._leader([of.view for _, of in stated.names])
        components = {symbol: self._component(of, leader) for symbol, of in stated.names}
        shapes = {column.shape for column in components.values()}
        if len(shapes) != 1:
            raise not_built("relation of fragments of different shapes", self.event.stmt)
        columns = np.stack([column.reshape(-1) for column in components.values()])
        kinds, first = np.unique(columns, axis=1, return_index=True)
        for at in np.argsort(first):
            found = kinds[:, at]
            if ((found == MISSING) | (found == LOOSE)).any():
                continue
            members = [np.array(self.records.sets.members(int(one)), np.int64) for one in found]
            grid = np.meshgrid(*members, indexing="ij")
            values = dict(zip(components, grid, strict=True))
            held = evaluate(stated.cond, {**self.wave.env, **values}, (), self.block.launch.prepared.integers)
            bad = ~np.broadcast_to(np.asarray(held, np.bool_), grid[0].shape)
            if bad.any():
                chosen = first_where(bad)
                facts = tuple((symbol.name, str(int(column[chosen]))) for symbol, column in values.items())
                where = divmod(int(first[at]), next(iter(shapes))[1])
                code = "I35" if is_set(found).any() and len({of.view.buffer for _, of in stated.names}) > 1 else "I39"
                self._report(code, f"`{show(stated.cond)}` does not hold", leader, where, facts)
                return

    def _leader(self, views: Sequence[View]) -> View:
        """A view that is a whole fragment, of as many elements as all of them have."""
        return next((view for view in views if is_whole(view)), views[0])

    def gather(self, components: Sequence[TagOf]) -> None:
        """Keep this wave's elements; `distinct` judges them when the block ends."""
        view = components[0].view
        if any(of.view.buffer is not view.buffer for of in components):
            raise not_built("distinctness across fragments", self.event.stmt)
        columns = [self._component(of) for of in components]
        rows = self._rows(view)
        lane = np.repeat(np.arange(rows.start, rows.stop, dtype=np.int64), columns[0].shape[1])
        value = np.tile(np.arange(columns[0].shape[1], dtype=np.int64), columns[0].shape[0])
        known = np.logical_and.reduce([column != MISSING for column in columns])
        flat = known.reshape(-1)
        kept = (*(column[known] for column in columns), lane[flat], value[flat])
        gathered = self.block.gathered.setdefault((self.event.stmt, self.event.path), Gathered(self.event))
        gathered.columns.append(kept)

    def covers(self, stated: Covers) -> None:
        view = stated.of.view
        marks = self._marks(view)
        judged = marks >= 0
        low, high = self._bound(stated.low, view), self._bound(stated.high, view)
        if stated.where is not TRUE:
            judged &= self._bound(stated.where, view).astype(np.bool_)
        known = self.block.sums.get((view.buffer, self.wave.number))
        if known is not None and known.open and alike(known.log):
            self._judge_groups(stated, known.log, judged, low, high)
            return
        components = self.records.get(stated.of.name, np.maximum(marks, 0))
        summed = self.records.summed(np.maximum(marks, 0))
        held = judged & summed & (is_set(components) | is_single(components))
        if held.any():
            self._judge_sets(stated, held, components, low, high)
        bare = judged & ~summed
        if bare.any():
            message = f"`{view.buffer.name}` holds no sum of products"
            self._report("I3", message, view, first_where(bare), ())

    def _judge_groups(
        self, stated: Covers, log: list[Contribution], judged: BoolArray, low: IntArray, high: IntArray
    ) -> None:
        width = judged.shape[1]
        first = self._rows(stated.of.view).start * width
        cells = log[0].cells - first
        wanted = judged.reshape(-1)[cells], low.reshape(-1)[cells], high.reshape(-1)[cells]
        worst: tuple[int, str] | None = None
        if stated.of.name in self.records.loose:
            return
        for group in groups(self.records, stated.of.name, log, *wanted):
            text = deviation(stated.of.name, group.components, group.low, group.high)
            if text is not None:
                cell = self._smallest(group, cells)
                worst = (cell, text) if worst is None or cell < worst[0] else worst
        if worst is not None:
            name = stated.of.name
            message = f"the sum over `{name}` is not [{show(stated.low)}, {show(stated.high)}): {worst[1]}"
            self._report("I3", message, stated.of.view, divmod(worst[0], width), ())

    def _judge_sets(self, stated: Covers, held: BoolArray, components: IntArray, low: IntArray, high: IntArray) -> None:
        """Elements whose records say what they sum."""
        name = stated.of.name
        columns = np.stack([components[held], low[held], high[held]])
        kinds, first = np.unique(columns, axis=1, return_index=True)
        where = np.flatnonzero(held.reshape(-1))
        for at in np.argsort(first):
            component, start, stop = (int(x) for x in kinds[:, at])
            if self.records.sets.is_range(component, start, stop):
                continue
            members = np.array(self.records.sets.members(component), np.int64)
            text = deviation(name, members, start, stop)
            if text is not None:
                message = f"the sum over `{name}` is not [{show(stated.low)}, {show(stated.high)}): {text}"
                self._report("I3", message, stated.of.view, divmod(int(where[first[at]]), held.shape[1]), ())
                return

    @staticmethod
    def _smallest(group: Group, cells: IntArray) -> int:
        return int(cells[group.members].min())

    def _rows(self, view: View) -> slice:
        return slice(self.wave.first, min(self.wave.last, registers_of(view.buffer)[0]))

    def _marks(self, view: View) -> IntArray:
        buffer = view.buffer
        if buffer.space != "register" or not is_whole(view):
            raise not_built("claim about memory other than a register fragment", self.event.stmt)
        flying = self.block.settle(self.wave, buffer, self.event, "read")
        threads, registers = registers_of(buffer)
        marks = cast(IntArray, self.block.cells(buffer).marks).reshape(threads, registers)[self._rows(view)]
        bottom = marks == BOTTOM
        if bottom.any() and not flying:
            message = f"`{buffer.name}` is claimed about while uninitialised"
            self._report("I38", message, view, first_where(bottom), ())
        return marks

    def _component(self, of: TagOf, leader: View | None = None) -> IntArray:
        """The component of every element held; a value without it breaks the claim.

        leader: a fragment whose elements a view of a part names.
        """
        marks = self._marks(of.view) if leader is None or is_whole(of.view) else self._part(of.view, leader)
        if leader is not None and is_whole(of.view):
            marks = with_sets(self.block, self.wave, of.view.buffer, marks)
        column = self.records.get(of.name, marks)
        bare = (column == MISSING) & (marks >= 0) & (of.name not in self.records.loose)
        if bare.any():
            at = first_where(bare)
            facts = (("found", self.records.text(int(marks[at]))),)
            self._report("I39", f"an element of `{of.view.buffer.name}` has no tag `{of.name}`", of.view, at, facts)
        return column

    def _part(self, view: View, leader: View) -> IntArray:
        """The marks of what a view names for each element of another fragment, as its thread holds them."""
        buffer = view.buffer
        if buffer.space != "register":
            raise not_built("claim about memory other than a register fragment", self.event.stmt)
        self.block.settle(self.wave, buffer, self.event, "read")
        by = cast(TV, leader.buffer.layout)
        own = tuple(coord(axis) for axis in range(len(by.tile)))
        cells = self.block.launch.prepared.held(view, by, own, self.event.stmt)[self._rows(leader)]
        return cast(IntArray, self.block.cells(buffer).marks)[cells]

    def _bound(self, node: Index | Cond, view: View) -> IntArray:
        layout = cast(TV, view.buffer.layout)
        rows = self._rows(view)
        coords = [axis[rows] for axis in layout.coordinates()]
        shape = (rows.stop - rows.start, layout.values.size())
        value = evaluate(node, self.wave.env, coords, self.block.launch.prepared.integers)
        return cast(IntArray, np.broadcast_to(np.asarray(value), shape))

    def _report(
        self,
        code: str,
        message: str,
        view: View,
        at: tuple[int, ...],
        facts: tuple[tuple[str, str], ...],
        bad: BoolArray | None = None,
    ) -> None:
        """Report an element; `bad` marks all of the wave's that fail in this way."""
        thread, value = self.wave.first + at[0], at[1]
        self.block.report(
            code,
            message,
            self.event,
            thread=thread,
            value=value,
            element=coordinates(view.buffer, thread, value),
            buffer=view.buffer.name,
            facts=facts,
            alike=() if bad is None else self._alike(view.buffer, bad),
        )

    def _alike(self, buffer: Buffer, bad: BoolArray) -> tuple[Spot, ...]:
        rows, values = np.nonzero(bad)
        at = (rows + self.wave.first) * registers_of(buffer)[1] + values
        return spots(buffer, self.block.cells(buffer), at, self.block.launch.moment)


def distinct(block: Block) -> None:
    """Judge the claims of distinctness of a finished block, over all of its threads.

    Registers that replicate one element of the tile count once.
    """
    for (stmt, _), gathered in block.gathered.items():
        assert isinstance(stmt, Assert)
        assert isinstance(stmt.claim, Distinct)
        view = stmt.claim.components[0].view
        *columns, thread, value = (np.concatenate(parts) for parts in zip(*gathered.columns, strict=True))
        layout = cast(TV, view.buffer.layout)
        element = layout.threads.table()[thread] + layout.values.table()[value]
        order = np.lexsort((value, thread, *columns))
        same = np.ones(max(0, order.size - 1), np.bool_)
        for column in columns:
            same &= column[order][1:] == column[order][:-1]
        same &= element[order][1:] != element[order][:-1]
        if same.any():
            _report_twice(block, gathered.event, view, order, same, (thread, value, *columns))


def _report_twice(
    block: Block, event: Event, view: View, order: IntArray, same: BoolArray, arrays: Sequence[AnyArray]
) -> None:
    thread, value, *columns = arrays
    at = int(same.argmax())
    one, other = int(order[at]), int(order[at + 1])
    record = ", ".join(str(int(column[one])) for column in columns)
    block.report(
        "I39",
        f"two elements of `{view.buffer.name}` have the components ({record})",
        event,
        thread=int(thread[other]),
        value=int(value[other]),
        element=coordinates(view.buffer, int(thread[other]), int(value[other])),
        buffer=view.buffer.name,
        other_thread=int(thread[one]),
    )
