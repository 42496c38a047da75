"""The operands of one execution of a matrix instruction."""

from __future__ import annotations

from attrs import define

from argus.core.ir import View
from argus.interp.memory.cells import AnyArray, IntArray


@define(eq=False)
class Source:
    """An operand as it was read, (row, k): the cells of its buffer with their values and marks.

    moment: the number of the next write in the journal, if there is one.
    """

    view: View
    cells: IntArray
    values: AnyArray | None
    marks: IntArray | None
    moment: int = 0


@define(eq=False)
class Operands:
    """The operands of one execution by one wave.

    cells: accumulators of the wave, (m, n); accumulators: of all waves, the same object for the same tiling.
    """

    a: Source
    b: Source
    cells: IntArray
    accumulators: IntArray
    init: bool
