"""Element-wise assignments: values by the table of operations, marks by the rules of `shadow_states`."""

from __future__ import annotations

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
    BOTTOM,
    LOW,
    NUMBER,
    OPAQUE,
    OUTSIDE,
    PLAIN,
    TOP,
    ZERO,
    AnyArray,
    BoolArray,
    IntArray,
)
from argus.interp.memory.trace import SourceCells, Spot
from argus.interp.memory.views import is_whole
from argus.interp.state import Block, Factors, Sum, coordinates
from argus.interp.values import shadow_states as rules
from argus.interp.values import statistics, weights
from argus.interp.values.nodes import Node, parts_first
from argus.interp.values.sets import is_single
from argus.interp.values.sums import add_sums, scale_sum
from argus.interp.violation import Event, not_built


@define(eq=False)
class _Lane:
    """The elements of a wave at one node: values, marks and sums.

    weak: values take the type of the other operand. literal: the constant that all elements equal, if any. sum: None if
    unknown. products: the products of loaded elements that each element sums, if a claim needs them; None if unknown.
    """

    values: AnyArray | None
    marks: IntArray
    weak: bool = False
    sum: Sum | None = None
    literal: float | None = None
    products: Factors | None = None


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
        if value == 0:
            lane.marks[:] = ZERO
            lane.sum, lane.products = Sum(), ()
        elif value == -np.inf:
            lane.marks[:] = LOW
        return lane

    def _plain(self, values: AnyArray) -> _Lane:
        return _Lane(values if self.block.launch.values else None, np.full(self.shape, PLAIN, np.int64), weak=True)

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
        return _Lane(None if cells.values is None else cells.values[at], marks, sum=known, products=products)

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
        if name == "fma":
            total = self._op("add", [self._op("mul", lanes[:2]), lanes[2]])
            if total.values is None or self.block.launch.exact:
                return total
            return evolve(total, values=entry.meaning(*self._same_type(lanes)))
        values = entry.meaning(*self._same_type(lanes)) if self.block.launch.values else None
        weak = all(lane.weak for lane in lanes)
        operand = _scaled_operand(entry, lanes)
        if operand is not None:
            marks = rules.negated(operand.marks) if _negates(entry, lanes) else operand.marks
            if _rescales(lanes):
                weights.note_scaling(self.block.launch.records, operand.marks)
            return _Lane(values, marks, weak=weak, sum=scale_sum(operand.sum))
        records = self.block.launch.records
        if len(lanes) == 1:
            marks = rules.mapped(name, records.without_sets(lanes[0].marks))
            if records.kinds.any:
                marks = records.with_kind(marks, records.kinds.mapped(name, records.kind(lanes[0].marks)))
            return _Lane(values, marks, weak=weak)
        marks = self._combine(name, lanes)
        if records.set_names:
            weights.note_operation(records, name, lanes[0].marks, lanes[1].marks)
        if records.kinds.any or (records.set_names and self._may_make_mean(name)):
            marks = self._classify(name, lanes, marks)
        products = _products_of(name, lanes) if self.block.launch.prepared.product_claims else None
        return _Lane(values, marks, weak=weak, sum=_sum_of(name, lanes), products=products)

    def _may_make_mean(self, name: str) -> bool:
        """Whether an operation of a sum and a number may make a mean."""
        return name == "div" or (name == "mul" and self.block.launch.tracks_weights)

    def _classify(self, name: str, lanes: list[_Lane], marks: IntArray) -> IntArray:
        """The records with the value kinds of the results; reports mismatched softmax references (I23).

        An operand that is neutral to the operation leaves the other's kind unchanged.
        """
        records = self.block.launch.records
        left, right = lanes[0].marks, lanes[1].marks
        one, two = records.kind(left), records.kind(right)
        found, bad = records.kinds.combined(name, one, two)
        checked = (left > 0) & (right > 0)
        bad &= checked
        if bad.any():
            message = f"`{name}` combines exponentials relative to different row maxima"
            self._report("I23", message, self.stmt.target.buffer, bad)
        numbers = lanes[0].values, lanes[1].values
        values = cast(tuple[AnyArray, AnyArray], numbers) if self.block.launch.tracks_weights else None
        made, known, untracked = statistics.classify(records, name, left, right, values)
        found, bad = np.where(known, made, found), bad & ~known
        neutral = ((left == LOW) | (left == OUTSIDE) | (left == ZERO)) & (right > 0) & (name in ("add", "max"))
        neutral |= ((right == LOW) | (right == OUTSIDE) | (right == ZERO)) & (left > 0) & (name in ("add", "max"))
        marks = records.without_tracked_sets(marks, untracked & ~neutral)
        return records.with_kind(marks, np.where(neutral, np.maximum(one, two), found))

    def _where(self, condition: Test, then: _Lane, other: _Lane) -> _Lane:
        test = self.tests[condition]
        values = np.where(test, *self._same_type([then, other])) if self.block.launch.values else None
        exact = isinstance(condition, Holds)
        taken, left = np.where(test, then.marks, other.marks), np.where(test, other.marks, then.marks)
        marks = self._select(taken, left, exact=exact)
        return _Lane(values, marks, weak=then.weak and other.weak, sum=then.sum if then.sum is other.sum else None)

    def _select(self, taken: IntArray, left: IntArray, *, exact: bool) -> IntArray:
        """The marks of a selection: both records' names; a number selected instead of data has an untracked record.

        A zero may replace padding, and a selection by coordinates may mask data out. exact: the selection is by
        coordinates, not by the elements' values.
        """
        marks = taken.copy()
        no_data = (left == ZERO) | (left == OUTSIDE) | (left == LOW) | (left == NUMBER)
        marks[(taken == PLAIN) & (left != PLAIN) & ~no_data] = OPAQUE
        if not exact:
            marks[((taken == ZERO) | (taken == LOW)) & ~no_data] = OPAQUE
        both = (taken > 0) & (left > 0) & (taken != left)
        if both.any():
            weights.note_selection(self.block.launch.records, np.stack([taken[both], left[both]]))
            marks[both] = self.block.launch.records.union(taken[both], left[both])
        return marks

    def _combine(self, name: str, lanes: list[_Lane]) -> IntArray:
        """The marks of a binary operation; reports records that disagree on a name that neither operand sums over."""
        records = self.block.launch.records
        left, right = lanes[0].marks, lanes[1].marks
        if name not in rules.LINEAR:
            left, right = records.without_sets(left), records.without_sets(right)
        elif name == "div":
            right = records.without_sets(right)
        kinds = rules.outcomes(name, left, right)
        found = np.where(kinds >= rules.RECORD, np.maximum(left, right), kinds)
        both = (kinds == rules.BOTH) & (left != right)
        if both.any():
            over = self._summed_over(left, right, both) if name in ("add", "sub") else frozenset[str]()
            code = "I35" if name in ("mul", "div") and (lanes[0].sum is None) != (lanes[1].sum is None) else "I2"
            self._agree(code, left, right, both, _summed_names(lanes) | over)
            summing = name in ("add", "sub")
            found[both] = records.union(left[both], right[both], summing=summing, over=over)
        return found

    def _summed_over(self, left: IntArray, right: IntArray, both: BoolArray) -> frozenset[str]:
        """Names of sums of products that no matrix instruction kept: adding such sums reduces over these names."""
        records = self.block.launch.records
        if not (records.summed(left[both]) & records.summed(right[both])).all():
            return frozenset()
        return frozenset(records.names) - self.block.launch.kept_names

    def _agree(self, code: str, left: IntArray, right: IntArray, both: BoolArray, summed: frozenset[str]) -> None:
        records = self.block.launch.records
        for name in records.names:
            if name in summed:
                continue
            a, b = records.get(name, left), records.get(name, right)
            differs = both & (a != b) & is_single(a) & is_single(b)
            if differs.any():
                lane, value = first_where(differs)
                facts = (
                    ("one", records.text(int(left[lane, value]))),
                    ("other", records.text(int(right[lane, value]))),
                )
                message = f"elements combined here disagree on tag `{name}`"
                origins = tuple(taken.spot(lane * self.shape[1] + value) for taken in self.taken)
                self._report(code, message, self.stmt.target.buffer, differs, facts, origins)

    def _report(
        self,
        code: str,
        message: str,
        buffer: Buffer,
        where: BoolArray,
        facts: tuple[tuple[str, str], ...] = (),
        origins: tuple[Spot, ...] = (),
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
        )


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


def _summed_names(lanes: list[_Lane]) -> frozenset[str]:
    """Names that a sum of the operands reduces over, or may."""
    known = [lane.sum.name_status for lane in lanes if lane.sum is not None]
    return frozenset(name for status in known for name, how in status.items() if how != "kept")
