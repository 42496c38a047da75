"""What one execution of a matrix instruction works on."""

from __future__ import annotations

from attrs import define

from argus.core.ir import View
from argus.interp.memory.cells import AnyArray, IntArray


@define(eq=False)
class Source:
    """An operand as it was read, (row, k): the cells of its buffer and what they held.

    moment: the number of the write that came next, if a journal is kept.
    """

    view: View
    cells: IntArray
    values: AnyArray | None
    marks: IntArray | None
    moment: int = 0


@define(eq=False)
class Operands:
    """What one execution by one wave works on.

    cells: of the accumulators, (m, n); accumulators: those of all waves, the same object for the same tiling.
    """

    a: Source
    b: Source
    cells: IntArray
    accumulators: IntArray
    init: bool
