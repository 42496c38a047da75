"""What one execution of a matrix instruction works on."""

from __future__ import annotations

from attrs import define

from argus.core.ir import View
from argus.interp.memory import AnyArray, IntArray


@define(eq=False)
class Source:
    """An operand as it was read, (row, k): the cells of its buffer and what they held."""

    view: View
    cells: IntArray
    values: AnyArray | None
    marks: IntArray | None


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
