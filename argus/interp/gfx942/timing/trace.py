"""Follows waves through the code for their control flow and addresses alone.

Matrix instructions compute nothing: their results are 0, as is whatever is loaded from a tensor that is not given. So
the way of a kernel that branches on such data is one of those it may take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from attrs import define, field, frozen

from argus.core.cost.dies import DieMachine
from argus.interp.gfx942.code_object import CodeKernel, CodeObject
from argus.interp.gfx942.dispatch import (
    KERNARG,
    PACKET,
    PACKET_BYTES,
    Extents,
    Triple,
    fill,
    kernarg_bytes,
    packed_ids,
    start,
)
from argus.interp.gfx942.findings import Findings
from argus.interp.gfx942.flow import DivergedError
from argus.interp.gfx942.global_memory import addresses
from argus.interp.gfx942.instruction import EXEC, Vector
from argus.interp.gfx942.memory import as_bytes, memory_of
from argus.interp.gfx942.races import Races
from argus.interp.gfx942.state import LANES, Array, Group, Wave, new_wave, vector_registers
from argus.interp.gfx942.step import Step, step_at
from argus.interp.gfx942.timing.accesses import (
    Global,
    global_access,
    lines_of,
    local_access,
    local_cycles,
    scratch_lines,
)

Given = int | None | npt.NDArray[np.int32]
"""An argument: a number, a tensor of which nothing is known, or the contents of one."""
_APART = 1 << 40
"""Bytes between tensors: no two share a line. Tensors lie far from what is executed on."""
LIMIT = 4_000_000
"""Instructions of one wave, beyond which a trace is cut."""


@frozen
class Access:
    """The first execution of a memory instruction by one wave. local: LDS cycles. lines: cache lines."""

    local: int = 0
    lines: npt.NDArray[np.int64] = field(factory=lambda: np.empty(0, np.int64), eq=False)


@frozen
class WaveTrace:
    """One wave. at: addresses of its instructions in order. accesses: of its memory instructions, by address. cut:
    whether it goes on beyond the limit.
    """

    block: Triple
    wave: int
    at: Sequence[int]
    accesses: Mapping[int, Access]
    cut: bool


@frozen
class Trace:
    waves: tuple[WaveTrace, ...]
    steps: Mapping[int, Step]


@define
class _Path:
    """Waves that have gone the same way so far. rows: the (workgroup, wave) of each."""

    group: Group
    wave: Wave
    rows: npt.NDArray[np.int64]
    at: list[int]
    accesses: dict[int, list[Access]]

    def taken(self, chosen: npt.NDArray[np.bool_]) -> _Path:
        group = self.group.taken(chosen)
        kept = np.flatnonzero(chosen)
        accesses = {at: [found[row] for row in kept] for at, found in self.accesses.items()}
        return _Path(group, group.waves[0], self.rows[chosen], list(self.at), accesses)


@define
class _Tracer:
    code: CodeObject
    model: DieMachine | None
    limit: int
    steps: dict[int, Step] = field(factory=dict[int, Step])

    def follow(self, path: _Path) -> list[_Path]:
        """Go on to the end; returns the parts if the waves part."""
        steps, wave, group = self.steps, path.wave, path.group
        while wave.state != "ended" and len(path.at) < self.limit:
            at = wave.at
            step = steps.get(at)
            if step is None:
                step = steps[at] = step_at(self.code, at)
            wave.at = step.after
            try:
                self._execute(path, group, wave, step)
            except DivergedError as apart:
                wave.at = at
                return [path.taken(apart.taken), path.taken(~apart.taken)]
            path.at.append(at)
        return []

    def _execute(self, path: _Path, group: Group, wave: Wave, step: Step) -> None:
        match step.unit:
            case "matrix":
                _clear(wave, step)
            case "vector memory" | "lds":
                instruction = step.instruction
                local = local_access(instruction.row.name)
                outer = global_access(instruction.row.name) if step.unit == "vector memory" else None
                if local is None and outer is None:
                    step.run(group, wave)
                    return
                if instruction.address not in path.accesses:
                    path.accesses[instruction.address] = self._accesses(path, step)
                private = instruction.row.form == "SCRATCH"  # spilled addresses and bounds of loops
                if private or (outer is not None and _is_given(group, wave, step, outer)):
                    step.run(group, wave)
                else:
                    _clear(wave, step)
            case _:
                step.run(group, wave)
                wave.state = "ready" if wave.state == "at barrier" else wave.state

    def _accesses(self, path: _Path, step: Step) -> list[Access]:
        instruction, wave, group = step.instruction, path.wave, path.group
        if step.unit == "lds":
            local = local_access(instruction.row.name)
            assert local is not None
            if self.model is None:
                return [Access()] * group.count
            found = local_cycles(wave, instruction, local, self.model)
            return [Access(local=int(each)) for each in found]
        outer = global_access(instruction.row.name)
        assert outer is not None
        if instruction.row.form == "SCRATCH":
            return [Access(0, lines) for lines in scratch_lines(wave, instruction, outer, path.rows)]
        direct = LANES * 4 // 128 if "lds" in instruction.flags or "lds" in instruction.row.name else 0
        return [Access(direct, lines) for lines in lines_of(group, wave, instruction, outer)]


def _is_given(group: Group, wave: Wave, step: Step, access: Global) -> bool:
    """Whether all active lanes load from a tensor whose contents are given."""
    if access.stores or not step.instruction.row.name.startswith("global_load"):
        return False
    offsets, lanes = addresses(group, wave, step.instruction)
    return bool(lanes.any()) and group.memory.all_inside(offsets[lanes], access.size)


def _clear(wave: Wave, step: Step) -> None:
    for each in step.instruction.results:
        if isinstance(each, Vector):
            wave.v[each.first : each.first + each.count] = 0
            wave.whole[each.first : each.first + each.count] = [True] * each.count


def follow(
    code: CodeObject,
    name: str,
    rows: Sequence[tuple[Triple, int]],
    extents: Extents,
    arguments: Sequence[Given],
    *,
    model: DieMachine | None = None,
    limit: int = LIMIT,
) -> Trace:
    """Follow waves of a launch. rows: workgroup (x, y, z) and wave of each. arguments: in order.

    model: whose LDS serves them; without, its cycles are not counted. limit: instructions of one wave.
    Raises ArgusError: E420 for other arguments than the kernel's, E502 for an instruction that is not modelled.
    """
    kernel = code.kernel(name)
    path = _begin(kernel, rows, extents, arguments)
    tracer = _Tracer(code, model, limit)
    waiting, done = [path], list[_Path]()
    with np.errstate(all="ignore"):
        while waiting:
            path = waiting.pop()
            parts = tracer.follow(path)
            waiting += parts
            done += [] if parts else [path]
    found: dict[int, WaveTrace] = {}
    numbers = {tuple(map(int, (*block, wave))): number for number, (block, wave) in enumerate(rows)}
    for path in done:
        for row, key in enumerate(path.rows):
            x, y, z, wave = (int(each) for each in key)
            accesses = {at: each[row] for at, each in path.accesses.items()}
            cut = path.wave.state != "ended"
            found[numbers[x, y, z, wave]] = WaveTrace((x, y, z), wave, path.at, accesses, cut)
    return Trace(tuple(found[number] for number in range(len(rows))), tracer.steps)


def _place(number: int) -> int:
    return _APART * (number + 1)


def _begin(
    kernel: CodeKernel, rows: Sequence[tuple[Triple, int]], extents: Extents, arguments: Sequence[Given]
) -> _Path:
    """The waves as rows of one: they share no LDS, of which nothing is computed."""
    blocks = {KERNARG: kernarg_bytes(kernel), PACKET: PACKET_BYTES}
    held = {name: (np.zeros(size, np.uint8), False) for name, size in blocks.items()}
    tensors = {n: f"argument {n}" for n, each in enumerate(arguments) if isinstance(each, np.ndarray)}
    memory = memory_of(held | {name: (as_bytes(np.asarray(arguments[n])), False) for n, name in tensors.items()})
    starts = {each.name: each.address for each in memory.allocations}
    placed = {n: starts[name] for n, name in tensors.items()}
    numbers_of = [each if isinstance(each, int) else placed.get(n, _place(n)) for n, each in enumerate(arguments)]
    fill(kernel, memory, numbers_of, extents)
    described, count = kernel.descriptor, len(rows)
    ids = np.array([block for block, _ in rows], np.int64)
    numbers = np.array([wave for _, wave in rows], np.int64)
    registers = vector_registers(described.vgprs, described.agprs)
    wave = new_wave(0, count, registers, described.entry, described.scratch_bytes)
    start(wave, kernel, memory, ids, extents)
    lanes: Array = (numbers[:, None] * LANES + np.arange(LANES)).astype(np.uint32)
    wave.v[0] = packed_ids(lanes, extents.block, described.lane_ids)
    wave.write_mask(EXEC, lanes < extents.threads)
    empty = np.zeros((count, 4), np.uint8)
    group = Group(ids, [wave], empty, empty.copy(), memory, Findings(), Races(1, count, 4), 4)
    return _Path(group, wave, np.column_stack((ids, numbers)), [], {})
