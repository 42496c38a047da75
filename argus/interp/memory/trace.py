"""A journal of a run's writes with their sources, recorded on request, to trace an element back to its tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
from attrs import define, field, frozen

from argus.core.ir import Buffer, Stmt
from argus.core.layout import TV
from argus.interp.memory.cells import BoolArray, Cells, IntArray
from argus.interp.values.operands import Source
from argus.interp.violation import Event

Fault = tuple[str, Stmt, Stmt | None]
"""The key of a violation in one run: the invariant, the statement and the one that it conflicts with."""


@frozen(eq=False)
class Spot:
    """One cell of a buffer, just before write number `moment`; cell -1 is padding, which no buffer holds."""

    buffer: Buffer
    cells: Cells
    cell: int
    moment: int


def spots(buffer: Buffer, cells: Cells, at: IntArray, moment: int) -> tuple[Spot, ...]:
    """The first `MOST` of some cells, just before write number `moment`."""
    return tuple(Spot(buffer, cells, cell, moment) for cell in at[:MOST].tolist())


MOST = 256
"""The number of elements to keep of those that fail in the same way."""


@frozen(eq=False)
class SourceCells:
    """The source cells of a write in one buffer, element by element, just before write number `moment`.

    inside: the elements that have a source cell; None for all.
    """

    buffer: Buffer
    cells: Cells
    at: IntArray
    moment: int
    inside: BoolArray | None = None

    def spot(self, index: int) -> Spot:
        """The cell that element `index`, in row-major order, came from."""
        missing = self.inside is not None and not self.inside.flat[index]
        return Spot(self.buffer, self.cells, -1 if missing else int(self.at.flat[index]), self.moment)


@frozen(eq=False)
class Write:
    """The cells that one statement wrote for one wave (except where not `inside`), and their sources.

    thread: the thread of the block, by element; origins: the source cells, by element.
    """

    event: Event
    buffer: Buffer
    target: Cells
    at: IntArray
    inside: BoolArray | None
    thread: Callable[[int], int]
    origins: Callable[[int], tuple[Spot, ...]]

    def element(self, cell: int) -> int | None:
        """The last of its elements that wrote the cell; None if none did."""
        hit = self.at == cell
        if self.inside is not None:
            hit &= self.inside
        found = np.flatnonzero(hit)
        return int(found[-1]) if found.size else None


@frozen(eq=False)
class FaultContext:
    """The state in which a violation was reported. moment: number of the next write; base: the block's first thread.

    cells: the block's storage. origins: the faulty cells; if empty, the element that the report names. alike: further
    cells that fail in the same way in the same execution.
    """

    moment: int
    cells: Callable[[Buffer], Cells]
    base: int
    origins: tuple[Spot, ...] = ()
    alike: tuple[Spot, ...] = ()


@define(eq=False)
class Journal:
    """The writes of one run in the order in which they took effect. contexts: the state at the report of each fault."""

    tensors: dict[Buffer, Cells] = field(factory=dict[Buffer, Cells])
    writes: list[Write] = field(factory=list[Write])
    contexts: dict[Fault, FaultContext] = field(factory=dict[Fault, FaultContext])

    @property
    def moment(self) -> int:
        """The number of the next write."""
        return len(self.writes)

    def record_elementwise(self, event: Event, first: int, target: SourceCells, sources: Sequence[SourceCells]) -> None:
        """Record an element-wise write, one row per thread. first: the thread of the first row."""
        width = target.at.shape[1]
        taken = tuple(sources)

        def thread(index: int) -> int:
            return first + index // width

        def origins(index: int) -> tuple[Spot, ...]:
            return tuple(source.spot(index) for source in taken)

        self.writes.append(Write(event, target.buffer, target.cells, target.at, target.inside, thread, origins))

    def record_product(
        self, event: Event, base: int, target: SourceCells, operands: tuple[tuple[Source, Cells], tuple[Source, Cells]]
    ) -> None:
        """Record a matrix product into accumulators (m, n); the sources are those of the first k with two values."""
        (a, _), (b, _) = operands
        layout, columns = cast(TV, target.buffer.layout), target.at.shape[1]
        registers = layout.values.size()
        assert a.marks is not None
        assert b.marks is not None
        valid_a, valid_b = a.marks >= 0, b.marks >= 0

        def thread(index: int) -> int:
            return base + int(target.at.flat[index]) // registers

        def origins(index: int) -> tuple[Spot, ...]:
            rows = divmod(index, columns)
            k = int((valid_a[rows[0]] & valid_b[rows[1]]).argmax())
            return tuple(
                Spot(source.view.buffer, cells, int(source.cells[row, k]), source.moment)
                for (source, cells), row in zip(operands, rows, strict=True)
            )

        self.writes.append(Write(event, target.buffer, target.cells, target.at, None, thread, origins))

    def last_write(self, spot: Spot) -> tuple[Write, int] | None:
        """The last write of a cell and the number of the element in it; None if the cell was not written."""
        for write in reversed(self.writes[: spot.moment]):
            if write.target is spot.cells:
                element = write.element(spot.cell)
                if element is not None:
                    return write, element
        return None
