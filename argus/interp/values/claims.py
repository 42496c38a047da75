"""Checks claims about tags on the elements that each thread holds."""

from __future__ import annotations

from typing import assert_never, cast

import numpy as np

from argus.core.algebra import TRUE, coord
from argus.core.index import Cond, Index, Symbol
from argus.core.index_text import show
from argus.core.ir import (
    Assert,
    Covers,
    Distinct,
    Equal,
    Equals,
    Order,
    Products,
    Relation,
    TagOf,
    View,
    WrittenOnce,
    static,
)
from argus.core.layout import TV
from argus.core.walk import evaluate
from argus.interp.compiled_kernel import first_where, registers_of
from argus.interp.machine.waves import SharedAccess, Wave
from argus.interp.memory.cells import BOTTOM, MISSING, BoolArray, IntArray
from argus.interp.memory.columns import distinct_columns
from argus.interp.memory.trace import Spot, spots
from argus.interp.memory.views import Place, is_whole
from argus.interp.state import Block, Contribution, coordinates, shared_element
from argus.interp.values.distinct import gather
from argus.interp.values.joint_relations import needs_check
from argus.interp.values.sets import MIXED, PADDED, is_set, is_single, is_unknown
from argus.interp.values.stored_sums import with_sets
from argus.interp.values.sums import Group, deviation, groups, same_accumulators
from argus.interp.violation import Event, not_built


def check_claim(block: Block, wave: Wave, stmt: Assert, event: Event) -> None:
    """Check a claim for one wave; claims about whole blocks or tensors are checked at their end."""
    match stmt.claim:
        case Equal(left=left, right=right):
            _ClaimCheck(block, wave, event).equal(left, right)
        case Relation():
            _ClaimCheck(block, wave, event).relation(stmt.claim)
        case Distinct():
            _ClaimCheck(block, wave, event).distinct(stmt.claim)
        case Covers():
            _ClaimCheck(block, wave, event).covers(stmt.claim)
        case WrittenOnce() | Products() | Equals():
            pass
        case Order(of=of):
            _ClaimCheck(block, wave, event).order(of)
        case _:
            assert_never(stmt.claim)


_MANY = 1 << 62


class _ClaimCheck:
    """Checks one claim for one wave. Garbage is skipped, since its cause has been reported."""

    def __init__(self, block: Block, wave: Wave, event: Event) -> None:
        self.block, self.wave, self.event = block, wave, event
        self.records = block.launch.records

    def equal(self, left: TagOf, right: TagOf) -> None:
        """Corresponding elements of two fragments have equal components (I39)."""
        a, b = self._component(left), self._component(right)
        if a.shape != b.shape:
            raise not_built("equality of fragments of different shapes", self.event.stmt)
        known = (a != MISSING) & (b != MISSING) & ~is_unknown(a) & ~is_unknown(b)
        self._report_unequal(left, right, a, b, (a != b) & known)

    def order(self, of: TagOf) -> None:
        """Each element's products were added in increasing order of the component, statement by statement (I39)."""
        self._marks(of.view)
        known = self.block.sums.get((of.view.buffer, self.wave.number))
        if known is None or not known.open:
            return
        latest: dict[int, tuple[IntArray, IntArray]] = {}
        for contribution in known.log:
            column = self.records.get(of.name, np.maximum(contribution.a, 0))
            real = (contribution.a >= 0) & (column != MISSING)
            first = np.where(real, column, _MANY).min(axis=-1)
            key = id(contribution.tiling)
            cells, past = latest[key] if key in latest else (contribution.cells, np.full(first.shape, -_MANY, np.int64))
            wrong = first < past
            if wrong.any():
                row = int(first_where(wrong)[0])
                self._report_order(of, int(cells[row].flat[0]), int(past[row]), int(first[row]))
                return
            last = np.where(real, column, -_MANY).max(axis=-1)
            latest[key] = cells, np.maximum(past, last)

    def _report_order(self, of: TagOf, cell: int, before: int, after: int) -> None:
        width = registers_of(of.view.buffer)[1]
        at = cell // width - self.wave.first, cell % width
        message = f"the sum over `{of.name}` is not accumulated in order: {after} comes after {before}"
        facts = ((f"{of.view.buffer.name}.{of.name}", f"{before}, then {after}"),)
        self._report("I39", message, of, at, facts)

    def _report_unequal(self, left: TagOf, right: TagOf, a: IntArray, b: IntArray, bad: BoolArray) -> None:
        if not bad.any():
            return
        at = first_where(bad)
        facts = tuple((f"{of.view.buffer.name}.{of.name}", str(int(x[at]))) for of, x in ((left, a), (right, b)))
        message = f"`{left.view.buffer.name}.{left.name}` and `{right.view.buffer.name}.{right.name}` differ"
        self._report("I39", message, left, at, facts, bad, (right,))

    def relation(self, stated: Relation) -> None:
        """A condition on components of corresponding elements holds (I39, I35); for a set, for each of its members."""
        leader = stated.names[0][1]
        found = {symbol: self._at_iteration(symbol, of) for symbol, of in stated.names}
        components = {symbol: column for symbol, column in found.items() if column is not None}
        if len(components) != len(found):
            return
        shapes = {column.shape for column in components.values()}
        if len(shapes) != 1:
            raise not_built("relation of fragments of different shapes", self.event.stmt)
        columns = np.stack([column.reshape(-1) for column in components.values()])
        kinds, first, _ = distinct_columns(columns)
        checked = needs_check(stated.cond, tuple(components), kinds, self.wave.env, self.block.launch.prepared.integers)
        for at in (each for each in np.argsort(first) if checked[each]):
            found = kinds[:, at]
            if ((found == MISSING) | is_unknown(found)).any():
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
                others = tuple(of for _, of in stated.names[1:] if not of.back)
                code = "I35" if is_set(found).any() and len({of.view.buffer for _, of in stated.names}) > 1 else "I39"
                self._report(code, f"`{show(stated.cond)}` does not hold", leader, where, facts, others=others)
                return

    def _at_iteration(self, symbol: Symbol, of: TagOf) -> IntArray | None:
        """The component at the iteration that the claim refers to; None if the claim was not executed in it."""
        now = self._component(of, sets=True)
        if not of.back:
            return now
        loop = self.block.launch.prepared.loop_around(self.event.stmt)
        if loop is None:
            raise not_built("claim about an earlier iteration outside a loop", self.event.stmt)
        here = tuple(number for _, number in self.event.iteration)
        was = (*here[:-1], here[-1] - of.back * loop.step)
        stmt, past = self.event.stmt, self.block.past
        past[stmt, symbol, self.wave.number, here] = now
        return past.get((stmt, symbol, self.wave.number, was))

    def distinct(self, stated: Distinct) -> None:
        """Collect this wave's elements, which are checked at the end of the launch."""
        of = stated.components[0]
        tiles = [(each.view.buffer, each.view.at, each.by) for each in stated.components]
        if any(tile != tiles[0] for tile in tiles):
            raise not_built("distinctness across fragments", self.event.stmt)
        columns = [self._component(each) for each in stated.components]
        known = np.logical_and.reduce([column != MISSING for column in columns])
        gather(self.block, self.event, stated, (*columns, *self._places(of)), known)

    def _places(self, of: TagOf) -> tuple[IntArray, IntArray]:
        """The thread and register of each element; in shared memory the wave's first thread and the element number."""
        if of.view.buffer.space == "shared":
            numbers = self._numbers(of.view)[None, :]
            return np.full_like(numbers, self.wave.first), numbers
        cells = self._cells(of)
        width = registers_of(of.view.buffer)[1]
        return cells // width, cells % width

    def covers(self, stated: Covers) -> None:
        """Each element is a sum of products over exactly the claimed range of the component (I3, I25)."""
        view = stated.of.view
        marks = self._marks(view)
        checked = marks >= 0
        low, high = self._bound(stated.low, view), self._bound(stated.high, view)
        if stated.where is not TRUE:
            checked &= self._bound(stated.where, view).astype(np.bool_)
        known = self.block.sums.get((view.buffer, self.wave.number))
        if known is not None and known.open and same_accumulators(known.log):
            self._check_groups(stated, known.log, checked, low, high, code=self._sum_code())
            return
        components = self.records.get(stated.of.name, np.maximum(marks, 0))
        summed = self.records.summed(np.maximum(marks, 0))
        held = checked & (is_set(components) | is_single(components))
        if held.any():
            self._check_sets(stated, held, components, low, high, code=self._sum_code())
        not_summed = checked & ~summed & (components == MISSING)
        if not_summed.any():
            message = f"`{view.buffer.name}` is not a sum of products"
            self._report("I3", message, stated.of, first_where(not_summed), ())

    def _check_groups(
        self,
        stated: Covers,
        log: list[Contribution],
        checked: BoolArray,
        low: IntArray,
        high: IntArray,
        *,
        code: str,
    ) -> None:
        width = checked.shape[1]
        first = self._rows(stated.of.view).start * width
        cells = log[0].cells - first
        wanted = checked.reshape(-1)[cells], low.reshape(-1)[cells], high.reshape(-1)[cells]
        worst: tuple[int, str] | None = None
        for group in groups(self.records, stated.of.name, log, *wanted):
            text = deviation(stated.of.name, group.components, group.low, group.high)
            if text is not None:
                self._explain(stated.of.name, (group.components == MISSING).any())
                cell = self._smallest(group, cells)
                worst = (cell, text) if worst is None or cell < worst[0] else worst
        if worst is not None:
            name = stated.of.name
            message = f"the sum over `{name}` is not [{show(stated.low)}, {show(stated.high)}): {worst[1]}"
            self._report(code, message, stated.of, divmod(worst[0], width), ())

    def _sum_code(self) -> str:
        """The invariant for a wrong set: I25 in kernels that mask, else I3."""
        return "I25" if self.block.launch.prepared.masked else "I3"

    def _check_sets(
        self, stated: Covers, held: BoolArray, components: IntArray, low: IntArray, high: IntArray, *, code: str
    ) -> None:
        """Check elements whose records contain the set that they sum over."""
        name = stated.of.name
        columns = np.stack([components[held], low[held], high[held]])
        kinds, first, _ = distinct_columns(columns)
        where = np.flatnonzero(held.reshape(-1))
        for at in np.argsort(first):
            component, start, stop = (int(x) for x in kinds[:, at])
            if self.records.sets.is_range(component, start, stop):
                continue
            members = np.array(self.records.sets.members(component), np.int64)
            text = self._impure(name, component) or deviation(name, members, start, stop)
            if text is not None:
                self._explain(name, self.records.sets.has(component, MIXED))
                message = f"the sum over `{name}` is not [{show(stated.low)}, {show(stated.high)}): {text}"
                self._report(code, message, stated.of, divmod(int(where[first[at]]), held.shape[1]), ())
                return

    def _explain(self, name: str, absent: np.bool_ | bool) -> None:
        """Report where values without the name were added, if the sum has some."""
        if absent:
            self.block.launch.suspicions.explain_absence(name)

    def _impure(self, name: str, component: int) -> str | None:
        """What a set contains that has no number of the name, in words."""
        sets = self.records.sets
        if sets.has(component, MIXED):
            return f"it contains values without `{name}`"
        return "it contains padding, which is not neutral" if sets.has(component, PADDED) else None

    @staticmethod
    def _smallest(group: Group, cells: IntArray) -> int:
        return int(cells[group.members].min())

    def _rows(self, view: View) -> slice:
        threads = registers_of(view.buffer)[0]
        return slice(min(self.wave.first, threads), min(self.wave.last, threads))

    def _marks(self, view: View) -> IntArray:
        buffer = view.buffer
        if buffer.space != "register" or not is_whole(view):
            raise not_built("claim about memory other than a register fragment", self.event.stmt)
        flying = self.block.check_in_flight(self.wave, buffer, self.event, "read")
        threads, registers = registers_of(buffer)
        marks = cast(IntArray, self.block.cells(buffer).marks).reshape(threads, registers)[self._rows(view)]
        bottom = marks == BOTTOM
        if bottom.any() and not flying:
            message = f"an assertion is about `{buffer.name}`, which is uninitialised"
            self._report("I38", message, TagOf(view, ""), first_where(bottom), ())
        return marks

    def _component(self, of: TagOf, *, sets: bool = False) -> IntArray:
        """The component of every element of the claim, as its thread holds it; a value without it violates the claim.

        sets: include the sets that sums range over.
        """
        marks = self._marks(of.view) if _is_tile(of) else self._part(of)
        if sets and _is_tile(of):
            marks = with_sets(self.block, self.wave, of.view.buffer, marks)
        column = self.records.get(of.name, marks)
        untagged = (column == MISSING) & (marks >= 0)
        if untagged.any():
            at = first_where(untagged)
            facts = (("found", self.records.text(int(marks[at]))),)
            self._report("I39", f"an element of `{of.view.buffer.name}` has no tag `{of.name}`", of, at, facts)
        return column

    def _part(self, of: TagOf) -> IntArray:
        """The marks of the view's elements for each element of a layout, as its thread holds them."""
        buffer = of.view.buffer
        flying = self.block.check_in_flight(self.wave, buffer, self.event, "read")
        marks = cast(IntArray, self.block.cells(buffer).marks)[self._cells(of)]
        if buffer.space == "shared":
            self._record_read(of)
        bottom = marks == BOTTOM
        if bottom.any() and not flying:
            message = f"an assertion is about `{buffer.name}`, which is uninitialised"
            self._report("I38", message, of, first_where(bottom), ())
        return marks

    def _record_read(self, of: TagOf) -> None:
        """Record a claim about shared memory as a read by its wave: it must hold under every schedule."""
        threads, cells = self.block.launch.prepared.kernel.threads, self._cells(of)
        place = Place(np.broadcast_to(cells, (threads, cells.shape[1])))
        read = place.cell_set(self.wave.first, self.wave.last)
        access = SharedAccess(self.event, of.view.buffer, writes=False, cells=read, place=place)
        access.drained, access.over = self.wave.arrivals, self.event.path
        self.block.accesses.append(access)

    def _cells(self, of: TagOf) -> IntArray:
        """The cells of all elements of the claim, in this wave's threads."""
        if of.view.buffer.space == "shared":
            return self.block.launch.prepared.shared_cells(of.view.buffer)[self._numbers(of.view)][None, :]
        if of.view.buffer.space != "register":
            raise not_built("claim about memory other than registers and shared memory", self.event.stmt)
        threads, registers = registers_of(of.view.buffer)
        rows = self._rows(of.view)
        if _is_tile(of):
            return np.arange(threads * registers, dtype=np.int64).reshape(threads, registers)[rows]
        by = cast(TV, of.by or of.view.buffer.layout)
        own = tuple(coord(axis) for axis in range(len(by.tile)))
        return self.block.launch.prepared.held(of.view, by, own, self.event.stmt)[rows]

    def _numbers(self, view: View) -> IntArray:
        """The numbers of the elements of a view of a shared buffer, first axis fastest, for this wave's symbols."""
        shape = [static(extent) for extent in view.shape]
        coords = [axis.ravel(order="F") for axis in np.indices(shape, dtype=np.int64)]
        number, below = np.zeros(coords[0].size if coords else 1, np.int64), 1
        for place, extent in zip(view.at, view.buffer.shape, strict=True):
            at = evaluate(place, self.wave.env, coords, self.block.launch.prepared.integers)
            number, below = number + np.asarray(at) * below, below * static(extent)
        return number

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
        of: TagOf,
        at: tuple[int, ...],
        facts: tuple[tuple[str, str], ...],
        bad: BoolArray | None = None,
        others: tuple[TagOf, ...] = (),
    ) -> None:
        """Report an element. bad: all elements of the wave that fail in this way. others: other tiles of the claim."""
        buffer, cells = of.view.buffer, self._cells(of)
        moment, own = self.block.launch.moment, self.block.cells(buffer)
        if buffer.space == "shared":
            thread, value = self.wave.first, None
            element = shared_element(self.block.launch.prepared, buffer, int(cells[at]))
        else:
            thread, value = divmod(int(cells[at]), registers_of(buffer)[1])
            element = coordinates(buffer, thread, value)
        self.block.report(
            code,
            message,
            self.event,
            thread=thread,
            value=value,
            element=element,
            buffer=buffer.name,
            facts=facts,
            origins=self._spots((of, *others), at),
            alike=() if bad is None else spots(buffer, own, np.unique(cells[bad]), moment),
        )

    def _spots(self, tiles: tuple[TagOf, ...], at: tuple[int, ...]) -> tuple[Spot, ...]:
        """The cells of corresponding elements of several tiles, each once."""
        found = {(of.view.buffer, int(self._cells(of)[at])): None for of in tiles}
        return tuple(Spot(b, self.block.cells(b), cell, self.block.launch.moment) for b, cell in found)


def _is_tile(of: TagOf) -> bool:
    """Whether a claim is about a whole fragment in its own layout."""
    whole = is_whole(of.view) and (of.by is None or of.by == of.view.buffer.layout)
    return whole and of.view.buffer.space == "register"
