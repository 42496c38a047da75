"""What a kernel is expected to take at given sizes, from its statements and the machine's row alone."""

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
    """Microseconds that a group of threads stands still at a statement, in all."""

    group: str
    stmt: Stmt
    microseconds: float


@frozen
class Prediction:
    """What one call takes, calls before it having left in the last cache what fits there; infinite if it never ends.

    bottleneck: the unit that is busy longest; "latency" where none is busy for most of the time. parts: microseconds
    that each unit of the busiest processor is busy, and "launch" around the kernel; they overlap. notes: what the
    model leaves out or takes for granted. occupancy: blocks of a processor. exposed: waits that nothing hides, longest
    first.
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
    """sizes: by name, each size of the kernel. machine: the row of the kernel's target if None.

    Raises KeyError for a size that is not given.
    """
    row = machine or MACHINES[kernel.target.name]
    held = occupancy(kernel, row, report)
    over = rounds(kernel, sizes, row, held)
    notes: list[str] = []
    script, statements = _script(kernel, sizes, row, held, report, notes)
    full = _played(evolve(script, blocks=held.blocks), statements, notes) if over.full else None
    rest = _played(evolve(script, blocks=over.rest), statements, notes) if over.rest else None
    cycles, busy = 0.0, dict[str, float]()
    for times, played in ((over.full, full), (1, rest)):
        if played is not None:
            cycles += times * played.cycles
            for name, amount in played.busy.items():
                busy[name] = busy.get(name, 0.0) + times * amount
    cycles += max(0, over.count - 1) * row.fitted.block
    longest = full or rest
    assert longest is not None
    micro = cycles / row.clock + row.fitted.launch
    parts = {name: amount / row.clock for name, amount in busy.items()} | {"launch": row.fitted.launch}
    return Prediction(
        microseconds=micro,
        bottleneck=_bottleneck(parts, micro),
        parts=tuple(sorted(parts.items(), key=lambda part: -part[1])),
        notes=(*_always(kernel, report), *notes),
        occupancy=held,
        exposed=_exposed(longest, max(1, over.full) / row.clock),
    )


def _script(
    kernel: Kernel,
    sizes: Mapping[str, int],
    machine: Machine,
    held: Occupancy,
    report: Compiled | None,
    notes: list[str],
) -> tuple[Scenario, float]:
    """The script of one block, and how many statements that runs."""
    over = rounds(kernel, sizes, machine, held)
    together = min(over.blocks, over.processors * held.blocks)
    cast = block_groups(
        kernel, block_numbers(kernel, sizes), resident_blocks(kernel, sizes_of(kernel, sizes), together)
    )
    costs: dict[tuple[Stmt, str], Cost] = {}
    statements = 0.0
    for group in all_groups(cast):
        for run in runs(group, machine, notes):
            costs.setdefault((run.stmt, group.name), run.cost)
            statements += run.times
    moved = traffic(kernel, sizes, machine, over, held.blocks)
    busy = moved.busy / machine.target.processors
    script = Scenario(
        kernel=kernel,
        machine=machine,
        cast=cast,
        blocks=1,
        costs=costs,
        traffic=moved,
        heat=1 + (machine.fitted.heat - 1) * busy,
        serialised=report is not None and report.serialised,
        beside=0.0 if report is None else report.beside,
    )
    return script, statements


_PATIENCE = 20_000
"""Statements that are played, about."""
_FEWEST = 4


def _played(script: Scenario, statements: float, notes: list[str]) -> SimulationResult:
    """The script played; of many tiles a few, and the others as long each as the last of these.

    statements: that one block runs. Where even a few tiles are too many, what was played of them stands for all.
    """
    tiles, all_of_it = _tiles(script), statements * script.blocks
    if all_of_it <= _PATIENCE:
        return _told(Simulation(script).play(), notes)
    most = int(_PATIENCE * tiles / all_of_it) // 4 * 4
    if most < _FEWEST or tiles <= most + 2:
        played = _told(Simulation(evolve(script, patience=_PATIENCE)).play(), notes)
        return _stretched(played, max(1.0, all_of_it / played.statements))
    fewer = most // 2
    short = _told(Simulation(evolve(script, tiles=fewer)).play(), notes)
    long = _told(Simulation(evolve(script, tiles=most)).play(), notes)
    beyond = (tiles - most) / (most - fewer)
    return SimulationResult(
        cycles=_further(short.cycles, long.cycles, beyond),
        busy={name: _further(short.busy[name], long.busy[name], beyond) for name in long.busy},
        waits={key: _further(short.waits.get(key, 0.0), long.waits[key], beyond) for key in long.waits},
        notes=long.notes,
        stuck=long.stuck,
        statements=long.statements,
    )


def _stretched(played: SimulationResult, factor: float) -> SimulationResult:
    return evolve(
        played,
        cycles=played.cycles * factor,
        busy={name: cycles * factor for name, cycles in played.busy.items()},
        waits={key: cycles * factor for key, cycles in played.waits.items()},
    )


def _further(short: float, long: float, beyond: float) -> float:
    return max(long, long + (long - short) * beyond) if isfinite(long) and isfinite(short) else inf


def _told(played: SimulationResult, notes: list[str]) -> SimulationResult:
    """What nobody can go on with takes for ever."""
    stuck = () if played.stuck is None else (f"nobody goes on at {_place(played.stuck)}",)
    notes += [note for note in (*played.notes, *stuck) if note not in notes]
    return played if played.stuck is None else evolve(played, cycles=inf)


def _place(stmt: Stmt) -> str:
    frame = stmt.span.frame
    return type(stmt).__name__.lower() if frame is None else f"line {frame.line}"


def _tiles(script: Scenario) -> int:
    """The largest end of an outermost loop around others; 0 where there is none."""
    loops = [(stmt, group) for group in script.cast.beside for stmt in group.body if isinstance(stmt, For)]
    return max((_number(loop.stop, group.numbers) for loop, group in loops if has_loops(loop)), default=0)


def _number(node: Index, numbers: Numbers) -> int:
    try:
        return int(value_of(node, numbers).flat[0])
    except NotModelledError:
        return 0


_MOST_EXPOSED = 8
_BUSY = 0.5


def _exposed(played: SimulationResult, scale: float) -> tuple[Exposed, ...]:
    found = [Exposed(group, stmt, cycles * scale) for (group, stmt), cycles in played.waits.items()]
    return tuple(sorted(found, key=lambda each: -each.microseconds)[:_MOST_EXPOSED])


def _bottleneck(parts: Mapping[str, float], microseconds: float) -> Bottleneck:
    names: tuple[Bottleneck, ...] = ("tensor", "shared", "memory", "lines", "issue", "launch")
    name = max(names, key=lambda each: parts.get(each, 0.0))
    return name if parts.get(name, 0.0) >= _BUSY * microseconds else "latency"


def _always(kernel: Kernel, report: Compiled | None) -> tuple[str, ...]:
    """What no prediction has in it."""
    found = ["addresses and indices take no time", "one block stands for all: the first, which has most tiles"]
    if kernel.peers > 1:
        found.append("blocks of a cluster are alike at every moment")
    if report is None:
        found.append("registers are guessed: no compiler has said")
    elif report.spilled:
        found.append(f"{report.spilled} bytes a thread live in memory, and their way there and back takes no time here")
    return tuple(found)
