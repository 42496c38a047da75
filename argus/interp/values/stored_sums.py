"""Records of stored sums: the set of each contracted name becomes a component when a sum leaves its registers."""

from __future__ import annotations

import numpy as np

from argus.core.ir import Buffer
from argus.interp.compiled_kernel import registers_of
from argus.interp.machine.waves import Wave
from argus.interp.memory.cells import BoolArray, IntArray
from argus.interp.state import Block, Sum
from argus.interp.values.sets import UNTRACKED
from argus.interp.values.sums import groups, same_accumulators


def with_sets(block: Block, wave: Wave, buffer: Buffer, marks: IntArray) -> IntArray:
    """The marks of one wave's registers, (thread, register), with the sets that the sums in them range over."""
    known = block.sums.get((buffer, wave.number))
    if known is None or not known.open or not same_accumulators(known.log):
        return marks
    width = registers_of(buffer)[1]
    cells = known.log[0].cells - wave.first * width
    flat = marks.reshape(-1).copy()
    held = flat[cells]
    checked = held > 0
    columns = _components(block, known, checked, held)
    if not columns or not checked.any():
        return marks
    records = block.launch.records
    old = held[checked]
    kept = {name: records.get(name, old) for name in records.names}
    first = records.add(old.size, kept | {name: column[checked] for name, column in columns.items()}, summed=True)
    held[checked] = np.arange(first, first + old.size, dtype=np.int64)
    flat[cells] = held
    return flat.reshape(marks.shape)


def _components(block: Block, known: Sum, checked: BoolArray, held: IntArray) -> dict[str, IntArray]:
    """For each contracted name, the set of every accumulator."""
    records = block.launch.records
    nothing = np.zeros(held.shape, np.int64)
    columns: dict[str, IntArray] = {}
    for name, status in list(known.name_status.items()):
        if status != "contracted":
            continue
        column = np.full(held.shape, UNTRACKED, np.int64)
        for group in groups(records, name, known.log, checked, nothing, nothing):
            column[group.members] = records.sets.of(group.components.tolist())
        columns[name] = column
    return columns
