"""Element-wise assignments: values by the table of operations, marks by its rules."""

from __future__ import annotations

from typing import assert_never, cast

import numpy as np
from attrs import define

from argus.core.elementwise import ELEMENT_OPS
from argus.core.index import Cond, Index
from argus.core.ir import Both, Buffer, Cast, Compare, Either, Elem, Get, Holds, Lit, Map, Neither, Num, Op, Test, Where
from argus.core.layout import TV
from argus.core.walk import evaluate
from argus.interp.machine import Wave
from argus.interp.memory import BOTTOM, MISSING, OUTSIDE, PLAIN, TOP, AnyArray, BoolArray, IntArray
from argus.interp.places import is_whole
from argus.interp.prepared import first_where, lane_values
from argus.interp.state import Block, coordinates
from argus.interp.violation import Event, not_built

Node = Elem | Test


@define(eq=False)
class _Lane:
    """What a wave's elements hold: values (weak: they take the type of what they meet), marks, whose sums."""

    values: AnyArray | None
    marks: IntArray
    weak: bool = False
    sums: Buffer | None = None


def assign(block: Block, wave: Wave, stmt: Map, event: Event) -> None:
    """Evaluate the element expression on the wave's registers and assign the target."""
    buffer = stmt.target.buffer
    if buffer.space != "register" or not is_whole(stmt.target):
        raise not_built("assignment of part of a buffer", stmt)
    result = _Evaluation(block, wave, stmt, event).run()
    block.settle(wave, buffer, event, "written")
    cells = block.cells(buffer)
    layout = cast(TV, buffer.layout)
    registers = layout.values.size
    rows = slice(wave.first * registers, min(wave.last, layout.threads.size) * registers)
    if cells.values is not None and result.values is not None:
        cells.values[rows] = result.values.astype(buffer.dtype.numpy, copy=False).reshape(-1)
    if cells.marks is not None:
        cells.marks[rows] = result.marks.reshape(-1)
    _carry_sums(block, wave, result.sums, buffer)


def _carry_sums(block: Block, wave: Wave, source: Buffer | None, target: Buffer) -> None:
    """A linear operation keeps the set of contributions, register by register."""
    known = None if source is None else block.products.get((source, wave.number))
    names = None if source is None else block.common.get((source, wave.number))
    block.forget(wave, target)
    if source is not None and known is not None and source.layout == target.layout:
        block.products[target, wave.number] = list(known)
        block.common[target, wave.number] = dict(names or {})


class _Evaluation:
    """One assignment by one wave, node by node."""

    def __init__(self, block: Block, wave: Wave, stmt: Map, event: Event) -> None:
        self.block, self.wave, self.stmt, self.event = block, wave, stmt, event
        self.layout = cast(TV, stmt.target.buffer.layout)
        self.rows = slice(wave.first, min(wave.last, self.layout.threads.size))
        self.shape = (self.rows.stop - self.rows.start, self.layout.values.size)
        self.lanes: dict[Node, _Lane] = {}
        self.tests: dict[Node, BoolArray] = {}

    def run(self) -> _Lane:
        for node in parts_first(self.stmt.elem):
            if isinstance(node, Holds | Compare | Both | Either | Neither):
                self.tests[node] = self._test(node)
            else:
                self.lanes[node] = self._elem(node)
        return self.lanes[self.stmt.elem]

    def _elem(self, elem: Elem) -> _Lane:
        match elem:
            case Lit(value=value):
                return self._plain(np.full(self.shape, value, np.float64))
            case Num(value=value):
                return self._plain(self._index(value).astype(np.float64))
            case Get():
                return self._get(elem)
            case Op(name=name, args=args):
                return self._op(name, [self.lanes[arg] for arg in args])
            case Cast(dtype=dtype, arg=arg):
                lane = self.lanes[arg]
                values = None if lane.values is None else lane.values.astype(dtype.numpy)
                return _Lane(values, lane.marks, sums=lane.sums)
            case Where(test=test, then=then, other=other):
                return self._where(self.tests[test], self.lanes[then], self.lanes[other])
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

    def _plain(self, values: AnyArray) -> _Lane:
        return _Lane(values if self.block.launch.values else None, np.full(self.shape, PLAIN, np.int64), weak=True)

    def _index(self, node: Index | Cond) -> AnyArray:
        local = lane_values(node, self.rows, self.block.launch.prepared.unit)
        coords = [axis[self.rows] for axis in self.layout.coordinates()]
        return np.broadcast_to(np.asarray(evaluate(node, {**local, **self.wave.env}, coords)), self.shape)

    def _get(self, get: Get) -> _Lane:
        buffer = get.view.buffer
        same = all(at is own for at, own in zip(get.at, self.stmt.target.at, strict=True))
        if buffer.space != "register" or not is_whole(get.view) or not same:
            raise not_built("element of part of a buffer", self.stmt)
        flying = self.block.settle(self.wave, buffer, self.event, "read")
        at = self.block.launch.prepared.held(buffer, self.layout, self.stmt)[self.rows]
        cells = self.block.cells(buffer)
        marks = np.full(self.shape, PLAIN, np.int64) if cells.marks is None else cells.marks[at]
        if flying:
            marks = np.full(self.shape, TOP, np.int64)
        self._judge(buffer, marks)
        return _Lane(None if cells.values is None else cells.values[at], marks, sums=buffer)

    def _judge(self, buffer: Buffer, marks: IntArray) -> None:
        bottom = marks == BOTTOM
        if bottom.any():
            self._report("I38", f"`{buffer.name}` is used while uninitialised", buffer, bottom)
            marks[bottom] = TOP

    def _same_type(self, lanes: list[_Lane]) -> list[AnyArray]:
        arrays = [cast(AnyArray, lane.values) for lane in lanes]
        strong = [array.dtype for array, lane in zip(arrays, lanes, strict=True) if not lane.weak]
        dtype = strong[0] if strong else self.stmt.target.buffer.dtype.numpy
        return [array.astype(dtype, copy=False) for array in arrays]

    def _op(self, name: str, lanes: list[_Lane]) -> _Lane:
        entry = ELEMENT_OPS[name]
        marks = lanes[0].marks
        for lane in lanes[1:]:
            marks = self._combine(marks, lane.marks)
        values = entry.meaning(*self._same_type(lanes)) if self.block.launch.values else None
        carriers = [lane.sums for lane in lanes if lane.sums and (lane.sums, self.wave.number) in self.block.products]
        sums = carriers[0] if entry.linear and len(carriers) == 1 and (name != "div" or lanes[0].sums) else None
        return _Lane(values, marks, weak=all(lane.weak for lane in lanes), sums=sums)

    def _where(self, test: BoolArray, then: _Lane, other: _Lane) -> _Lane:
        values = np.where(test, *self._same_type([then, other])) if self.block.launch.values else None
        sums = then.sums if then.sums is other.sums else None
        return _Lane(values, np.where(test, then.marks, other.marks), weak=then.weak and other.weak, sums=sums)

    def _combine(self, left: IntArray, right: IntArray) -> IntArray:
        """Garbage spoils, padding pads, and two records must agree on the names they share."""
        worst = np.minimum(left, right)
        either = np.where(worst < 0, np.where((left == TOP) | (right == TOP), TOP, OUTSIDE), np.maximum(left, right))
        both = (left > 0) & (right > 0) & (left != right)
        if both.any():
            self._agree(left, right, both)
            either[both] = self.block.launch.records.union(left[both], right[both])
        return either

    def _agree(self, left: IntArray, right: IntArray, both: BoolArray) -> None:
        records = self.block.launch.records
        for name in records.names:
            a, b = records.get(name, left), records.get(name, right)
            differs = both & (a != b) & (a != MISSING) & (b != MISSING)
            if differs.any():
                lane, value = first_where(differs)
                facts = (
                    ("one", records.text(int(left[lane, value]))),
                    ("other", records.text(int(right[lane, value]))),
                )
                message = f"elements combined here disagree on tag `{name}`"
                self._report("I2", message, self.stmt.target.buffer, differs, facts)

    def _report(
        self, code: str, message: str, buffer: Buffer, where: BoolArray, facts: tuple[tuple[str, str], ...] = ()
    ) -> None:
        lane, value = first_where(where)
        thread = self.rows.start + lane
        self.block.launch.reporter.report(
            code,
            message,
            self.event,
            thread=thread,
            value=value,
            element=coordinates(self.stmt.target.buffer, thread, value),
            buffer=buffer.name,
            facts=facts,
        )


def parts_first(root: Node) -> list[Node]:
    """Every node of an element expression once, parts before what they are part of."""
    order: list[Node] = []
    seen: set[Node] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((part, False) for part in _parts(node))
    return order


def _parts(node: Node) -> tuple[Node, ...]:
    match node:
        case Lit() | Num() | Get() | Holds():
            return ()
        case Op(args=args):
            return args
        case Cast(arg=arg):
            return (arg,)
        case Where(test=test, then=then, other=other):
            return test, then, other
        case Compare(left=left, right=right):
            return left, right
        case Both(parts=parts) | Either(parts=parts):
            return parts
        case Neither(part=part):
            return (part,)
        case _:
            assert_never(node)
