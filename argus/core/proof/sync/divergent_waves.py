"""Waves apart: statements that only some waves execute, or that waves execute at places of their own.

A condition or an index that speaks of the thread's wave alone has few values over a block. Waves that agree in all of
them execute one step, in which the wave's number is a number; those that disagree execute steps of their own, side by
side at one line. `Step.waves` says which, and every question about an execution asks it: whom it concerns, which cells
it touches, whose waits cover it.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from argus.core import algebra
from argus.core.index import Cond, Index
from argus.core.ir import Copy, Kernel, Stmt, Wait
from argus.core.ir.rewrite import in_stmt
from argus.core.proof.dataflow.access import Accesses
from argus.core.proof.dataflow.timeline import Segment, Step, Timeline
from argus.core.walk import only_as_quotient, substitute, symbols


def apart(line: Timeline) -> Timeline:
    """The line with such copies and waits as one step for the waves alike; other statements are left as they are."""
    if "lds" not in line.kernel.target.queues or not any(_speaks_of_threads(line.kernel, s) for s in line.steps):
        return line
    segments: list[Segment] = []
    position = 0
    accesses = Accesses(line)
    for segment in line.segments:
        steps: list[Step] = []
        for step in segment.steps:
            for each in _split(line.kernel, step, accesses):
                steps.append(evolve(each, position=position))
                position += 1
        segments.append(evolve(segment, steps=tuple(steps)))
    return evolve(line, segments=tuple(segments))


def _speaks_of_threads(kernel: Kernel, step: Step) -> bool:
    return isinstance(step.stmt, Copy | Wait) and any(kernel.thread in symbols(node) for node in _nodes(step))


def _nodes(step: Step) -> tuple[Index, ...]:
    """What a step's place depends on, the condition as 0 or 1."""
    stmt = step.stmt
    places = (*stmt.source.at, *stmt.target.at) if isinstance(stmt, Copy) else ()
    return (algebra.pick(step.guard, 1, 0), *places)


def _split(kernel: Kernel, step: Step, accesses: Accesses) -> Iterator[Step]:
    if not _speaks_of_threads(kernel, step) or not _of_waves_alone(kernel, step):
        yield step
        return
    stands = all(access.places is not None for access in accesses.of(step))
    if kernel.thread not in symbols(step.guard) and stands:
        yield step
        return
    for waves, stmt, guard in _classes(kernel, step):
        if guard is not algebra.FALSE:
            yield evolve(step, stmt=stmt, guard=guard, waves=waves)


def _of_waves_alone(kernel: Kernel, step: Step) -> bool:
    return all(only_as_quotient(node, kernel.thread, kernel.target.unit) for node in _nodes(step))


def _classes(kernel: Kernel, step: Step) -> Iterator[tuple[int, Stmt, Cond]]:
    """The waves, as bits, that agree in the condition and in all places, with these as they see them."""
    found: dict[tuple[Index, ...], int] = {}
    first: dict[tuple[Index, ...], int] = {}
    for wave in range(kernel.threads // kernel.target.unit):
        number = {kernel.thread: algebra.const(wave * kernel.target.unit)}
        seen = tuple(substitute(node, number) for node in _nodes(step))
        found[seen] = found.get(seen, 0) | 1 << wave
        first.setdefault(seen, wave)
    for seen, waves in found.items():
        number = {kernel.thread: algebra.const(first[seen] * kernel.target.unit)}
        yield waves, in_stmt(step.stmt, number), substitute(step.guard, number)
