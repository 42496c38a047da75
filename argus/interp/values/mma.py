"""Matrix instructions: FP32 sums of exact products, sums of integers that wrap around, and the tags of elements."""

from __future__ import annotations

import numpy as np

from argus.core.ir import Mma, View
from argus.core.tiling import Tiling
from argus.interp.machine.waves import Wave
from argus.interp.memory.cells import TOP, AnyArray, IntArray
from argus.interp.memory.trace import SourceCells
from argus.interp.state import Block
from argus.interp.values.operands import Operands, Source
from argus.interp.values.products import Products
from argus.interp.violation import Event, not_built


def multiply(block: Block, wave: Wave, stmt: Mma, event: Event) -> None:
    """Execute a synchronous matrix instruction for one wave, on registers, with all its repeats."""
    for view in (stmt.target, stmt.a, stmt.b):
        if view.buffer.space != "register":
            raise not_built(f"matrix operand in {view.buffer.space} memory", stmt)
    tiling: Tiling = stmt.tiling
    number = wave.number
    if number >= tiling.threads:
        return
    init = bool(block.scalars.number(stmt.init, wave.env, number, stmt))
    plan = block.launch.prepared.mma(stmt)
    a, b = (
        fetch(block, view, cells, garbage=block.check_in_flight(wave, view.buffer, event, "read"))
        for view, cells in ((stmt.a, plan.a[number]), (stmt.b, plan.b[number]))
    )
    flying = block.check_in_flight(wave, stmt.target.buffer, event, "written" if init else "read")
    add(block, wave, stmt, event, Operands(a, b, plan.c[number], plan.c, init), flying=flying)


def fetch(block: Block, view: View, cells: IntArray, *, garbage: bool = False) -> Source:
    """Read an operand. garbage: it is in flight, so that its elements are garbage."""
    held = block.cells(view.buffer)
    marks = None if held.marks is None else held.marks[cells]
    if garbage and marks is not None:
        marks[:] = TOP
    return Source(view, cells, None if held.values is None else held.values[cells], marks, block.launch.moment)


def add(block: Block, wave: Wave, stmt: Mma, event: Event, operands: Operands, *, flying: bool = False) -> None:
    """Add the products of operands that were read to the accumulators, and check their tags."""
    if block.launch.tags:
        Products(block, wave, stmt, event, operands).run(flying=flying)
    journal = block.launch.journal
    if journal is not None and block.launch.tags:
        a, b = ((source, block.cells(source.view.buffer)) for source in (operands.a, operands.b))
        buffer = stmt.target.buffer
        target = SourceCells(buffer, block.cells(buffer), operands.cells, journal.moment)
        journal.record_product(event, block.base, target, (a, b))
    if block.launch.values:
        _arithmetic(block, stmt, operands)


def _arithmetic(block: Block, stmt: Mma, operands: Operands) -> None:
    arithmetic = stmt.atom.arithmetic
    assert arithmetic is not None, f"{stmt.atom} computes nothing"
    target = block.cells(stmt.target.buffer).values
    a, b = operands.a.values, operands.b.values
    assert target is not None
    assert a is not None
    assert b is not None
    kind = block.launch.storage(arithmetic.product)
    left: AnyArray = a.astype(kind)
    right: AnyArray = b.astype(kind)
    product = np.matmul(left, right.T).astype(block.launch.storage(arithmetic.accumulate))
    at = operands.cells
    target[at] = product if operands.init else target[at] + product
