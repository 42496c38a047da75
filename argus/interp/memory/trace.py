"""Every write of a run with what it took, kept on request, so that an element can be followed back to its tensor."""

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
"""What tells violations of one run apart: the invariant, the statement and the one that it conflicts with."""


@frozen(eq=False)
class Spot:
    """One cell of a buffer as it was before write number `moment`; cell -1 is padding, which no buffer holds."""

    buffer: Buffer
    cells: Cells
    cell: int
    moment: int


def spots(buffer: Buffer, cells: Cells, at: IntArray, moment: int) -> tuple[Spot, ...]:
    """The first cells of many, as they were before a write."""
    return tuple(Spot(buffer, cells, cell, moment) for cell in at[:MOST].tolist())


MOST = 256
"""Elements that are kept of those that fail alike."""


@frozen(eq=False)
class Taken:
    """What a write took from one buffer: element by element the cell, as it was before write number `moment`.

    inside: where it took a cell at all; None for everywhere.
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
    """One statement executed by one wave: the cells it wrote (skipped where not `inside`), and what each came from.

    thread: of the block, by element; origins: by element.
    """

    event: Event
    buffer: Buffer
    target: Cells
    at: IntArray
    inside: BoolArray | None
    thread: Callable[[int], int]
    origins: Callable[[int], tuple[Spot, ...]]

    def element(self, cell: int) -> int | None:
        """Which element of it wrote the cell; of several the last."""
        hit = self.at == cell
        if self.inside is not None:
            hit &= self.inside
        found = np.flatnonzero(hit)
        return int(found[-1]) if found.size else None


@frozen(eq=False)
class Asked:
    """When a violation was reported, and where its block's cells and threads are; `origins`: the elements at fault.

    No origins: the element that the report names. alike: more that fail as it does, in the same execution.
    """

    moment: int
    cells: Callable[[Buffer], Cells]
    base: int
    origins: tuple[Spot, ...] = ()
    alike: tuple[Spot, ...] = ()


@define(eq=False)
class Journal:
    """The writes of one run in the order in which they took effect, and the violations when they were reported."""

    tensors: dict[Buffer, Cells] = field(factory=dict[Buffer, Cells])
    writes: list[Write] = field(factory=list[Write])
    asked: dict[Fault, Asked] = field(factory=dict[Fault, Asked])

    @property
    def moment(self) -> int:
        """The number of the next write."""
        return len(self.writes)

    def moved(self, event: Event, first: int, target: Taken, sources: Sequence[Taken]) -> None:
        """Elements were assigned, one row a thread, from as many of each source. first: the thread of the first row."""
        width = target.at.shape[1]
        taken = tuple(sources)

        def thread(index: int) -> int:
            return first + index // width

        def origins(index: int) -> tuple[Spot, ...]:
            return tuple(source.spot(index) for source in taken)

        self.writes.append(Write(event, target.buffer, target.cells, target.at, target.inside, thread, origins))

    def multiplied(
        self, event: Event, base: int, target: Taken, operands: tuple[tuple[Source, Cells], tuple[Source, Cells]]
    ) -> None:
        """Products were added to accumulators (m, n): each came from the first k at which both operands have values."""
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

    def before(self, spot: Spot) -> tuple[Write, int] | None:
        """The write that gave a cell what it held, and which of its elements; None if it was not written."""
        for write in reversed(self.writes[: spot.moment]):
            if write.target is spot.cells:
                element = write.element(spot.cell)
                if element is not None:
                    return write, element
        return None
