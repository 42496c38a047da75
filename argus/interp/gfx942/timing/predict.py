"""Predicts the time of a launch of gfx942 machine code.

One workgroup from the middle of the grid is followed through the code; what its waves issue is simulated with as many
workgroups as a compute unit holds at once. Of a long loop a few iterations are simulated, and the others take as long
as each of those. What concurrent workgroups load is compared line by line: a line is fetched once into the L2 cache of
each die that wants it, and once from memory for all dies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil, prod
from typing import Literal

import numpy as np
from attrs import frozen

from argus.core.cost.dies import DieMachine
from argus.interp.gfx942.code_object import CodeObject, Descriptor
from argus.interp.gfx942.dispatch import Extents, Triple
from argus.interp.gfx942.instruction import Instruction
from argus.interp.gfx942.state import LANES
from argus.interp.gfx942.timing.accesses import LINE, VECTOR_CACHE, global_access
from argus.interp.gfx942.timing.operations import Operation, Shares, operation
from argus.interp.gfx942.timing.simulate import UNITS, Rates, Resource, Simulated, combined, simulate
from argus.interp.gfx942.timing.trace import Given, Trace, WaveTrace, follow
from argus.interp.gfx942.wait_states import multiply_adds

Limit = Resource | Literal["launch"]
_SHORT, _LONG, _LAST = 4, 8, 2
"""Iterations of a long loop that are simulated: at its start, in two simulations, and at its end."""
_BUSY = 0.5


@frozen
class Launch:
    """name: of the kernel. arguments: in order, those of tensors None, or their contents.

    operands: bytes of the tensors that it reads.
    """

    name: str
    extents: Extents
    arguments: tuple[Given, ...]
    operands: float

    @property
    def blocks(self) -> int:
        return prod(self.extents.grid)


@frozen
class CodePrediction:
    """microseconds: of one launch, at the clock that the power limit allows; clock: in MHz.

    limit: the busiest unit; where none is busy for half of the time, the largest part of the critical path. at: the
    instructions that use it or wait for it, with their share, the largest first. busy: share of time of each unit.
    path: of the critical path, the share of each unit and of what is waited for. resident: workgroups of one compute
    unit, limited by `occupancy_limit`. flops: of all matrix instructions. notes: what is left out.
    """

    microseconds: float
    clock: float
    limit: Limit
    at: tuple[tuple[Instruction, float], ...]
    busy: Mapping[str, float]
    path: Mapping[str, float]
    resident: int
    occupancy_limit: str
    flops: float
    notes: tuple[str, ...]

    @property
    def tflops(self) -> float:
        """10^12 floating-point operations of matrix instructions a second."""
        return self.flops / self.microseconds / 1e6


def predict(code: CodeObject, launch: Launch, model: DieMachine) -> CodePrediction:
    """Predict the time of a launch, with operands in the last-level cache as far as they fit.

    Raises ArgusError: E420 for other arguments than the kernel's, E502 for an instruction that is not modelled.
    """
    kernel, waves = code.kernel(launch.name), ceil(launch.extents.threads / LANES)
    middle = _block(launch, launch.blocks // 2)
    trace = follow(
        code,
        launch.name,
        [(middle, wave) for wave in range(waves)],
        launch.extents,
        launch.arguments,
        model=model,
    )
    resident, why = _resident(kernel.descriptor, waves, model)
    notes = ["loads of data that is not given are followed as zeros, which decides branches on it"]
    if any(wave.cut for wave in trace.waves):
        notes.append("a wave executes more instructions than are followed: the time is too short")
    if kernel.descriptor.scratch_bytes:
        notes.append("accesses to scratch memory are taken for cache hits")
    header = _headers(trace)
    shares = _shares(code, launch, model, trace, header, resident)
    operations = _operations(trace, shares, header, resident, model)
    total = _whole(launch, model, trace, operations, header, resident)
    return _finished(launch, model, trace, total, resident, why, tuple(notes))


def _block(launch: Launch, number: int) -> Triple:
    x, y, _ = launch.extents.grid
    return number % x, number // x % y, number // (x * y)


def _resident(described: Descriptor, waves: int, model: DieMachine) -> tuple[int, str]:
    """Workgroups that a compute unit holds at once, and what limits them."""
    machine = model.machine
    registers = (described.vgprs + described.agprs) * LANES
    of_wave = max(machine.grain, ceil(registers / machine.grain) * machine.grain)
    slots = machine.schedulers * (machine.registers // machine.schedulers // of_wave)
    room = {
        "registers": slots // waves,
        "LDS": machine.shared // max(1, described.lds_bytes),
        "waves": machine.waves // waves,
    }
    limit = min(room, key=lambda each: room[each])
    return max(1, room[limit]), limit


# -- loops ---------------------------------------------------------------------------------------------------------


def _headers(trace: Trace) -> tuple[int, ...]:
    """Of each wave, the first instruction of the loop that it goes round most often; 0 if there is none."""
    found: dict[int, int] = {}
    for wave in trace.waves:
        if id(wave.at) not in found:
            back = Counter(to for before, to in zip(wave.at, wave.at[1:], strict=False) if to <= before)
            found[id(wave.at)] = back.most_common(1)[0][0] if back else 0
    return tuple(found[id(wave.at)] for wave in trace.waves)


def _visits(wave: WaveTrace, header: int) -> list[int]:
    return [place for place, at in enumerate(wave.at) if at == header] if header else []


def _whole(
    launch: Launch,
    model: DieMachine,
    trace: Trace,
    operations: Sequence[Mapping[int, Operation]],
    headers: Sequence[int],
    resident: int,
) -> Simulated:
    """All rounds of workgroups of the busiest compute unit."""
    processors = model.processors
    full, left = divmod(launch.blocks, processors * resident)
    rest = ceil(left / processors)
    parts: list[tuple[float, Simulated]] = []
    for times, count in ((full, resident), (1, rest)):
        if times and count:
            busy = min(processors, launch.blocks)
            parts.append((times, _blocks(trace, operations, headers, count, model, _rates(model, busy))))
    total = combined(parts)
    total.cycles += (full + (rest > 0) - 1) * model.machine.fitted.block_start
    return total


def _rates(model: DieMachine, busy: int) -> Rates:
    """Of each compute unit, with so many that are busy."""
    machine = model.machine
    each_die = max(1.0, busy / len(machine.parts))
    return Rates(min(machine.port, model.die_cache / each_die), model.far / busy, machine.memory / busy)


def _blocks(
    trace: Trace,
    operations: Sequence[Mapping[int, Operation]],
    headers: Sequence[int],
    count: int,
    model: DieMachine,
    rates: Rates,
) -> Simulated:
    """So many workgroups at a time, extrapolated from a few iterations of their loops."""
    visits = {key: _visits(wave, header) for wave, header, key in _distinct(trace, headers)}
    least = min(map(len, visits.values()), default=0)
    removed = (least - _SHORT - _LAST) // 2 * 2

    def run(without: int) -> Simulated:
        waves: dict[int, list[int]] = {}
        for wave, _, key in _distinct(trace, headers):
            waves[key] = _without(wave, visits[key], without)
        one = [[known[at] for at in waves[id(wave.at)]] for wave, known in zip(trace.waves, operations, strict=True)]
        return simulate([one] * count, model, rates)

    more = _LONG - _SHORT
    if removed <= max(0, more):
        return run(0)
    short, long = run(removed), run(removed - more)
    beyond = (removed - more) / more
    return combined([(1 + beyond, long), (-beyond, short)])


def _distinct(trace: Trace, headers: Sequence[int]) -> list[tuple[WaveTrace, int, int]]:
    """One wave of each way through the code, with its header and a key."""
    return list({id(w.at): (w, header, id(w.at)) for w, header in zip(trace.waves, headers, strict=True)}.values())


def _without(wave: WaveTrace, visits: Sequence[int], removed: int) -> list[int]:
    """The instructions of a wave without so many iterations of its loop, after the first ones."""
    if not removed:
        return list(wave.at)
    last = len(visits) - _LAST
    return [*wave.at[: visits[last - removed]], *wave.at[visits[last] :]]


# -- traffic -------------------------------------------------------------------------------------------------------


def _shares(
    code: CodeObject, launch: Launch, model: DieMachine, trace: Trace, headers: Sequence[int], resident: int
) -> dict[int, Shares]:
    """Of each load, what the workgroups that run together take from the last-level cache and from memory.

    Compared are the lines of each workgroup's first wave, in the first execution of the load.
    """
    together = min(launch.blocks, model.processors * resident)
    first = trace.waves[0]
    visits = _visits(first, headers[0])
    limit = visits[2] if len(visits) > 2 else len(first.at)
    rows = [(_block(launch, number), 0) for number in range(together)]
    others = follow(code, launch.name, rows, launch.extents, launch.arguments, limit=limit)
    missed = model.machine.missed(launch.operands)
    dies = len(model.machine.parts)
    found: dict[int, Shares] = {}
    for at in first.accesses:
        lines = [wave.accesses[at].lines if at in wave.accesses else np.empty(0, np.int64) for wave in others.waves]
        every = sum(map(len, lines))
        if every:
            # Hardware deals workgroups out to the dies in turn [AMD CDNA 3 white paper].
            of_die = sum(len(np.unique(np.concatenate(lines[die::dies]))) for die in range(min(dies, len(lines))))
            of_all = len(np.unique(np.concatenate(lines)))
            found[at] = Shares(of_die / every, missed * of_all / every)
    return found


def _operations(
    trace: Trace, shares: Mapping[int, Shares], headers: Sequence[int], resident: int, model: DieMachine
) -> list[dict[int, Operation]]:
    """Of each wave, its operations by address."""
    own = _own_lines(trace, headers, resident)
    everywhere = Shares(1.0, 1.0)
    return [
        {
            at: operation(trace.steps[at], wave.accesses.get(at), own.get(at, 1.0), shares.get(at, everywhere), model)
            for at in set(wave.at)
        }
        for wave in trace.waves
    ]


def _own_lines(trace: Trace, headers: Sequence[int], resident: int) -> dict[int, float]:
    """Of each access, the share of its lines that the workgroup has not requested just before: the vector cache has
    the others, of loads as far back as a workgroup's part of it reaches, but not of loads ahead of the loop.
    """
    room = max(1, VECTOR_CACHE // LINE // resident)
    again = {at for wave, header, _ in _distinct(trace, headers) for at in _loop(wave, header)}
    found: dict[int, float] = {}
    held: dict[int, None] = {}
    inside = False
    for at in dict.fromkeys(at for wave in trace.waves for at in wave.accesses):
        lines = [wave.accesses[at].lines for wave in trace.waves if at in wave.accesses]
        every = sum(map(len, lines))
        if not every:
            continue
        if inside != (at in again):
            inside = not inside
            held.clear()
        distinct = np.unique(np.concatenate(lines)).tolist()
        access = global_access(trace.steps[at].instruction.row.name)
        stores = access is not None and access.stores
        found[at] = sum(stores or line not in held for line in distinct) / every
        for line in () if stores else distinct:
            held.pop(line, None)
            held[line] = None
        for line in list(held)[: max(0, len(held) - room)]:
            del held[line]
    return found


def _loop(wave: WaveTrace, header: int) -> frozenset[int]:
    """The addresses of the first iteration of a wave's loop."""
    visits = _visits(wave, header)[:2]
    return frozenset(wave.at[slice(*visits)]) if len(visits) > 1 else frozenset()


# -- result --------------------------------------------------------------------------------------------------------


def _finished(
    launch: Launch,
    model: DieMachine,
    trace: Trace,
    total: Simulated,
    resident: int,
    why: str,
    notes: tuple[str, ...],
) -> CodePrediction:
    machine = model.machine
    busy = {name: total.busy[name] / total.cycles for name in UNITS}
    filled = launch.blocks / (ceil(launch.blocks / model.processors) * model.processors)
    share = model.clock_share(busy["tensor"] * filled)
    micro = total.cycles / (machine.clock * share) + machine.fitted.launch_us
    path: dict[Resource, float] = {}
    for (name, _), cycles in total.path.items():
        path[name] = path.get(name, 0.0) + cycles / sum(total.path.values())
    limit: Limit = max(UNITS, key=lambda name: busy[name])
    found = total.used
    if busy[limit] < _BUSY:
        limit, found = max(path, key=lambda name: path[name]), total.path
    at = _places(trace, found, limit)
    if machine.fitted.launch_us > _BUSY * micro:
        limit, at = "launch", ()
    products = sum(
        multiply_adds(trace.steps[at].instruction.row.name) * count
        for wave in trace.waves
        for at, count in Counter(wave.at).items()
        if trace.steps[at].unit == "matrix"
    )
    return CodePrediction(
        microseconds=micro,
        clock=machine.clock * share,
        limit=limit,
        at=at,
        busy=busy,
        path=dict(sorted(path.items(), key=lambda part: -part[1])),
        resident=resident,
        occupancy_limit=why,
        flops=2.0 * products * launch.blocks,
        notes=notes,
    )


def _places(
    trace: Trace, found: Mapping[tuple[Resource, int], float], limit: Limit
) -> tuple[tuple[Instruction, float], ...]:
    own = sorted(((cycles, at) for (name, at), cycles in found.items() if name == limit), reverse=True)
    whole = sum(cycles for cycles, _ in own) or 1.0
    return tuple((trace.steps[at].instruction, cycles / whole) for cycles, at in own)
