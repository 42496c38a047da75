"""Splits steps whose guard or indices depend on the wave into one step per class of waves.

A condition or an index that depends on the thread only through its wave has few values over a block. Waves with equal
values execute one step, in which the wave number is a constant; other waves execute separate steps at the same line.
`Step.waves` is the class, as bits; every query about an execution uses it: its threads, its cells, the waits that cover
it.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from argus.core import algebra
from argus.core.index import Cond, Index
from argus.core.ir import Copy, Kernel, Stmt, Wait
from argus.core.ir.rewrite import rewrite_stmt
from argus.core.proof.dataflow.access import Accesses
from argus.core.proof.dataflow.timeline import Segment, Step, Timeline
from argus.core.walk import only_as_quotient, substitute, symbols


def split_divergent_steps(line: Timeline) -> Timeline:
    """The timeline with wave-dependent copies and waits split into one step per class; other steps unchanged."""
    if "lds" not in line.kernel.target.queues or not any(_depends_on_thread(line.kernel, s) for s in line.steps):
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


def _depends_on_thread(kernel: Kernel, step: Step) -> bool:
    return isinstance(step.stmt, Copy | Wait) and any(kernel.thread in symbols(node) for node in _thread_terms(step))


def _thread_terms(step: Step) -> tuple[Index, ...]:
    """The expressions that decide where and whether a step executes, the guard as 0 or 1."""
    stmt = step.stmt
    places = (*stmt.source.at, *stmt.target.at) if isinstance(stmt, Copy) else ()
    return (algebra.pick(step.guard, 1, 0), *places)


def _split(kernel: Kernel, step: Step, accesses: Accesses) -> Iterator[Step]:
    if not _depends_on_thread(kernel, step) or not _depends_on_wave_only(kernel, step):
        yield step
        return
    has_indices = all(access.places is not None for access in accesses.of(step))
    if kernel.thread not in symbols(step.guard) and has_indices:
        yield step
        return
    for waves, stmt, guard in _wave_classes(kernel, step):
        if guard is not algebra.FALSE:
            yield evolve(step, stmt=stmt, guard=guard, waves=waves)


def _depends_on_wave_only(kernel: Kernel, step: Step) -> bool:
    return all(only_as_quotient(node, kernel.thread, kernel.target.unit) for node in _thread_terms(step))


def _wave_classes(kernel: Kernel, step: Step) -> Iterator[tuple[int, Stmt, Cond]]:
    """The classes of waves, as bits, with equal guard and indices; statement and guard specialised to each class."""
    found: dict[tuple[Index, ...], int] = {}
    first: dict[tuple[Index, ...], int] = {}
    for wave in range(kernel.threads // kernel.target.unit):
        number = {kernel.thread: algebra.const(wave * kernel.target.unit)}
        seen = tuple(substitute(node, number) for node in _thread_terms(step))
        found[seen] = found.get(seen, 0) | 1 << wave
        first.setdefault(seen, wave)
    for seen, waves in found.items():
        number = {kernel.thread: algebra.const(first[seen] * kernel.target.unit)}
        yield waves, rewrite_stmt(step.stmt, number), substitute(step.guard, number)
