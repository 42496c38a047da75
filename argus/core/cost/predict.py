"""Predicts a kernel's time at given sizes from its IR and the machine description alone."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isfinite
from typing import Literal

from attrs import evolve, frozen

from argus.core.cost.addressing import NotModelledError, value_of
from argus.core.cost.costs import Cost
from argus.core.cost.counts import all_groups, block_numbers, runs
from argus.core.cost.groups import Numbers, block_groups, sizes_of
from argus.core.cost.machine import MACHINES, Machine
from argus.core.cost.occupancy import Compiled, Occupancy, occupancy, rounds
from argus.core.cost.scenario import Scenario, SimulationResult
from argus.core.cost.simulator import Simulation, has_loops
from argus.core.cost.traffic import resident_blocks, traffic
from argus.core.index import Index
from argus.core.ir import For, Kernel, Stmt

Bottleneck = Literal["tensor", "shared", "memory", "lines", "issue", "latency", "launch"]


@frozen
class Exposed:
    """Exposed latency: total microseconds that a thread group stalls at a statement."""

    group: str
    stmt: Stmt
    microseconds: float


@frozen
class Prediction:
    """The predicted time of one launch with a warm last-level cache; infinite if the kernel deadlocks.

    bottleneck: the busiest unit; "latency" where no unit is busy for most of the time. parts: busy microseconds of
    each unit of the busiest processor, and "launch" overhead; they overlap. notes: simplifications. occupancy: of one
    processor. exposed: stalls that nothing hides, longest first.
    """

    microseconds: float
    bottleneck: Bottleneck
    parts: tuple[tuple[str, float], ...]
    notes: tuple[str, ...]
    occupancy: Occupancy
    exposed: tuple[Exposed, ...] = ()


def predict(
    kernel: Kernel,
    sizes: Mapping[str, int],
    report: Compiled | None = None,
    machine: Machine | None = None,
) -> Prediction:
    """Predict the time of a kernel. sizes: by name. machine: the one of the kernel's target by default.

    Raises KeyError for a missing size.
    """
    model = machine or MACHINES[kernel.target.name]
    resident = occupancy(kernel, model, report)
    over = rounds(kernel, sizes, model, resident)
    notes: list[str] = []
    scenario, statements = _scenario_of(kernel, sizes, model, resident, report, notes)
    full = _simulate(evolve(scenario, blocks=resident.blocks), statements, notes) if over.full else None
    rest = _simulate(evolve(scenario, blocks=over.rest), statements, notes) if over.rest else None
    cycles, busy = 0.0, dict[str, float]()
    for times, result in ((over.full, full), (1, rest)):
        if result is not None:
            cycles += times * result.cycles
            for name, amount in result.busy.items():
                busy[name] = busy.get(name, 0.0) + times * amount
    cycles += max(0, over.count - 1) * model.fitted.block_start
    longest = full or rest
    assert longest is not None
    micro = cycles / model.clock + model.fitted.launch_us
    parts = {name: amount / model.clock for name, amount in busy.items()} | {"launch": model.fitted.launch_us}
    return Prediction(
        microseconds=micro,
        bottleneck=_bottleneck(parts, micro),
        parts=tuple(sorted(parts.items(), key=lambda part: -part[1])),
        notes=(*_general_notes(kernel, report), *notes),
        occupancy=resident,
        exposed=_exposed(longest, max(1, over.full) / model.clock),
    )


def _scenario_of(
    kernel: Kernel,
    sizes: Mapping[str, int],
    machine: Machine,
    resident: Occupancy,
    report: Compiled | None,
    notes: list[str],
) -> tuple[Scenario, float]:
    """The scenario of one block, and the number of statements that it executes."""
    over = rounds(kernel, sizes, machine, resident)
    together = min(over.blocks, over.processors * resident.blocks)
    groups = block_groups(
        kernel, block_numbers(kernel, sizes), resident_blocks(kernel, sizes_of(kernel, sizes), together)
    )
    costs: dict[tuple[Stmt, str], Cost] = {}
    statements = 0.0
    for group in all_groups(groups):
        for run in runs(group, machine, notes):
            costs.setdefault((run.stmt, group.name), run.cost)
            statements += run.times
    moved = traffic(kernel, sizes, machine, over, resident.blocks)
    busy = moved.busy / machine.target.processors
    scenario = Scenario(
        kernel=kernel,
        machine=machine,
        groups=groups,
        blocks=1,
        costs=costs,
        traffic=moved,
        mma_slowdown=1 + (machine.fitted.power_slowdown - 1) * busy,
        serialised=report is not None and report.serialised,
        moves_per_mma=0.0 if report is None else report.moves_per_mma,
    )
    return scenario, statements


_MOST_STATEMENTS = 20_000
"""Most statements to simulate, approximately; beyond that the model extrapolates."""
_FEWEST = 4


def _simulate(scenario: Scenario, statements: float, notes: list[str]) -> SimulationResult:
    """Simulate the scenario; extrapolate linearly from the first tiles if it has too many statements.

    statements: of one block. If even a few tiles have too many, scale up the simulated prefix.
    """
    tiles, total = _tile_count(scenario), statements * scenario.blocks
    if total <= _MOST_STATEMENTS:
        return _collect_notes(Simulation(scenario).run(), notes)
    most = int(_MOST_STATEMENTS * tiles / total) // 4 * 4
    if most < _FEWEST or tiles <= most + 2:
        result = _collect_notes(Simulation(evolve(scenario, statement_limit=_MOST_STATEMENTS)).run(), notes)
        return _scale(result, max(1.0, total / result.statements))
    fewer = most // 2
    short = _collect_notes(Simulation(evolve(scenario, tiles=fewer)).run(), notes)
    long = _collect_notes(Simulation(evolve(scenario, tiles=most)).run(), notes)
    beyond = (tiles - most) / (most - fewer)
    return SimulationResult(
        cycles=_extrapolate(short.cycles, long.cycles, beyond),
        busy={name: _extrapolate(short.busy[name], long.busy[name], beyond) for name in long.busy},
        waits={key: _extrapolate(short.waits.get(key, 0.0), long.waits[key], beyond) for key in long.waits},
        notes=long.notes,
        deadlocked_at=long.deadlocked_at,
        statements=long.statements,
    )


def _scale(result: SimulationResult, factor: float) -> SimulationResult:
    return evolve(
        result,
        cycles=result.cycles * factor,
        busy={name: cycles * factor for name, cycles in result.busy.items()},
        waits={key: cycles * factor for key, cycles in result.waits.items()},
    )


def _extrapolate(short: float, long: float, beyond: float) -> float:
    return max(long, long + (long - short) * beyond) if isfinite(long) and isfinite(short) else inf


def _collect_notes(result: SimulationResult, notes: list[str]) -> SimulationResult:
    """Append the simulation's notes; a deadlock yields infinite time."""
    deadlocked_at = () if result.deadlocked_at is None else (f"deadlock at {_source_place(result.deadlocked_at)}",)
    notes += [note for note in (*result.notes, *deadlocked_at) if note not in notes]
    return result if result.deadlocked_at is None else evolve(result, cycles=inf)


def _source_place(stmt: Stmt) -> str:
    frame = stmt.span.frame
    return type(stmt).__name__.lower() if frame is None else f"line {frame.line}"


def _tile_count(scenario: Scenario) -> int:
    """The largest upper bound of an outermost loop that contains loops; 0 if there is none."""
    loops = [(stmt, group) for group in scenario.groups.concurrent for stmt in group.body if isinstance(stmt, For)]
    return max((_concrete(loop.stop, group.numbers) for loop, group in loops if has_loops(loop)), default=0)


def _concrete(node: Index, numbers: Numbers) -> int:
    try:
        return int(value_of(node, numbers).flat[0])
    except NotModelledError:
        return 0


_MOST_EXPOSED = 8
_BUSY = 0.5


def _exposed(result: SimulationResult, scale: float) -> tuple[Exposed, ...]:
    found = [Exposed(group, stmt, cycles * scale) for (group, stmt), cycles in result.waits.items()]
    return tuple(sorted(found, key=lambda each: -each.microseconds)[:_MOST_EXPOSED])


def _bottleneck(parts: Mapping[str, float], microseconds: float) -> Bottleneck:
    names: tuple[Bottleneck, ...] = ("tensor", "shared", "memory", "lines", "issue", "launch")
    name = max(names, key=lambda each: parts.get(each, 0.0))
    return name if parts.get(name, 0.0) >= _BUSY * microseconds else "latency"


def _general_notes(kernel: Kernel, report: Compiled | None) -> tuple[str, ...]:
    """Simplifications of every prediction."""
    found = [
        "the model charges nothing for index arithmetic",
        "the model simulates one block: the first, which has the most tiles",
    ]
    if kernel.peers > 1:
        found.append("the model assumes that the blocks of a cluster run in lockstep")
    if report is None:
        found.append("registers are an estimate: there is no compiler's report")
    elif report.spilled:
        found.append(f"the compiler spills {report.spilled} bytes per thread, and the model charges nothing for spills")
    return tuple(found)
