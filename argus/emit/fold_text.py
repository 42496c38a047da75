"""Emit `Fold`: reductions and scans by a thread's registers, then by lanes of its warp.

The text says in which order a fold combines elements, since floating-point sums and products depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import assert_never

from attrs import frozen

from argus.core.dtype import f32
from argus.core.ir import Fold
from argus.core.layout import IntArray
from argus.emit.arithmetic import operation
from argus.emit.faults import not_built
from argus.emit.folds import Ordered, Plan, Reduction, Scan, fold_plan
from argus.emit.lanes import LaneText, affine_registers
from argus.emit.loops import unrolled_loops
from argus.emit.scope import Scope, c_type, whole_register_buffer

_KINDS = {
    "add": "sum",
    "mul": "product",
    "max": "maximum",
    "min": "minimum",
    "max_nan": "maximum, NaN of NaN",
    "min_nan": "minimum, NaN of NaN",
    "last": "last element",
}


def fold_lines(stmt: Fold, scope: Scope, unit: int) -> list[str]:
    """A block of C statements. unit: lanes of a warp. Raises ArgusError (E501) as `fold_plan`."""
    whole_register_buffer(stmt.target, None, stmt.span)
    writer = _FoldWriter(stmt, scope, unit)
    plan = fold_plan(stmt, unit)
    return ["{", *(f"    {line}" for line in (f"// {_order(stmt, plan, scope.target)}", *writer.lines(plan))), "}"]


def uses_lanes(stmt: Fold, unit: int) -> bool:
    """Whether the text of a fold reads registers of other lanes."""
    match fold_plan(stmt, unit):
        case Reduction(masks=masks):
            return bool(masks)
        case Scan(lanes=lanes):
            return lanes > 1
        case Ordered():
            return True


def _order(stmt: Fold, plan: Plan, target: str) -> str:
    """One sentence: what is folded, and in which order."""
    kind = _KINDS[stmt.op]
    what = f"{kind if stmt.keep == 'total' else f'inclusive scan ({kind})'} along axis {stmt.axis}"
    if stmt.op == "last":
        return f"{what}, by {stmt.within}"
    match plan:
        case Reduction(masks=()) | Scan(lanes=1) | Ordered():
            return f"{what}: in ascending order"
        case Reduction(masks=masks):
            steps = ", ".join(str(mask) for mask in _exchanges(masks, target))
            return f"{what}: in each thread in ascending order, then lanes l and l ^ m for m = {steps}"
        case Scan(run=run, lanes=lanes):
            elements = f"runs of {run} in each thread in ascending order, then " if run > 1 else ""
            steps = ", ".join(str(1 << bit) for bit in range(lanes.bit_length() - 1))
            return f"{what}: {elements}over {lanes} lanes by distances {steps}"
        case _:
            assert_never(plan)


def _exchanges(masks: tuple[int, ...], target: str) -> tuple[int, ...]:
    """The masks of the exchanges. On gfx942 DPP has no lane ^ 4: once four lanes agree, lane ^ 7 reads the same."""
    mirrors = target == "gfx942" and masks[:3] == (1, 2, 4)
    return (1, 2, 7, *masks[3:]) if mirrors else masks


@frozen
class _FoldWriter:
    stmt: Fold
    scope: Scope
    unit: int

    @property
    def kind(self) -> str:
        return c_type(self.stmt.source.buffer.dtype)

    def lines(self, plan: Plan) -> list[str]:
        match plan:
            case Reduction():
                return self._reduction(plan)
            case Scan():
                return self._scan(plan)
            case Ordered():
                return self._ordered(plan)
            case _:
                assert_never(plan)

    def source(self, register: int | str) -> str:
        return self.scope.element(self.stmt.source.buffer, register)

    def target(self, register: int | str) -> str:
        return self.scope.element(self.stmt.target.buffer, register)

    def combined(self, one: str, other: str) -> str:
        """C text of the fold's operation on two texts of its type. Raises ArgusError (E501) for more than 32 bits."""
        dtype = self.stmt.source.buffer.dtype
        if dtype.bits > f32.bits:
            raise not_built(f"a fold of {dtype}", self.stmt.span)
        return operation(self.stmt.op, ((one, dtype), (other, dtype)), dtype, self.scope.target, self.stmt.span)[0]

    def _reduction(self, plan: Reduction) -> list[str]:
        lines = [f"{self.kind} part[{len(plan.rows)}];"]
        placed = affine_registers(plan.rows, ("row", "at"))
        count = len(plan.rows[0])
        if placed is None:
            for place, row in enumerate(plan.rows):
                lines.append(f"part[{place}] = {self.source(row[0])};")
                lines += [
                    f"part[{place}] = {self.combined(f'part[{place}]', self.source(register))};" for register in row[1:]
                ]
        else:
            first, step = placed
            begin = f"part[row] = {self.source(first)};"
            lines += unrolled_loops([("row", len(plan.rows))], begin)
            if count > 1:
                text = f"part[row] = {self.combined('part[row]', self.source(step))};"
                lines += unrolled_loops([("row", len(plan.rows)), ("at", count)], text, start={"at": 1})
        for mask in _exchanges(plan.masks, self.scope.target):
            other = f"lane_xor<{mask}>(part[row])"
            lines += unrolled_loops([("row", len(plan.rows))], f"part[row] = {self.combined('part[row]', other)};")
        return [*lines, *self._results(plan.results)]

    def _results(self, results: tuple[int, ...]) -> list[str]:
        if results == tuple(range(len(results))):
            return unrolled_loops([("row", len(results))], f"{self.target('row')} = part[row];")
        return [f"{self.target(register)} = part[{place}];" for register, place in enumerate(results)]

    def _scan(self, plan: Scan) -> list[str]:
        lines = LaneText(self.scope, self.unit).declared if plan.lanes > 1 else []
        if plan.lanes > 1:
            lines = [*lines, f"const int place = own_lane >> {plan.low} & {plan.lanes - 1};"]
        for row in plan.rows:
            lines += self._scan_of_row(row, plan)
        return lines

    def _scan_of_row(self, row: tuple[int, ...], plan: Scan) -> list[str]:
        """Run by run; `carry` is the scan's value at the end of the runs before."""
        lines: list[str] = []
        for begin in range(0, len(row), plan.run):
            run = row[begin : begin + plan.run]
            lines.append(f"{self.target(run[0])} = {self._first(begin, row, plan)};")
            for before, register in pairwise(run):
                lines.append(f"{self.target(register)} = {self.combined(self.target(before), self.source(register))};")
            if plan.lanes > 1:
                lines += self._scan_of_lanes(run, plan, carried=begin > 0, carries=begin + plan.run < len(row))
        return ["{", *(f"    {line}" for line in self._declared_carry(row, plan)), *(f"    {x}" for x in lines), "}"]

    def _first(self, begin: int, row: tuple[int, ...], plan: Scan) -> str:
        """The first element of a run; of a later run of the same thread, with the elements before it."""
        own = self.source(row[begin])
        return self.combined(self.target(row[begin - 1]), own) if begin and plan.lanes == 1 else own

    def _declared_carry(self, row: tuple[int, ...], plan: Scan) -> list[str]:
        if plan.lanes == 1:
            return []
        return [f"{self.kind} sum, other;", *([f"{self.kind} carry;"] if len(row) > plan.run else [])]

    def _scan_of_lanes(self, run: tuple[int, ...], plan: Scan, *, carried: bool, carries: bool) -> list[str]:
        """Scan the runs' totals over the lanes, and add what precedes to each element of the run."""
        lines = [f"sum = {self.target(run[-1])};"]
        distance = 1
        while distance < plan.lanes:
            lines.append(f"other = lane_from(sum, own_lane - {distance << plan.low});")
            lines.append(f"if (place >= {distance}) sum = {self.combined('other', 'sum')};")
            distance *= 2
        if len(run) == 1:
            lines.append(f"{self.target(run[0])} = {self.combined('carry', 'sum') if carried else 'sum'};")
        else:
            lines += self._add_what_precedes(run, plan, carried=carried)
        if carries:
            lines.append(f"sum = lane_from(sum, own_lane | {plan.lanes - 1 << plan.low});")
            lines.append(f"carry = {self.combined('carry', 'sum') if carried else 'sum'};")
        return lines

    def _add_what_precedes(self, run: tuple[int, ...], plan: Scan, *, carried: bool) -> list[str]:
        lines = [f"other = lane_from(sum, own_lane - {1 << plan.low});"]
        if carried:
            lines.append(f"other = place > 0 ? {self.combined('carry', 'other')} : carry;")
        added = [f"{self.target(register)} = {self.combined('other', self.target(register))};" for register in run]
        return lines + (added if carried else ["if (place > 0) {", *(f"    {line}" for line in added), "}"])

    def _ordered(self, plan: Ordered) -> list[str]:
        lanes = LaneText(self.scope, self.unit)
        lines = list(lanes.declared)
        for register, cells in enumerate(plan.cells):
            first = lanes.fetched(self.source, self.kind, cells[:1], plan.registers)
            total = self.target(register)
            lines += ["{", *_indented([*first.declared, *first.lines, f"{total} = {first.value};"]), "}"]
            if len(cells) > 1:
                lines += ["{", *_indented(self._others(lanes, cells[1:], plan, total)), "}"]
        return lines

    def _others(self, lanes: LaneText, cells: IntArray, plan: Ordered, total: str) -> list[str]:
        """Combine the elements after the first, one an iteration."""
        more = lanes.fetched(self.source, self.kind, cells, plan.registers, at="at")
        combined = f"if ({more.present}) {total} = {self.combined(total, more.value)};"
        loop = [f"for (int at = 0; at < {len(cells)}; ++at) {{", *_indented([*more.lines, combined]), "}"]
        return [*more.declared, *loop]


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" for line in lines]
