"""Tags of matrix products: the records of accumulators, and the checks of operands' tags (I1, I2, I24, I26, I27).

A name that both operands carry is *contracted* if it varies along k, *kept* if it does not, and *unsure*
while no execution has had more than one k; names of one operand alone are kept, as a set if they vary along k. Products
whose kept names differ make a set too, which is a fault only if a claim excludes it.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from attrs import define

from argus.core.ir import Mma, View
from argus.interp.compiled_kernel import first_where, registers_of
from argus.interp.machine.waves import Wave
from argus.interp.memory.cells import (
    BOTTOM,
    LOWEST,
    MISSING,
    NUMBER,
    ONE,
    OPAQUE,
    TOP,
    ZERO,
    AnyArray,
    BoolArray,
    IntArray,
    padding_of,
)
from argus.interp.memory.columns import distinct_columns
from argus.interp.memory.trace import Spot
from argus.interp.state import Block, Contribution, NameStatus, Sum, coordinates, shared_element
from argus.interp.values.operands import Operands, Source
from argus.interp.values.sets import UNTRACKED, is_single
from argus.interp.violation import Event

OUTSIDE = padding_of(0)
_SPOILING = (
    *((state, OPAQUE) for state in (OPAQUE, *range(NUMBER, ONE + 1), *range(LOWEST, OUTSIDE))),
    (TOP, TOP),
)
"""States of operand elements, with the state of the accumulators that they are multiplied into; the worst last."""
_ABSENT = np.full((1, 1), MISSING, np.int64)


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
        target.marks[self.cells] = new
        if self.sum.open and (self.block.launch.prepared.covers or self.block.launch.records_sets):
            self.sum.log.append(Contribution(self._accumulators, self.cells, self.a.marks, self.b.marks))

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
        columns = {name: self._column(name, start, old, kept) for name in self.records.names}
        if both.any():
            if self.sum.open:
                self._check_contracted(both)
            columns |= {name: self._summed(name, columns[name], both, old, kept) for name in columns}
        grows = start | both & ~self.records.summed(old)
        for name, column in columns.items():
            grows |= both & (column != self.records.get(name, old))
        count = int(grows.sum())
        if count:
            first = self.records.add(count, {name: column[grows] for name, column in columns.items()}, summed=True)
            new[grows] = np.arange(first, first + count, dtype=np.int64)
        for state, becomes in _SPOILING if min(self.a.lowest, self.b.lowest) < 0 else ():
            new[self._spoiled(state)] = becomes
        new[old == TOP] = TOP
        return new

    def _column(self, name: str, start: BoolArray, old: IntArray, kept: dict[str, IntArray]) -> IntArray:
        """The component of each accumulator before this execution; where a sum starts, that of the products."""
        return np.where(start, kept.get(name, _ABSENT), self.records.get(name, old))

    def _summed(
        self, name: str, known: IntArray, both: BoolArray, old: IntArray, kept: dict[str, IntArray]
    ) -> IntArray:
        """The component of each accumulator, with that of the products where it changes.

        If all products of the sum are known, products without the name count too.
        """
        if name not in kept and self.status.get(name) == "contracted":
            return known
        column = np.broadcast_to(kept.get(name, _ABSENT), known.shape)
        named = (known != MISSING) & (column != MISSING)
        differs = both & (known != column)
        if self.status.get(name) == "unsure" and bool((differs & named).any()):
            self.status[name] = "contracted"
            return known
        strict = self.sum.open
        found = known if strict else np.where(both & (known == MISSING), column, known)
        differs &= named | strict
        if differs.any():
            self._suspect(name, differs & (named | is_single(np.maximum(known, column))), old, column)
            found = found.copy()
            pairs, _, back = distinct_columns(np.stack([known[differs], column[differs]]))
            sets = self.records.sets
            made = [
                sets.mixed(max(pair)) if MISSING in pair else sets.combined("sum", *pair) for pair in pairs.T.tolist()
            ]
            found[differs] = np.array(made, np.int64)[back]
        return found

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
        """The components of the products' records, broadcastable over (m, n)."""
        kept: dict[str, IntArray] = {}
        for name in self.records.names:
            a, b = self.a.column(self.block, name), self.b.column(self.block, name)
            if any(each is not None and (each == UNTRACKED).any() for each in (a, b)):
                kept[name] = np.full((1, 1), UNTRACKED, np.int64)
            elif a is not None and b is not None:
                row = self._common(name, a, b)
                if row is not None:
                    kept[name] = row
            elif a is not None:
                kept[name] = self._own(a, self.a)[:, None]
            elif b is not None:
                kept[name] = self._own(b, self.b)[None, :]
        return kept

    def _own(self, column: IntArray, operand: Operand) -> IntArray:
        """A component that only one operand has: one value per row, the set of all where it varies."""
        row = column.max(axis=1)
        differs = ((column != row[:, None]) & operand.valid).any(axis=1)
        for at in np.flatnonzero(differs).tolist():
            row[at] = self.records.sets.reduced(column[at][operand.valid[at]].tolist(), "sum")
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
            if self._computed():
                code = {"I2": "I26", "I1": "I24"}.get(code, code)
            message = f"`{self.stmt.atom}` {verb} elements whose `{name}` differs: {pair_text}"
            origins = self._spot(self.a, (m, k)), self._spot(self.b, (n, k))
            self._report(code, message, self.stmt.a, int(self.a.cells[m, k]), facts, int(self.b.cells[n, k]), origins)
        return None if status == "contracted" else np.broadcast_to(rows[:, None], self.cells.shape)

    def _computed(self) -> bool:
        """Whether an operand was computed from products, as the weights of attention are."""
        return any(bool(self.records.summed(np.maximum(each.marks, 0)).any()) for each in (self.a, self.b))

    def _mismatch(self, a: IntArray, b: IntArray) -> tuple[int, int, int] | None:
        """The first pair (m, n, k) of values with different integers."""
        one, other = _uniform(a, self.a.valid), _uniform(b, self.b.valid)
        if one is not None and other is not None:
            clear = (one == other) | (one == MISSING) | (other == MISSING)
            if clear.all():
                return None
        left, right = self.a.valid & is_single(a), self.b.valid & is_single(b)
        differs = (a[:, None, :] != b[None, :, :]) & left[:, None, :] & right[None, :, :]
        if not differs.any():
            return None
        order = np.where(differs.any(axis=1), self.a.cells, np.iinfo(np.int64).max)
        m, k = divmod(int(order.argmin()), order.shape[1])
        return m, int(differs[m, :, k].argmax()), k

    def _suspect(self, name: str, differs: BoolArray, old: IntArray, column: IntArray) -> None:
        """Note that an accumulator's kept component changes from one execution to the next."""
        if not differs.any():
            return
        m, n = first_where(differs)
        mark, component = int(old[m, n]), int(column[m, n])
        held = self.records.of(mark).get(name, MISSING)
        was, now = self.records.component_text(held), self.records.component_text(component)
        message = f"the accumulator's `{name}` changes from {was} to {now}"
        facts = (("before", self.records.text(mark)), ("now", f"{name}={now}"))
        k = int((self.a.valid[m] & self.b.valid[n]).argmax())
        buffer, cell = self.stmt.target.buffer, int(self.cells[m, n])
        summed = Spot(buffer, self.block.cells(buffer), cell, self.block.launch.moment)
        origins = summed, self._spot(self.a, (m, k)), self._spot(self.b, (n, k))
        where = self.stmt.target, cell
        report = partial(
            self._report, self._code(name), message, *where, facts, None, origins, self.block.launch.moment
        )
        self.block.launch.suspicions.note(name, self.stmt, (held, component), report)

    def _code(self, name: str) -> str:
        """The invariant for a kept name that differs: I27 for names selected by indirect indexing, else I2."""
        return "I27" if name in self.block.launch.prepared.indirect_names else "I2"

    def _check_contracted(self, both: BoolArray) -> None:
        """Note products of one sum that contract different names (I2)."""
        over = {name for name in self.common if self.status[name] == "contracted"}
        gone = [name for name, status in self.before.items() if status == "contracted" and name not in self.common]
        new = sorted(over - self.before.keys())
        if not gone and not new:
            return
        text = f"products without `{gone[0]}` are" if gone else f"products over `{new[0]}` are"
        message = f"{text} added to a sum of products {'over' if gone else 'without'} it"
        cell = int(self.cells[first_where(both)])
        moment = self.block.launch.moment
        for name in (*gone, *new):
            report = partial(self._report, "I2", message, self.stmt.target, cell, (), None, (), moment)
            self.block.launch.suspicions.note(name, self.stmt, (MISSING, MISSING), report)

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
        moment: int | None = None,
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
            moment=moment,
        )

    def _spot(self, operand: Operand, at: tuple[int, ...]) -> Spot:
        """The cell of one element of an operand, at the time it was read."""
        buffer = operand.view.buffer
        return Spot(buffer, self.block.cells(buffer), int(operand.cells[at]), operand.moment)


def _uniform(column: IntArray, valid: BoolArray) -> IntArray | None:
    """The component of each k if all rows agree, MISSING where no row has a value; None if rows differ."""
    top = column.max(axis=0)
    return None if bool(((column != top) & valid).any()) else top
