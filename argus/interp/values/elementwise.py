"""Element-wise assignments: values by the table of operations, marks by `states` and by what records combine to."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import isfinite
from typing import assert_never, cast

import numpy as np
from attrs import define, evolve

from argus.core.elementwise import ELEMENT_OPS, ElementOp
from argus.core.index import Cond, Index
from argus.core.ir import Both, Buffer, Cast, Compare, Either, Elem, Get, Holds, Lit, Map, Neither, Num, Op, Test, Where
from argus.core.layout import TV
from argus.core.walk import evaluate
from argus.interp.compiled_kernel import first_where, lane_values
from argus.interp.machine.waves import Wave
from argus.interp.memory.cells import (
    ABOVE,
    BOTTOM,
    NUMBER,
    OPAQUE,
    PLAIN,
    TOP,
    AnyArray,
    BoolArray,
    IntArray,
    number_of,
)
from argus.interp.memory.trace import SourceCells, Spot
from argus.interp.memory.views import is_whole
from argus.interp.state import Block, Factors, Sum, coordinates
from argus.interp.values import states
from argus.interp.values.nodes import Node, parts_first
from argus.interp.values.sets import How, is_single
from argus.interp.values.sums import add_sums, scale_sum
from argus.interp.violation import Event, not_built


@define(eq=False)
class _Lane:
    """The elements of a wave at one node: values, marks and sums.

    weak: values take the type of the other operand. literal: the constant that all elements equal, if any. sum: None if
    unknown. products: the products of loaded elements that each element sums, if a claim needs them; None if unknown.
    above: whether all elements are above 0, whatever they are made of.
    """

    values: AnyArray | None
    marks: IntArray
    weak: bool = False
    sum: Sum | None = None
    literal: float | None = None
    products: Factors | None = None
    above: bool = False


def assign(block: Block, wave: Wave, stmt: Map, event: Event) -> None:
    """Evaluate the element expression on the wave's registers and assign the target."""
    buffer = stmt.target.buffer
    if buffer.space != "register" or not is_whole(stmt.target):
        raise not_built("assignment of part of a buffer", stmt)
    if wave.first >= cast(TV, buffer.layout).threads.size():
        return  # no thread of this wave holds an element
    evaluation = _Evaluation(block, wave, stmt, event)
    result = evaluation.run()
    block.check_in_flight(wave, buffer, event, "written")
    cells = block.cells(buffer)
    layout = cast(TV, buffer.layout)
    registers = layout.values.size()
    rows = slice(wave.first * registers, min(wave.last, layout.threads.size()) * registers)
    if cells.values is not None and result.values is not None:
        cells.values[rows] = result.values.astype(block.launch.storage(buffer.dtype), copy=False).reshape(-1)
    if cells.marks is not None:
        cells.marks[rows] = result.marks.reshape(-1)
    if block.launch.journal is not None:
        at = np.arange(rows.start, rows.stop, dtype=np.int64).reshape(result.marks.shape)
        target = SourceCells(buffer, cells, at, block.launch.moment)
        block.launch.journal.record_elementwise(event, block.base + wave.first, target, evaluation.taken)
    block.drop_sums(wave, buffer)
    if result.above:
        block.above.add((buffer, wave.number))
    if result.products is not None:
        block.products[buffer, wave.number] = result.products
    if result.sum is not None:
        found = result.sum
        block.sums[buffer, wave.number] = evolve(found, log=list(found.log), name_status=dict(found.name_status))


class _Evaluation:
    """Evaluates one assignment for one wave, node by node."""

    def __init__(self, block: Block, wave: Wave, stmt: Map, event: Event) -> None:
        self.block, self.wave, self.stmt, self.event = block, wave, stmt, event
        self.layout = cast(TV, stmt.target.buffer.layout)
        self.rows = slice(wave.first, min(wave.last, self.layout.threads.size()))
        self.shape = (self.rows.stop - self.rows.start, self.layout.values.size())
        self.lanes: dict[Node, _Lane] = {}
        self.tests: dict[Node, BoolArray] = {}
        self.taken: list[SourceCells] = []

    def run(self) -> _Lane:
        """The elements assigned to the target."""
        for node in parts_first(self.stmt.elem):
            if isinstance(node, Holds | Compare | Both | Either | Neither):
                self.tests[node] = self._test(node)
            else:
                self.lanes[node] = self._elem(node)
        return self.lanes[self.stmt.elem]

    def _elem(self, elem: Elem) -> _Lane:
        match elem:
            case Lit(value=value):
                return self._literal(value)
            case Num(value=value):
                return self._plain(self._index(value).astype(np.float64))
            case Get():
                return self._get(elem)
            case Op(name=name, args=args):
                return self._op(name, [self.lanes[arg] for arg in args])
            case Cast(dtype=dtype, arg=arg):
                lane = self.lanes[arg]
                values = None if lane.values is None else lane.values.astype(self.block.launch.storage(dtype))
                return _Lane(values, lane.marks, sum=lane.sum, products=lane.products)
            case Where(test=test, then=then, other=other):
                return self._where(test, self.lanes[then], self.lanes[other])
            case _:
                assert_never(elem)

    def _test(self, test: Test) -> BoolArray:
        match test:
            case Holds(cond=cond):
                return self._index(cond).astype(np.bool_)
            case Compare(op=op, left=left, right=right):
                a, b = self._same_type([self.lanes[left], self.lanes[right]])
                return a < b if op == "<" else a <= b if op == "<=" else a == b
            case Both(parts=parts):
                return np.logical_and.reduce([self.tests[part] for part in parts])
            case Either(parts=parts):
                return np.logical_or.reduce([self.tests[part] for part in parts])
            case Neither(part=part):
                return ~self.tests[part]
            case _:
                assert_never(test)

    def _literal(self, value: float) -> _Lane:
        lane = self._plain(np.full(self.shape, value, np.float64))
        lane.literal = value
        lane.marks[:] = number_of(value)
        if value == 0:
            lane.sum, lane.products = Sum(), ()
        return lane

    def _plain(self, values: AnyArray) -> _Lane:
        return _Lane(values if self.block.launch.values else None, np.full(self.shape, NUMBER, np.int64), weak=True)

    def _index(self, node: Index | Cond) -> AnyArray:
        local = lane_values(node, self.rows, self.block.launch.prepared.unit)
        coords = [axis[self.rows] for axis in self.layout.coordinates()]
        return np.broadcast_to(
            np.asarray(evaluate(node, {**local, **self.wave.env}, coords, self.block.launch.prepared.integers)),
            self.shape,
        )

    def _get(self, get: Get) -> _Lane:
        buffer = get.view.buffer
        if buffer.space != "register":
            raise not_built(f"element of {buffer.space} memory", self.stmt)
        flying = self.block.check_in_flight(self.wave, buffer, self.event, "read")
        at = self.block.launch.prepared.held(get.view, self.layout, get.at, self.stmt)[self.rows]
        cells = self.block.cells(buffer)
        self.taken.append(SourceCells(buffer, cells, at, self.block.launch.moment))
        marks = np.full(self.shape, PLAIN, np.int64) if cells.marks is None else cells.marks[at]
        if flying:
            marks = np.full(self.shape, TOP, np.int64)
        self._check_initialised(buffer, marks)
        whole = is_whole(get.view) and buffer.layout == self.layout
        known = self.block.sums.get((buffer, self.wave.number)) if whole else None
        products = self.block.products.get((buffer, self.wave.number)) if whole else None
        above = (buffer, self.wave.number) in self.block.above
        values = None if cells.values is None else cells.values[at]
        return _Lane(values, marks, sum=known, products=products, above=above)

    def _check_initialised(self, buffer: Buffer, marks: IntArray) -> None:
        bottom = marks == BOTTOM
        if bottom.any():
            self._report("I38", f"`{buffer.name}` is used while uninitialised", buffer, bottom)
            marks[bottom] = TOP

    def _same_type(self, lanes: list[_Lane]) -> list[AnyArray]:
        arrays = [cast(AnyArray, lane.values) for lane in lanes]
        strong = [array.dtype for array, lane in zip(arrays, lanes, strict=True) if not lane.weak]
        dtype = strong[0] if strong else self.block.launch.storage(self.stmt.target.buffer.dtype)
        return [array.astype(dtype, copy=False) for array in arrays]

    def _op(self, name: str, lanes: list[_Lane]) -> _Lane:
        entry = ELEMENT_OPS[name]
        if name in _COMPOSED:
            inner, outer = _COMPOSED[name]
            total = self._op(outer, [self._op(inner, lanes[:2]), lanes[2]])
            if total.values is None or self.block.launch.exact:
                return total
            return evolve(total, values=entry.meaning(*self._same_type(lanes)))
        values = entry.meaning(*self._same_type(lanes)) if self.block.launch.values else None
        weak = all(lane.weak for lane in lanes)
        records = self.block.launch.records
        operand = _scaled_operand(entry, lanes)
        if operand is not None:
            negated = states.mapped("neg", operand.marks) if _negates(entry, lanes) else operand.marks
            marks = records.weighted(negated) if _rescales(lanes) else negated
            return _Lane(values, marks, weak=weak, sum=scale_sum(operand.sum))
        if len(lanes) == 1:
            return _Lane(values, states.mapped(name, records.completed(lanes[0].marks)), weak=weak)
        if entry.integers:
            return _Lane(values, _untracked(lanes), weak=weak)
        marks = self._combine(name, lanes)
        products = _products_of(name, lanes) if self.block.launch.prepared.product_claims else None
        above = name in ("max", "max_nan") and any(lane.literal is not None and lane.literal > 0 for lane in lanes)
        return _Lane(values, marks, weak=weak, sum=_sum_of(name, lanes), products=products, above=above)

    def _where(self, condition: Test, then: _Lane, other: _Lane) -> _Lane:
        test = self.tests[condition]
        values = np.where(test, *self._same_type([then, other])) if self.block.launch.values else None
        taken, left = np.where(test, then.marks, other.marks), np.where(test, other.marks, then.marks)
        by_value = any(isinstance(node, Compare) for node in parts_first(condition))
        marks = self._chosen(taken, left) if by_value else self._placed(taken, left)
        return _Lane(values, marks, weak=then.weak and other.weak, sum=then.sum if then.sum is other.sum else None)

    def _placed(self, taken: IntArray, left: IntArray) -> IntArray:
        """The marks of a selection by coordinates; any other number than 0, 1 and infinity for data is not tracked."""
        return np.where(((taken == NUMBER) | (taken == ABOVE)) & ((left >= 0) | (left == OPAQUE)), OPAQUE, taken)

    def _chosen(self, taken: IntArray, left: IntArray) -> IntArray:
        """The marks of a selection by values: a function of both sides, since either could have been selected."""
        records = self.block.launch.records
        marks = np.where((taken < OPAQUE) & (left >= OPAQUE) & (left != TOP) & (left != BOTTOM), left, taken)
        marks[(taken < OPAQUE) & (left < OPAQUE) & (taken != left)] = NUMBER
        marks[(taken >= 0) & (left == OPAQUE)] = OPAQUE
        both = (taken > 0) & (left > 0) & (taken != left)
        marks[both] = records.combined("product", taken[both], left[both])
        return records.completed(marks)

    def _combine(self, name: str, lanes: list[_Lane]) -> IntArray:
        """The marks of a binary operation. Operands of a product or quotient agree in every name; other operations
        combine contributions.
        """
        records = self.block.launch.records
        left, right = (
            np.where((lane.marks >= PLAIN) & (other.marks < OPAQUE), ABOVE, lane.marks)
            if lane.above and name == "mul"  # an infinite number times data that is above 0 is that number
            else lane.marks
            for lane, other in (lanes, lanes[::-1])
        )
        if name == "div":
            right = records.completed(right)
        kinds = states.outcomes(name, left, right)
        found = np.where(kinds == states.LEFT, left, np.where(kinds == states.RIGHT, right, kinds))
        mine, theirs = (kinds == states.BOTH) & (right < 0), (kinds == states.BOTH) & (left < 0)
        found[mine] = self._with_number(name, left[mine], right[mine])
        found[theirs] = self._with_number(name, right[theirs], left[theirs])
        both = (kinds == states.BOTH) & (left >= 0) & (right >= 0)
        if both.any():
            how = _HOW[name]
            if how == "product":
                scaled = (lanes[0].sum is None) != (lanes[1].sum is None)
                self._differing("I35" if scaled else "I2", left, right, both, suspected=False)
            else:
                self._differing("I2", left, right, both, suspected=True)
            found[both] = records.combined(how, left[both], right[both])
        return found

    def _with_number(self, name: str, marks: IntArray, number: IntArray) -> IntArray:
        """The records after an operation with a number that is not neutral to it."""
        records = self.block.launch.records
        if name == "add":
            return marks
        found = records.completed(marks) if _HOW[name] == "extremum" else records.weighted(marks)
        return np.where((marks == PLAIN) & (number == ABOVE), ABOVE, found) if name in ("max", "max_nan") else found

    def _differing(self, code: str, left: IntArray, right: IntArray, both: BoolArray, *, suspected: bool) -> None:
        """Report tags that differ. suspected: they make a set, which is a fault only if a claim excludes it."""
        records = self.block.launch.records
        for name in records.names:
            a, b = records.get(name, left), records.get(name, right)
            differs = both & (a != b) & is_single(a) & is_single(b)
            if not differs.any():
                continue
            lane, value = first_where(differs)
            facts = (
                ("one", records.text(int(left[lane, value]))),
                ("other", records.text(int(right[lane, value]))),
            )
            message = f"elements combined here disagree on tag `{name}`"
            origins = tuple(taken.spot(lane * self.shape[1] + value) for taken in self.taken)
            target = self.stmt.target.buffer
            report = partial(self._report, code, message, target, differs, facts, origins, self.block.launch.moment)
            if suspected:
                pair = int(a[lane, value]), int(b[lane, value])
                self.block.launch.suspicions.note(name, self.stmt, pair, report)
            else:
                report()

    def _report(
        self,
        code: str,
        message: str,
        buffer: Buffer,
        where: BoolArray,
        facts: tuple[tuple[str, str], ...] = (),
        origins: tuple[Spot, ...] = (),
        moment: int | None = None,
    ) -> None:
        lane, value = first_where(where)
        thread = self.rows.start + lane
        self.block.report(
            code,
            message,
            self.event,
            thread=thread,
            value=value,
            element=coordinates(self.stmt.target.buffer, thread, value),
            buffer=buffer.name,
            facts=facts,
            origins=origins,
            moment=moment,
        )


_COMPOSED: Mapping[str, tuple[str, str]] = {"fma": ("mul", "add"), "clamp": ("max", "min")}
"""Operations on three operands: that on the first two, and that on its result and the third."""
_HOW: Mapping[str, How] = {
    "add": "sum",
    "sub": "difference",
    "mul": "product",
    "div": "product",
    "pow": "product",
    "max": "extremum",
    "min": "extremum",
    "max_nan": "extremum",
    "min_nan": "extremum",
}


def _scaled_operand(entry: ElementOp, lanes: list[_Lane]) -> _Lane | None:
    """The operand that a linear operation negates, or multiplies or divides by a non-zero constant; else None."""
    rest = [lane for lane in lanes if lane.literal is None]
    numbers = [lane.literal for lane in lanes if lane.literal is not None]
    if not entry.linear or len(rest) != 1 or any(number == 0 or not isfinite(number) for number in numbers):
        return None
    return rest[0] if entry.name != "div" or rest[0] is lanes[0] else None


def _negates(entry: ElementOp, lanes: list[_Lane]) -> bool:
    """Whether the operation changes the sign of its operand."""
    return entry.name == "neg" or any(lane.literal is not None and lane.literal < 0 for lane in lanes)


def _untracked(lanes: list[_Lane]) -> IntArray:
    """The marks of an operation whose result has no record: a number, if nothing that it is computed from has one."""
    marks = np.stack([lane.marks for lane in lanes])
    data = np.where((marks >= PLAIN).any(axis=0) | (marks == OPAQUE).any(axis=0), OPAQUE, NUMBER)
    return np.where(((marks == TOP) | (marks == BOTTOM)).any(axis=0), TOP, data)


def _rescales(lanes: list[_Lane]) -> bool:
    """Whether the operation multiplies its operand by a constant other than 1."""
    return len(lanes) == 1 or any(lane.literal not in (None, 1) for lane in lanes)


def _sum_of(name: str, lanes: list[_Lane]) -> Sum | None:
    """The sum in a result: of two sums, or one sum whose products are all scaled by the same other operand."""
    one, other = lanes[0].sum, lanes[1].sum
    if name == "add":
        return add_sums(one, other)
    if name == "mul" and other is not None and one is None:
        return other
    return one if name in ("mul", "div") and other is None else None


def _products_of(name: str, lanes: list[_Lane]) -> Factors | None:
    """The products in a result: one product of two elements, or the products of two sums."""
    one, other = lanes[0].products, lanes[1].products
    if name == "add":
        return None if one is None or other is None else (*one, *other)
    if name == "mul" and one is None and other is None:
        return ((lanes[0].marks.copy(), lanes[1].marks.copy()),)
    return None
