"""Runs a kernel at concrete sizes, on concrete inputs, under one schedule, and collects its violations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.core.ir import (
    Assert,
    Compare,
    Elem,
    Kernel,
    Map,
    Stmt,
    Test,
    WrittenOnce,
    walk,
)
from argus.interp.compiled_kernel import Prepared
from argus.interp.machine import idle_blocks
from argus.interp.machine.blocks import run_agents
from argus.interp.memory.loading import drawn_together, load
from argus.interp.memory.trace import Journal
from argus.interp.progress import counted
from argus.interp.search.schedule import Adversary, EnabledSets, Schedule
from argus.interp.state import Launch
from argus.interp.step import run_block
from argus.interp.values import distinct
from argus.interp.values.formulas import check_formulas
from argus.interp.values.nodes import parts_first
from argus.interp.values.precision import IN_FLOAT64, precision_of
from argus.interp.values.tensor_claims import array_of, number, written_once
from argus.interp.violation import Reporter, UnsatisfiedPromiseError, Violation

Array = npt.NDArray[Any]


@frozen
class Outcome:
    """The result of one run.

    arrays: final contents of every parameter, by name (none without values). coverage: how often any wave executed
    each statement. enabled_sets: the sets of enabled actors that a priority schedule chose from.
    """

    arrays: Mapping[str, Array]
    violations: tuple[Violation, ...]
    coverage: Mapping[Stmt, int]
    enabled_sets: EnabledSets = frozenset()


def run(
    kernel: Kernel,
    sizes: Mapping[str, int],
    arrays: Mapping[str, Array] | None = None,
    schedule: Schedule = Schedule(),  # noqa: B008 reason: frozen
    *,
    tags: bool = True,
    values: bool = True,
    seed: int = 0,
    blocks: Sequence[tuple[int, ...]] | None = None,
    limit: int = 20,
) -> Outcome:
    """Run `kernel` and report what it violates.

    arrays: inputs by name, random from `seed` where absent. tags: track tags and check the invariants about them.
    values: compute values. blocks: the blocks to run, all by default. limit: the number of distinct violations to keep.
    Raises KeyError for a size without a value, ArgusError (E501) for a construct that the interpreter does not support.
    """
    return run_prepared(
        Prepared(kernel), sizes, arrays, schedule, tags=tags, values=values, seed=seed, blocks=blocks, limit=limit
    )


def run_prepared(
    prepared: Prepared,
    sizes: Mapping[str, int],
    arrays: Mapping[str, Array] | None,
    schedule: Schedule,
    *,
    tags: bool,
    values: bool,
    seed: int = 0,
    blocks: Sequence[tuple[int, ...]] | None = None,
    limit: int = 20,
    journal: Journal | None = None,
) -> Outcome:
    """`run`, for a kernel that is run many times. journal: records the writes of the run.

    A run that checks claims and is asked for no values computes those that formulas are about, in float64 throughout,
    unless the schedule rounds them.
    """
    kernel = prepared.kernel
    compared = tags and not values and bool(prepared.formula_claims)
    values = values or compared or needs_values(kernel)
    env = {symbol: sizes[symbol.name] for symbol in kernel.sizes}
    tensors = {} if journal is None else journal.tensors
    records_sets, adversary = prepared.stores_to_peers, Adversary(schedule)
    launch = Launch(
        prepared,
        env,
        tensors,
        values,
        tags,
        adversary,
        Reporter(limit),
        records_sets=records_sets,
        journal=journal,
        exact=compared and not schedule.rounds,
        compared=compared,
        precision=precision_of((kernel,)) if schedule.rounds else IN_FLOAT64,
    )
    with np.errstate(all="ignore"):
        load(launch, arrays or {}, (seed, schedule.draw) if schedule.draw else seed)
        run_blocks(launch, blocks)
    found = {buffer.name: array_of(launch, buffer) for buffer in kernel.parameters} if values else {}
    return Outcome(found, launch.reporter.violations, dict(launch.coverage), adversary.enabled_sets)


def promised_integers(kernel: Kernel, sizes: Mapping[str, int], seed: int) -> dict[str, Array]:
    """Random integer tensors, by name, that satisfy their promises. Raises ArgusError (E402) if none are found."""
    env = {symbol: sizes[symbol.name] for symbol in kernel.sizes}
    launch = Launch(Prepared(kernel), env, {}, True, False, Adversary(Schedule()), Reporter(1))
    random = np.random.default_rng(seed)
    return drawn_together(launch, {}, random)


def find_violations(prepared: Prepared, sizes: Mapping[str, int], schedule: Schedule) -> tuple[Violation, ...]:
    """The violations of a run on random inputs; none if no inputs are found that satisfy the promises."""
    try:
        return find_violations_strictly(prepared, sizes, schedule)
    except UnsatisfiedPromiseError:
        return ()


def find_violations_strictly(prepared: Prepared, sizes: Mapping[str, int], schedule: Schedule) -> tuple[Violation, ...]:
    """As `find_violations`, but raises UnsatisfiedPromiseError if no inputs are found that satisfy the promises."""

    def made() -> tuple[tuple[Violation, ...], EnabledSets, int]:
        outcome = run_prepared(prepared, sizes, None, schedule, tags=True, values=False)
        return outcome.violations, outcome.enabled_sets, sum(outcome.coverage.values())

    return prepared.runs.violations(tuple(sizes[each.name] for each in prepared.kernel.sizes), schedule, made)


def run_blocks(launch: Launch, blocks: Sequence[tuple[int, ...]] | None = None) -> None:
    """Run blocks of a launch whose tensors are loaded, all by default, and check claims about whole tensors."""
    every = _grid(launch)
    wanted = every if blocks is None else blocks
    if uses_agents(launch.prepared.kernel):
        clusters = list(_clusters(launch, every, wanted))
        groups = iter(clusters) if blocks is not None else idle_blocks.without_repeats(launch, iter(clusters))
        for together in counted(groups, len(clusters)):
            run_agents(launch, together)
    else:
        for index in counted(iter(wanted), len(wanted)):
            run_block(launch, index)
    if launch.tags:
        _check_tensors(launch, complete=blocks is None and not launch.halted)


def needs_values(kernel: Kernel) -> bool:
    """Whether the kernel's behaviour depends on comparisons of values."""
    return any(isinstance(stmt, Map) and _compares(stmt.elem) for stmt in walk(kernel.body))


def uses_agents(kernel: Kernel) -> bool:
    """Whether the kernel runs on the machine with agents, mbarriers and named barriers, rather than the one with waves
    and a single block barrier.
    """
    return kernel.roles is not None or "vmem" not in kernel.target.queues


def _grid(launch: Launch) -> list[tuple[int, ...]]:
    return list(product(*(range(number(launch, extent)) for extent in launch.prepared.kernel.grid)))


def _clusters(
    launch: Launch, every: list[tuple[int, ...]], wanted: Sequence[tuple[int, ...]]
) -> Iterator[list[tuple[int, ...]]]:
    """The clusters that contain a wanted block, each ordered by rank; clusters in the order of their first block."""
    kernel = launch.prepared.kernel
    if kernel.peers == 1:
        yield from ([index] for index in wanted)
        return
    sizes = (*kernel.cluster, *(1 for _ in kernel.grid[len(kernel.cluster) :]))
    together: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for index in sorted(every, key=lambda each: tuple(reversed(each))):
        together.setdefault(tuple(at // size for at, size in zip(index, sizes, strict=True)), []).append(index)
    chosen = set(wanted)
    yield from (indices for indices in together.values() if chosen & set(indices))


def _compares(elem: Elem | Test) -> bool:
    return any(isinstance(node, Compare) for node in parts_first(elem))


def _check_tensors(launch: Launch, *, complete: bool) -> None:
    distinct.check(launch)
    for stmt in walk(launch.prepared.kernel.body):
        if isinstance(stmt, Assert) and isinstance(stmt.claim, WrittenOnce):
            written_once(launch, stmt, stmt.claim, complete=complete)
    if launch.compared and not launch.halted:
        check_formulas(launch, complete=complete)
