"""Tags of matrix products: the records of accumulators, and the checks of operands' tags (I1, I2, I23 to I27).

A name that both operands carry is *contracted* if it varies along k, *kept* if it does not, and *unsure*
while no execution has had more than one k; names of one operand alone are kept.
"""

from __future__ import annotations

import numpy as np
from attrs import define

from argus.core.ir import Mma, View
from argus.interp.compiled_kernel import first_where, registers_of
from argus.interp.machine.waves import Wave
from argus.interp.memory.cells import (
    BOTTOM,
    FILLED,
    LOW,
    MISSING,
    NUMBER,
    OPAQUE,
    OUTSIDE,
    TOP,
    ZERO,
    AnyArray,
    BoolArray,
    IntArray,
)
from argus.interp.memory.trace import Spot
from argus.interp.state import Block, Contribution, NameStatus, Sum, coordinates, shared_element
from argus.interp.values.operands import Operands, Source
from argus.interp.violation import Event

_SPOILING = (*((state, OPAQUE) for state in (NUMBER, LOW, FILLED, OPAQUE)), (TOP, TOP))
"""States of operand elements, with the state of the accumulators that they are multiplied into; the worst last."""


@define(eq=False)
class Operand:
    """One operand's cells and marks, (row, k). valid: marks of values; lowest: the smallest mark."""

    view: View
    cells: IntArray
    marks: IntArray
    valid: BoolArray
    lowest: int
    moment: int

    @property
    def full(self) -> bool:
        """Whether all elements are values."""
        return self.lowest >= 0

    def column(self, block: Block, name: str) -> IntArray | None:
        """The component of every element, MISSING where there is none; None if no element has it."""
        column = block.launch.records.get(name, self.marks)
        return column if (column != MISSING).any() else None


class Products:
    """Computes and checks the accumulators' marks for one execution of a matrix instruction by one wave."""

    def __init__(self, block: Block, wave: Wave, stmt: Mma, event: Event, operands: Operands) -> None:
        self.block, self.wave, self.stmt, self.event = block, wave, stmt, event
        self.records = block.launch.records
        self.init, self._accumulators = operands.init, operands.accumulators
        self.a, self.b = self._operand(operands.a), self._operand(operands.b)
        self.cells = operands.cells
        self.sum = self._summand()
        self.status = self.sum.name_status
        self.before = dict(self.status)
        self.common: set[str] = set()

    def _summand(self) -> Sum:
        """The sum that this execution adds to; it is not open if the accumulators' former content is unknown."""
        held = (self.stmt.target.buffer, self.wave.number)
        known = self.block.sums.get(held)
        if self.init or known is None:
            known = self.block.sums[held] = Sum(open=self.init)
        elif known.scaled:
            known.open = False
        return known

    def run(self, *, flying: bool) -> None:
        """Set the accumulators' marks. flying: the accumulators are in flight, so that their content is garbage."""
        target = self.block.cells(self.stmt.target.buffer)
        assert target.marks is not None
        old = np.full(self.cells.shape, self._empty_sum(), np.int64) if self.init else target.marks[self.cells]
        if flying and not self.init:
            old[:] = TOP
        self._check_initialised(self.stmt.target, self.cells, old)
        new = self._marks(old)
        target.marks[self.cells] = self._with_references(old, new) if self.records.kinds.any else new
        if self.sum.open and (self.block.launch.prepared.covers or self.block.launch.records_sets):
            self.sum.log.append(Contribution(self._accumulators, self.cells, self.a.marks, self.b.marks))

    def _with_references(self, old: IntArray, new: IntArray) -> IntArray:
        """The accumulators' softmax references; reports sums of exponentials with different references (I23).

        Accumulators that receive no product, as for a fully masked row, keep theirs.
        """
        mine, theirs = self._weights(self.a), self._weights(self.b)
        added = np.maximum(mine[:, None], theirs[None, :])
        before, fed = self.records.kind(old), self._fed()
        bad = fed & (old > 0) & (new > 0) & (before != added)
        if bad.any():
            name = self.stmt.target.buffer.name
            message = f"exponentials are added to `{name}`, which is relative to another maximum"
            self._report("I23", message, self.stmt.target, int(self.cells[first_where(bad)]), ())
        return self.records.with_kind(new, np.where(fed, added, before))

    def _weights(self, operand: Operand) -> IntArray:
        """The softmax reference of each row's exponentials, 0 where there are none; reports differences in a row."""
        known = self.records.kind(operand.marks)
        known = np.where(self.records.kinds.exponentials(known) & operand.valid, known, 0)
        row = known.max(axis=1)
        bad = (known != row[:, None]) & (operand.marks > 0)
        if bad.any():
            message = f"exponentials in `{operand.view.buffer.name}` relative to different maxima are summed"
            self._report("I23", message, operand.view, int(operand.cells[first_where(bad)]), ())
        return row

    def _empty_sum(self) -> int:
        """The mark of an accumulator without products: padding, unless the padding may lie along k alone."""
        values = bool(self.a.valid.any() or self.b.valid.any())
        padded = bool((self.a.marks == OUTSIDE).any() or (self.b.marks == OUTSIDE).any())
        return OUTSIDE if values and padded else ZERO

    def _operand(self, source: Source) -> Operand:
        assert source.marks is not None
        lowest = int(source.marks.min())
        if lowest < 0:
            self._check_initialised(source.view, source.cells, source.marks)
            lowest = int(source.marks.min())
        return Operand(source.view, source.cells, source.marks, source.marks >= 0, lowest, source.moment)

    def _check_initialised(self, view: View, cells: IntArray, marks: IntArray) -> None:
        bottom = marks == BOTTOM
        if bottom.any():
            marks[bottom] = TOP
            name, cell = view.buffer.name, int(cells[bottom].min())
            verb = "accumulated into" if view is self.stmt.target else "multiplied"
            if view.buffer.space == "shared":
                self._report("I5", f"`{name}` is read where it was never written", view, cell, ())
            else:
                self._report("I38", f"`{name}` is {verb} while uninitialised", view, cell, ())

    def _marks(self, old: IntArray) -> IntArray:
        """The accumulator's marks after this execution."""
        fed = self._fed()
        kept = self._kept() if fed.any() else {}
        new = old.copy()
        start = fed & ((old == OUTSIDE) | (old == ZERO))
        both = fed & (old >= 0)
        if both.any():
            self._check_kept(both, old, kept)
            if self.sum.open:
                self._check_contracted(both)
            else:
                start |= both & self._needs_record(old, kept)
        if start.any():
            self._add_records(new, start, kept)
        for state, becomes in _SPOILING if min(self.a.lowest, self.b.lowest) < OUTSIDE else ():
            new[self._spoiled(state)] = becomes
        new[old == TOP] = TOP
        return new

    def _needs_record(self, old: IntArray, kept: dict[str, IntArray]) -> BoolArray:
        """Accumulators whose record gets a new name, or becomes that of a sum."""
        grows = ~self.records.summed(old)
        for name, column in kept.items():
            grows |= (self.records.get(name, old) == MISSING) & (column != MISSING)
        return grows

    def _add_records(self, marks: IntArray, start: BoolArray, kept: dict[str, IntArray]) -> None:
        """Create records where `start` holds: the old components, and the products' where there are none."""
        columns = {name: np.broadcast_to(column, marks.shape)[start] for name, column in kept.items()}
        for name in self.records.names:
            there = self.records.get(name, marks[start])
            columns[name] = np.where(there == MISSING, columns.get(name, there), there)
        first = self.records.add(int(start.sum()), columns, summed=True)
        marks[start] = np.arange(first, first + int(start.sum()), dtype=np.int64)

    def _fed(self) -> BoolArray:
        """Which accumulators receive at least one product of two values."""
        if self.a.full and self.b.full:
            return np.ones_like(self.cells, np.bool_)
        counts: AnyArray = np.matmul(self.a.valid.astype(np.float32), self.b.valid.astype(np.float32).T)
        return counts > 0

    def _spoiled(self, state: int) -> BoolArray:
        """Which accumulators receive a product with an element in this state."""
        if self.a.full and self.b.full:
            return np.zeros_like(self.cells, np.bool_)
        rows: BoolArray = np.any(self.a.marks == state, axis=1)
        columns: BoolArray = np.any(self.b.marks == state, axis=1)
        return rows[:, None] | columns

    def _kept(self) -> dict[str, IntArray]:
        """The components of the products' records, broadcastable over (m, n), without untracked names."""
        kept: dict[str, IntArray] = {}
        for name in self.records.names:
            if name in self.records.untracked:
                continue
            a, b = self.a.column(self.block, name), self.b.column(self.block, name)
            if a is not None and b is not None:
                row = self._common(name, a, b)
                if row is not None:
                    kept[name] = row
            elif a is not None:
                kept[name] = self._own(name, a, self.a)[:, None]
            elif b is not None:
                kept[name] = self._own(name, b, self.b)[None, :]
        self.block.launch.kept_names.update(kept)
        return kept

    def _own(self, name: str, column: IntArray, operand: Operand) -> IntArray:
        """A component that only one operand has: one value per row; reports rows with several."""
        row = column.max(axis=1)
        differs = (column != row[:, None]) & operand.valid
        if differs.any():
            at = first_where(differs)
            one = int(np.flatnonzero(column[at[0]] == row[at[0]])[0])
            facts = self._facts(operand, (at[0], one), operand, at)
            message = f"products with different `{name}` are accumulated in one element"
            origins = self._spot(operand, (at[0], one)), self._spot(operand, at)
            self._report(self._code(name), message, operand.view, int(operand.cells[at]), facts, origins=origins)
        return row

    def _common(self, name: str, a: IntArray, b: IntArray) -> IntArray | None:
        """Check a component that both operands have; returns its value per row if it is kept, else None."""
        self.common.add(name)
        rows, columns = a.max(axis=1), b.max(axis=1)
        varies = bool(((a != rows[:, None]) & self.a.valid).any() or ((b != columns[:, None]) & self.b.valid).any())
        several = int((self.a.valid.any(axis=0) & self.b.valid.any(axis=0)).sum()) > 1
        now: NameStatus = "contracted" if varies else "kept" if several else "unsure"
        before = self.status.get(name, "unsure")
        if before == "unsure":
            self.status[name] = now
        status = self.status[name]
        pair = self._mismatch(a, b)
        if pair is not None:
            m, n, k = pair
            facts = self._facts(self.a, (m, k), self.b, (n, k))
            text = self.records.component_text
            pair_text = f"{text(int(a[m, k]))} and {text(int(b[n, k]))}"
            code, verb = (self._code(name), "combines") if status == "kept" else ("I1", "multiplies")
            if self.records.kinds.any and (self._weights(self.a).any() or self._weights(self.b).any()):
                code = {"I2": "I26", "I1": "I24"}.get(code, code)
            message = f"`{self.stmt.atom}` {verb} elements whose `{name}` differs: {pair_text}"
            origins = self._spot(self.a, (m, k)), self._spot(self.b, (n, k))
            self._report(code, message, self.stmt.a, int(self.a.cells[m, k]), facts, int(self.b.cells[n, k]), origins)
        return None if status == "contracted" else np.broadcast_to(rows[:, None], self.cells.shape)

    def _mismatch(self, a: IntArray, b: IntArray) -> tuple[int, int, int] | None:
        """The first pair (m, n, k) of values with different components."""
        one, other = _uniform(a, self.a.valid), _uniform(b, self.b.valid)
        if one is not None and other is not None:
            clear = (one == other) | (one == MISSING) | (other == MISSING)
            if clear.all():
                return None
        differs = (a[:, None, :] != b[None, :, :]) & self.a.valid[:, None, :] & self.b.valid[None, :, :]
        if not differs.any():
            return None
        order = np.where(differs.any(axis=1), self.a.cells, np.iinfo(np.int64).max)
        m, k = divmod(int(order.argmin()), order.shape[1])
        return m, int(differs[m, :, k].argmax()), k

    def _check_kept(self, both: BoolArray, old: IntArray, kept: dict[str, IntArray]) -> None:
        """An accumulator's kept components must not change from one execution to the next.

        If all products of the sum are known, names must not appear or disappear either.
        """
        absent = np.full((1, 1), MISSING, np.int64)
        strict = self.sum.open
        for name in self.records.names if strict else kept:
            if name in self.records.untracked or (name not in kept and self.status.get(name) == "contracted"):
                continue
            known, column = self.records.get(name, old), kept.get(name, absent)
            named = (known != MISSING) & (column != MISSING)
            differs = both & (known != column) & (strict | named)
            if self.status.get(name) == "unsure" and bool((differs & named).any()):
                self.status[name] = "contracted"
            elif differs.any():
                self._report_change(name, differs, old, column)

    def _report_change(self, name: str, differs: BoolArray, old: IntArray, column: IntArray) -> None:
        m, n = first_where(differs)
        mark = int(old[m, n])
        was = self.records.component_text(self.records.of(mark).get(name, MISSING))
        now = self.records.component_text(int(np.broadcast_to(column, differs.shape)[m, n]))
        message = f"the accumulator's `{name}` changes from {was} to {now}"
        facts = (("before", self.records.text(mark)), ("now", f"{name}={now}"))
        k = int((self.a.valid[m] & self.b.valid[n]).argmax())
        buffer, cell = self.stmt.target.buffer, int(self.cells[m, n])
        summed = Spot(buffer, self.block.cells(buffer), cell, self.block.launch.moment)
        origins = summed, self._spot(self.a, (m, k)), self._spot(self.b, (n, k))
        self._report(self._code(name), message, self.stmt.target, cell, facts, origins=origins)

    def _code(self, name: str) -> str:
        """The invariant for a kept name that differs: I27 for names selected by indirect indexing, else I2."""
        return "I27" if name in self.block.launch.prepared.indirect_names else "I2"

    def _check_contracted(self, both: BoolArray) -> None:
        """All products of one sum must contract the same names (I2)."""
        over = {name for name in self.common if self.status[name] == "contracted"}
        gone = [name for name, status in self.before.items() if status == "contracted" and name not in self.common]
        new = sorted(over - self.before.keys())
        if not gone and not new:
            return
        text = f"products without `{gone[0]}` are" if gone else f"products over `{new[0]}` are"
        message = f"{text} added to a sum of products {'over' if gone else 'without'} it"
        m, n = first_where(both)
        self._report("I2", message, self.stmt.target, int(self.cells[m, n]), ())

    def _facts(
        self, one: Operand, at: tuple[int, ...], other: Operand, other_at: tuple[int, ...]
    ) -> tuple[tuple[str, str], ...]:
        texts = [self.records.text(int(side.marks[where])) for side, where in ((one, at), (other, other_at))]
        return (f"tags of `{one.view.buffer.name}`", texts[0]), (f"tags of `{other.view.buffer.name}`", texts[1])

    def _report(
        self,
        code: str,
        message: str,
        view: View,
        cell: int,
        facts: tuple[tuple[str, str], ...],
        other_cell: int | None = None,
        origins: tuple[Spot, ...] = (),
    ) -> None:
        shared = self.stmt.b.buffer.space == "shared"
        other = None if other_cell is None or shared else other_cell // registers_of(self.stmt.b.buffer)[1]
        if view.buffer.space == "shared":
            thread, value = self.wave.first, None
            element = shared_element(self.block.launch.prepared, view.buffer, cell)
        else:
            thread, value = divmod(cell, registers_of(view.buffer)[1])
            element = coordinates(view.buffer, thread, value)
        self.block.report(
            code,
            message,
            self.event,
            thread=thread,
            value=value,
            element=element,
            buffer=view.buffer.name,
            other_thread=other,
            facts=facts,
            origins=origins,
        )

    def _spot(self, operand: Operand, at: tuple[int, ...]) -> Spot:
        """The cell of one element of an operand, at the time it was read."""
        buffer = operand.view.buffer
        return Spot(buffer, self.block.cells(buffer), int(operand.cells[at]), operand.moment)


def _uniform(column: IntArray, valid: BoolArray) -> IntArray | None:
    """The component of each k if all rows agree, MISSING where no row has a value; None if rows differ."""
    top = column.max(axis=0)
    return None if bool(((column != top) & valid).any()) else top
