"""Plans of reductions and scans: which registers of a thread are combined, and with which lanes of its warp.

A plan is found from tables over (thread, register), for layouts of any kind. Most are a `Reduction` (registers, then
lanes by exclusive or) or a `Scan` (registers, then lanes by distance); `Ordered` covers the others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from argus.core.check.folds import element_rows, result_rows
from argus.core.index import Index
from argus.core.ir import Fold, static
from argus.core.layout import TV, IntArray
from argus.core.span import Span
from argus.emit.faults import not_built
from argus.emit.scope import layout_of

BoolArray = npt.NDArray[np.bool_]
Rows = tuple[tuple[int, ...], ...]
"""For each row of which a thread holds elements, their registers, ascending along the axis, each element once."""


@frozen
class Reduction:
    """Each thread reduces each of its rows in ascending order; then lanes combine results with lane ^ mask, in turn.

    results: for each register of the target, its row.
    """

    rows: Rows
    masks: tuple[int, ...]
    results: tuple[int, ...]


@frozen
class Scan:
    """Each thread scans runs of `run` elements; lanes with the same other bits scan the runs' totals.

    Lanes number runs by `lane >> low & lanes - 1`. Run j of all lanes precedes run j + 1 along the axis. lanes 1: each
    thread scans its own elements.
    """

    rows: Rows
    run: int
    low: int
    lanes: int


@frozen
class Ordered:
    """Each thread fetches the elements of a result one by one, in ascending order along the axis, and combines them.

    cells: shape (target registers, elements, threads): lane times `registers` plus register, -1 for no element.
    """

    cells: IntArray = field(eq=False)
    registers: int = 1


Plan = Reduction | Scan | Ordered


@frozen(eq=False)
class _Held:
    """What threads hold of the source and want of the result: arrays of shape (threads, registers).

    row: -1 for an element outside the source. along: the coordinate along the axis. upto: the last element, along the
    axis, that a result includes. group: the threads that reduce together.
    """

    element: IntArray
    row: IntArray
    along: IntArray
    wanted: IntArray
    upto: IntArray
    group: int

    @property
    def threads(self) -> int:
        return self.row.shape[0]


def fold_plan(stmt: Fold, unit: int) -> Plan:
    """The plan of a reduction or scan. unit: lanes of a warp.

    Raises ArgusError (E501) for elements indexed by run-time values, or warps that are not full.
    """
    source, target = layout_of(stmt.source.buffer), layout_of(stmt.target.buffer)
    shape = tuple(static(extent) for extent in stmt.source.shape)
    group = 1 if stmt.within == "thread" else unit
    return _plan(source, stmt.source.at, shape, target, stmt.axis, stmt.op == "last", stmt.keep == "prefix", group) or (
        _refuse(stmt.source.buffer.name, stmt.span)
    )


def _refuse(name: str, span: Span) -> Plan:
    raise not_built(f"a reduction of `{name}` by a warp that is not full, or of elements chosen at run time", span)


@lru_cache(maxsize=256)
def _plan(
    source: TV,
    at: tuple[Index, ...],
    shape: tuple[int, ...],
    target: TV,
    axis: int,
    last: bool,
    prefix: bool,
    group: int,
) -> Plan | None:
    held = _held(source, at, shape, target, axis, prefix, group)
    if held is None or held.threads % group:
        return None
    rows = _rows(held)
    if rows is None:
        return _ordered(held, last)
    if prefix:
        return _scan(held, rows) or _ordered(held, last)
    if last:
        return _last_of_thread(held, rows) or _ordered(held, last)
    return _reduction(held, rows) or _ordered(held, last)


def _held(
    source: TV, at: tuple[Index, ...], shape: tuple[int, ...], target: TV, axis: int, prefix: bool, group: int
) -> _Held | None:
    placed = element_rows(source, at, shape, axis)
    if placed is None:
        return None
    elements = source.elements()
    row, along = placed[0][elements], placed[1][elements]
    wanted, number = result_rows(target, axis, dropped=len(target.tile) < len(shape))
    return _Held(elements, row, along, wanted, number if prefix else np.full_like(wanted, shape[axis]), group)


def _rows(held: _Held) -> Rows | None:
    """The rows of each thread, if all threads hold them in the same registers in the same order."""
    found: Rows | None = None
    for row, along in zip(held.row.tolist(), held.along.tolist(), strict=True):
        own: dict[int, dict[int, int]] = {}
        for register, (number, coordinate) in enumerate(zip(row, along, strict=True)):
            if number >= 0:
                own.setdefault(number, {}).setdefault(coordinate, register)
        rows = tuple(tuple(register for _, register in sorted(each.items())) for each in own.values())
        if found is not None and rows != found:
            return None
        found = rows
    return found


def _reduction(held: _Held, rows: Rows) -> Reduction | None:
    """Lanes that differ in one bit either hold other rows, or the same elements, or disjoint parts of the same rows."""
    numbers = np.stack([held.row[:, row[0]] for row in rows], axis=1)
    parts = np.zeros((held.threads, len(rows), int(held.along.max()) + 1), np.bool_)
    for place, row in enumerate(rows):
        parts[np.arange(held.threads)[:, None], place, held.along[:, list(row)]] = True
    masks: list[int] = []
    for bit in range(held.group.bit_length() - 1):
        other = np.arange(held.threads) ^ 1 << bit
        same = numbers == numbers[other]
        if not same.any() or np.array_equal(parts[same.all(axis=1)], parts[other][same.all(axis=1)]):
            continue
        if not same.all() or (parts & parts[other]).any():
            return None
        masks.append(1 << bit)
        parts |= parts[other]
    results = _results(held, numbers)
    whole = _of_group(held, parts.shape[2])
    if any(not np.array_equal(parts[:, place], whole(numbers[:, place])) for place in set(results)):
        return None
    return Reduction(rows, tuple(masks), results) if -1 not in results else None


def _results(held: _Held, numbers: IntArray) -> tuple[int, ...]:
    """For each target register, which of the rows `numbers`, of shape (threads, rows), it is; -1 for none."""
    return tuple(
        next((place for place in range(numbers.shape[1]) if np.array_equal(numbers[:, place], wanted)), -1)
        for wanted in held.wanted.T
    )


def _of_group(held: _Held, extent: int) -> Callable[[IntArray], BoolArray]:
    """For a row of each thread, flags of its elements that the thread's group holds, by the definition."""
    group = np.arange(held.threads) // held.group
    flags = np.zeros((int(group[-1]) + 1, int(held.row.max()) + 1, extent), np.bool_)
    thread, register = np.nonzero(held.row >= 0)
    flags[group[thread], held.row[thread, register], held.along[thread, register]] = True
    return lambda rows: flags[group, rows]


def _last_of_thread(held: _Held, rows: Rows) -> Reduction | None:
    """The plan of the last elements of each thread's rows."""
    results = _results(held, np.stack([held.row[:, row[0]] for row in rows], axis=1))
    return Reduction(tuple(row[-1:] for row in rows), (), results) if held.group == 1 and -1 not in results else None


def _scan(held: _Held, rows: Rows) -> Scan | None:
    if any(len(row) != len(rows[0]) for row in rows) or len(rows) * len(rows[0]) != held.row.shape[1]:
        return None
    if held.group == 1:
        return Scan(rows, len(rows[0]), 0, 1)
    along = np.stack([held.along[:, list(row)] for row in rows], axis=1)
    numbers = np.stack([held.row[:, row[0]] for row in rows], axis=1)
    for low in range(held.group.bit_length()):
        lanes = 1
        while (
            low + lanes.bit_length() < held.group.bit_length()
            and (numbers == numbers[np.arange(held.threads) ^ lanes << low]).all()
            and (along != along[np.arange(held.threads) ^ lanes << low]).all()
        ):
            lanes *= 2
        if lanes > 1:
            return _scan_of_lanes(held, rows, along, low, lanes)
    return _scan_of_lanes(held, rows, along, 0, 1)


def _scan_of_lanes(held: _Held, rows: Rows, along: IntArray, low: int, lanes: int) -> Scan | None:
    """The scan with the longest runs, if runs of lanes follow each other and no other lane holds other elements."""
    numbers = np.stack([held.row[:, row[0]] for row in rows], axis=1)
    bits = (lanes - 1) << low
    threads = np.arange(held.threads)
    first = threads & ~bits
    count = along.shape[2]
    extent = int(held.along.max()) + 1
    whole = _of_group(held, extent)
    for run in range(count, 0, -1):
        if count % run:
            continue
        # (thread without its bits, row, run, lane, element) in the order in which the scan adds.
        order = [threads[first == start] for start in np.unique(first)]
        sequence = np.stack([along[each].reshape(lanes, len(rows), count // run, run) for each in order])
        line = sequence.transpose(0, 2, 3, 1, 4).reshape(len(order), len(rows), -1)
        if (np.diff(line, axis=2) <= 0).any():
            continue
        for place in range(len(rows)):
            flags = np.zeros((len(order), extent), np.bool_)
            flags[np.arange(len(order))[:, None], line[:, place]] = True
            if not np.array_equal(flags, whole(numbers[:, place])[[each[0] for each in order]]):
                return None
        return Scan(rows, run, low, lanes)
    return None


def _ordered(held: _Held, last: bool) -> Ordered:
    registers = held.row.shape[1]
    lists: list[list[int]] = []
    for thread in range(held.threads):
        start = thread // held.group * held.group
        cells: dict[int, dict[int, int]] = {}
        for other in [thread, *range(start, start + held.group)]:  # an own element rather than another lane's
            for register, (row, along) in enumerate(zip(held.row[other], held.along[other], strict=True)):
                cells.setdefault(int(row), {}).setdefault(int(along), (other - start) * registers + register)
        for row, upto in zip(held.wanted[thread], held.upto[thread], strict=True):
            own = [cell for along, cell in sorted(cells[int(row)].items()) if along <= upto]
            lists.append(own[-1:] if last else own)
    table = np.full((len(lists), max(map(len, lists))), -1, np.int64)
    for place, own in enumerate(lists):
        table[place, : len(own)] = own
    return Ordered(table.reshape(held.threads, -1, table.shape[1]).transpose(1, 2, 0), registers)
