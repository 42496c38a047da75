"""Simulates the waves of the workgroups on one compute unit: in-order waves, and units that serve one after another.

A wave issues its next instruction when its unit is free: of two that ask at one time the one of higher priority, then
the one that has waited longer. Loads and LDS instructions take effect later; `s_waitcnt` waits for as many of them as
its counts say, a barrier for all waves of the workgroup.

Between two barriers the wave that comes last to the second one decides: what it did and waited for in between is the
critical path, which is charged to its instructions. A kernel without barriers has that of the wave that ends last.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

from attrs import define, field, frozen

from argus.core.cost.dies import DieMachine
from argus.interp.gfx942.timing.operations import MOST_LOCAL, MOST_VECTOR, Kind, Operation

Resource = Literal["tensor", "issue", "shared", "lines", "memory", "wait for memory", "wait for LDS", "barrier"]
"""Units (as in `argus.core.cost.Prediction`), and what waves wait for besides them."""
UNITS: tuple[Resource, ...] = ("tensor", "issue", "shared", "lines", "memory")
_OWN: dict[Kind, Resource] = {"vector": "issue", "matrix": "tensor", "lds": "shared", "memory": "lines"}
_SCALAR_LATENCY = 200.0


@frozen
class Rates:
    """Bytes per cycle that one compute unit gets of the L2 cache, the last-level cache and device memory."""

    near: float
    far: float
    memory: float


@define
class Simulated:
    """cycles: until the last wave has ended. busy: by unit, of the four SIMDs their mean. used: busy cycles by unit
    and address. path: cycles of the critical path by unit, or what is waited for, and address; over all workgroups.
    """

    cycles: float = 0.0
    busy: dict[Resource, float] = field(factory=lambda: defaultdict[Resource, float](float))
    used: dict[tuple[Resource, int], float] = field(factory=lambda: defaultdict[tuple[Resource, int], float](float))
    path: dict[tuple[Resource, int], float] = field(factory=lambda: defaultdict[tuple[Resource, int], float](float))


@define(eq=False)
class _Wave:
    operations: Sequence[Operation]
    block: int
    simd: int
    priority: int = 0
    next: int = 0
    vector: list[float] = field(factory=list[float])
    local: list[float] = field(factory=list[float])
    scalar: float = 0.0
    since: dict[tuple[Resource, int], float] = field(factory=lambda: defaultdict[tuple[Resource, int], float](float))


_Arrived = tuple[_Wave, float]
"""A wave at a barrier, and when it came."""


@define(eq=False)
class _Unit:
    """A compute unit. vector, matrix: when each SIMD's is free; local, lines, path: LDS, vector cache, memory's way."""

    model: DieMachine
    rates: Rates
    result: Simulated
    vector: list[float]
    matrix: list[float]
    local: float = 0.0
    lines: float = 0.0
    path: float = 0.0
    waiting: dict[int, list[_Arrived]] = field(factory=lambda: defaultdict[int, list[_Arrived]](list))
    alive: dict[int, int] = field(factory=lambda: defaultdict[int, int](int))


def simulate(blocks: Sequence[Sequence[Sequence[Operation]]], model: DieMachine, rates: Rates) -> Simulated:
    """Run workgroups, each a sequence of waves, which are dealt out to the SIMDs in turn."""
    simds = model.machine.schedulers
    unit = _Unit(model, rates, Simulated(), [0.0] * simds, [0.0] * simds)
    heap: list[tuple[float, int, int, _Wave]] = []
    count = 0
    for number, waves in enumerate(blocks):
        for operations in waves:
            heap.append((0.0, 0, count, _Wave(operations, number, count % simds)))
            unit.alive[number] += 1
            count += 1
    heapq.heapify(heap)
    while heap:
        now, _, _, wave = heapq.heappop(heap)
        for woken, at in _step(unit, wave, now):
            count += 1
            heapq.heappush(heap, (at, -woken.priority, count, woken))
    return unit.result


def _step(unit: _Unit, wave: _Wave, now: float) -> list[tuple[_Wave, float]]:
    """Issue a wave's next instruction, or find out when it can be. Returns waves and when each is to go on."""
    operation, result, issue = wave.operations[wave.next], unit.result, unit.model.issue
    ready, why = _ready(unit, wave, operation, now)
    if ready > now:
        wave.since[why, operation.at] += ready - now
        return [(wave, ready)]
    wave.next += 1
    after = now + issue + operation.jump
    wave.since[_OWN.get(operation.kind, "issue"), operation.at] += after - now
    match operation.kind:
        case "vector" | "matrix":
            _compute(unit, wave, operation, now)
        case "lds":
            wave.local.append(_serve_local(unit, operation, now) + unit.model.machine.shared_latency)
        case "memory":
            wave.vector.append(_serve_memory(unit, operation, now))
        case "scalar memory":
            wave.scalar = now + _SCALAR_LATENCY
        case "priority":
            wave.priority = operation.priority
        case "wait":
            wave.vector = [done for done in wave.vector if done > now]
            wave.local = [done for done in wave.local if done > now]
        case "barrier":
            unit.waiting[wave.block].append((wave, now))
            return _meet(unit, wave.block)
        case "end":
            unit.alive[wave.block] -= 1
            if not unit.alive[wave.block]:
                _charge(result, wave)
            result.cycles = max(result.cycles, now, *wave.vector, *wave.local)
            return _meet(unit, wave.block)
        case "scalar":
            pass
    return [(wave, after)]


def _ready(unit: _Unit, wave: _Wave, operation: Operation, now: float) -> tuple[float, Resource]:
    """When an operation can be issued, and what it waits for until then."""
    match operation.kind:
        case "vector":
            return unit.vector[wave.simd], "issue"
        case "matrix":
            vector, matrix = unit.vector[wave.simd], unit.matrix[wave.simd]
            return (matrix, "tensor") if matrix >= vector else (vector, "issue")
        case "lds":
            return _oldest(wave.local, MOST_LOCAL), "shared"
        case "memory":
            return max(_oldest(wave.vector, MOST_VECTOR), unit.lines), "lines"
        case "wait":
            vector = _oldest(wave.vector, operation.vector)
            local = max(_oldest(wave.local, operation.local), 0.0 if operation.local else wave.scalar)
            return (vector, "wait for memory") if vector >= local else (local, "wait for LDS")
        case _:
            return now, "issue"


def _oldest(done: Sequence[float], most: int) -> float:
    """When at most so many of the operations are outstanding; they complete in order."""
    return max(done[: len(done) - most], default=0.0) if len(done) > most else 0.0


def _compute(unit: _Unit, wave: _Wave, operation: Operation, now: float) -> None:
    result, schedulers = unit.result, unit.model.machine.schedulers
    if operation.kind == "matrix":
        unit.matrix[wave.simd] = now + operation.cycles
        unit.vector[wave.simd] = now + unit.model.issue
        _use(result, "tensor", operation, operation.cycles / schedulers)
    else:
        unit.vector[wave.simd] = now + operation.cycles
        _use(result, "issue", operation, operation.cycles / schedulers)


def _serve_local(unit: _Unit, operation: Operation, now: float) -> float:
    unit.local = max(unit.local, now) + operation.cycles
    _use(unit.result, "shared", operation, operation.cycles)
    return unit.local


def _serve_memory(unit: _Unit, operation: Operation, now: float) -> float:
    """The time at which the bytes are there: through the vector cache, then from as far as they come."""
    machine, rates = unit.model.machine, unit.rates
    unit.lines = max(unit.lines, now) + operation.lines
    _use(unit.result, "lines", operation, operation.lines)
    cycles = max(operation.near / rates.near, operation.far / rates.far, operation.memory / rates.memory)
    unit.path = max(unit.path, now) + cycles
    _use(unit.result, "memory", operation, cycles)
    latency = unit.model.near_latency
    if operation.far:
        latency = machine.fitted.cache_latency
    if operation.memory and not operation.stores:
        latency += machine.fitted.memory_latency
    written = _serve_local(unit, operation, now) if operation.cycles else now
    return max(unit.path, unit.lines, written) + latency


def _meet(unit: _Unit, block: int) -> list[tuple[_Wave, float]]:
    """The waves of a workgroup that go on, if all that have not ended are at the barrier."""
    waiting = unit.waiting[block]
    if not waiting or len(waiting) < unit.alive[block]:
        return []
    release = max(came for _, came in waiting) + unit.model.machine.fitted.sync_latency
    last, came = max(waiting, key=lambda each: each[1])
    last.since["barrier", last.operations[last.next - 1].at] += release - came
    _charge(unit.result, last)
    for wave, _ in waiting:
        wave.since.clear()
    unit.waiting[block] = []
    return [(wave, release) for wave, _ in waiting]


def _charge(result: Simulated, wave: _Wave) -> None:
    for key, cycles in wave.since.items():
        result.path[key] += cycles


def _use(result: Simulated, name: Resource, operation: Operation, cycles: float) -> None:
    result.busy[name] += cycles
    result.used[name, operation.at] += cycles


def combined(results: Sequence[tuple[float, Simulated]]) -> Simulated:
    """The sum of results, each times its weight."""
    total = Simulated()
    for weight, each in results:
        total.cycles += weight * each.cycles
        for name, amount in each.busy.items():
            total.busy[name] += weight * amount
        for key, amount in each.used.items():
            total.used[key] += weight * amount
        for key, amount in each.path.items():
            total.path[key] += weight * amount
    return total
