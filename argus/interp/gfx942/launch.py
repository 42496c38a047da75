"""Launches a kernel of a code object on NumPy arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.interp.gfx942.code_object import CodeKernel, CodeObject, damaged
from argus.interp.gfx942.findings import Finding, Findings
from argus.interp.gfx942.machine import Machine
from argus.interp.gfx942.memory import Memory, as_bytes, memory_of
from argus.interp.gfx942.races import Races
from argus.interp.gfx942.state import LANES, Group, Wave, new_wave, vector_registers

_KERNARG = "kernel arguments"
_KERNARG_UNIT = 64
"""Runtimes allocate whole cache lines, which LLVM relies on when it widens loads of arguments."""
_TOGETHER = 32
"""Workgroups that are executed together."""
LIMIT = 4_000_000
"""Instructions that a wave may execute."""


@frozen
class Tensor:
    """An array in global memory. written: whether the kernel may write to it."""

    name: str
    held: npt.NDArray[Any]
    written: bool = False


@frozen
class Executed:
    """tensors: the bytes of each, as arrays of the type and shape given. instructions: of all waves together."""

    tensors: Mapping[str, npt.NDArray[Any]]
    findings: tuple[Finding, ...]
    instructions: int


def execute(
    code: CodeObject,
    name: str,
    grid: Sequence[int],
    threads: int,
    arguments: Sequence[Tensor | int],
    *,
    seed: int = 0,
    limit: int = LIMIT,
) -> Executed:
    """Run a kernel. grid: workgroups along x, y and z. arguments: in order, integers as 32-bit values.

    Raises ArgusError: E420 for arguments that the kernel does not have, E502 for an instruction that is not modelled.
    """
    kernel = code.kernel(name)
    tensors = [each for each in arguments if isinstance(each, Tensor)]
    blocks = {each.name: (as_bytes(each.held), each.written) for each in tensors}
    size = -(-max(1, kernel.descriptor.kernarg_bytes) // _KERNARG_UNIT) * _KERNARG_UNIT
    memory = memory_of({**blocks, _KERNARG: (np.zeros(size, np.uint8), False)})
    _fill_arguments(kernel, memory, arguments)
    findings, random = Findings(), np.random.default_rng(seed)
    machine = Machine(code, findings, random, limit)
    for ids in _batches(grid):
        machine.run(_group(kernel, memory, findings, ids, threads))
    found = {each.name: memory.array_of(each.name).view(each.held.dtype).reshape(each.held.shape) for each in tensors}
    return Executed(found, tuple(findings.found.values()), machine.executed)


def _fill_arguments(kernel: CodeKernel, memory: Memory, arguments: Sequence[Tensor | int]) -> None:
    filled = [each.kind for each in kernel.arguments if each.kind.startswith("hidden")]
    if filled:
        raise damaged(f"`{kernel.name}` takes arguments that a runtime fills: {', '.join(filled)}")
    if len(kernel.arguments) != len(arguments):
        raise damaged(f"`{kernel.name}` takes {len(kernel.arguments)} arguments, got {len(arguments)}")
    held = memory.array_of(_KERNARG)
    starts = {each.name: each.address for each in memory.allocations}
    for place, given in zip(kernel.arguments, arguments, strict=True):
        value = starts[given.name] if isinstance(given, Tensor) else given
        raw = (value % (1 << 8 * place.size)).to_bytes(place.size, "little")
        held[place.offset : place.offset + place.size] = np.frombuffer(raw, np.uint8)


def _batches(grid: Sequence[int]) -> Iterator[npt.NDArray[np.int64]]:
    """Workgroup ids, x fastest, so many at a time."""
    x, y, z = (*grid, 1, 1)[:3]
    ids = np.stack(np.unravel_index(np.arange(x * y * z), (z, y, x))[::-1], axis=-1)
    for at in range(0, len(ids), _TOGETHER):
        yield ids[at : at + _TOGETHER]


def _group(kernel: CodeKernel, memory: Memory, findings: Findings, ids: npt.NDArray[np.int64], threads: int) -> Group:
    described = kernel.descriptor
    count = -(-threads // LANES)
    stride = max(4, (described.lds_bytes + 3) // 4 * 4)
    registers = vector_registers(described.vgprs, described.agprs)
    waves = [new_wave(number, len(ids), registers, described.entry) for number in range(count)]
    for wave in waves:
        _start(wave, kernel, memory, ids, threads)
    lds = np.full((len(ids), stride), 0xD5, np.uint8)
    written = np.zeros((len(ids), stride), np.uint8)
    return Group(ids, waves, lds, written, memory, findings, Races(count, len(ids), stride), described.lds_bytes)


def _start(wave: Wave, kernel: CodeKernel, memory: Memory, ids: npt.NDArray[np.int64], threads: int) -> None:
    """Registers as the dispatcher leaves them: kernarg pointer, workgroup ids, and work-item ids packed in v0."""
    described = kernel.descriptor
    address = next(each.address for each in memory.allocations if each.name == _KERNARG)
    if described.kernarg_sgpr >= 0:
        for number in range(2):
            wave.write_scalar(described.kernarg_sgpr + number, np.uint32(address >> 32 * number & 0xFFFFFFFF))
    following = described.user_sgprs
    for axis, wanted in enumerate(described.ids):
        if wanted:
            wave.write_scalar(following, ids[:, axis].astype(np.uint32))
            following += 1
    thread = wave.number * LANES + np.arange(LANES, dtype=np.uint32)
    wave.v[0] = thread
    wave.whole[0] = True
    if thread[-1] >= threads:
        alive = np.broadcast_to(thread < threads, wave.active.shape)
        wave.write_mask(126, alive)
