"""Which steps a value comes from, and the types that it is rounded to on the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from argus.core.ir import Buffer, Mma
from argus.core.proof.dataflow.timeline import Step
from argus.core.proof.values.held.cells import Cells, Rounding


def roundings(cells: Cells, steps: list[Step]) -> Iterator[Rounding]:
    """The roundings on the way to what the steps write, whose values have been asked for."""
    seen: set[Step] = set()
    stack = list(steps)
    while stack:
        step = stack.pop()
        if step not in seen:
            seen.add(step)
            yield from cells.roundings.get(step, ())
            stack.extend(origins(cells, step))


def in_words(found: Iterable[Rounding]) -> str:
    """What is rounded to what, as `exp2 to bf16, sum to e4m3`."""
    return ", ".join(sorted({f"{each.of or 'a value'} to {each.dtype}" for each in found}))


def origins(cells: Cells, step: Step) -> set[Step]:
    """The steps whose results a step reads: those that it asked for, and all that may have written its registers.

    A register tile's value is computed once: another step that reads it later asks no step for anything.
    """
    read = {each.view.buffer for each in cells.flow.accesses.of(step) if each.mode == "read"}
    read |= {step.stmt.target.buffer} if isinstance(step.stmt, Mma) else set()
    registers = (buffer for buffer in read if buffer.space == "register")
    return cells.sources.get(step, set()).union(*(_writers(cells, buffer, step) for buffer in registers))


def _writers(cells: Cells, buffer: Buffer, before: Step) -> Iterator[Step]:
    """The steps that may have written what a register tile holds before a step; a loop may have no iteration."""
    line = cells.flow.timeline.segments
    segment = line[before.segment]
    events = cells.events(segment, buffer)
    for step in reversed([each for each in events if each.position < before.position]):
        yield step
        if cells.overwrites(step, buffer):
            return
    yield from events if segment.loop is not None else ()
    for earlier in reversed(line[: before.segment]):
        for step in reversed(cells.events(earlier, buffer)):
            yield step
            if step.loop is None and cells.overwrites(step, buffer):
                return
