"""Launches a kernel of a code object on NumPy arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.interp.gfx942.code_object import CodeKernel, CodeObject
from argus.interp.gfx942.dispatch import (
    KERNARG,
    PACKET,
    PACKET_BYTES,
    Argument,
    Extents,
    Tensor,
    Triple,
    fill,
    kernarg_bytes,
    start,
    triple,
)
from argus.interp.gfx942.findings import Finding, Findings
from argus.interp.gfx942.machine import Machine
from argus.interp.gfx942.memory import Memory, as_bytes, memory_of
from argus.interp.gfx942.races import Races
from argus.interp.gfx942.state import LANES, Group, new_wave, vector_registers

_TOGETHER = 64
"""Workgroups that are executed together."""
LIMIT = 4_000_000
"""Instructions that a wave may execute."""


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
    threads: int | Sequence[int],
    arguments: Sequence[Argument],
    *,
    dynamic_lds: int = 0,
    seed: int = 0,
    limit: int = LIMIT,
) -> Executed:
    """Run a kernel. grid: workgroups along x, y and z. threads: work-items of a workgroup, along x or along x, y and z.

    arguments: in order. dynamic_lds: bytes of LDS beyond those that the kernel's descriptor asks for.

    Raises ArgusError: E420 for arguments that the kernel does not have, E502 for an instruction that is not modelled.
    """
    kernel = code.kernel(name)
    extents = Extents(triple(grid), triple((threads,) if isinstance(threads, int) else threads), dynamic_lds)
    tensors = [each for each in arguments if isinstance(each, Tensor)]
    blocks = {each.name: (as_bytes(each.held), each.written) for each in tensors}
    blocks[KERNARG] = (np.zeros(kernarg_bytes(kernel), np.uint8), False)
    blocks[PACKET] = (np.zeros(PACKET_BYTES, np.uint8), False)
    memory = memory_of(blocks, code)
    fill(kernel, memory, arguments, extents)
    findings, random = Findings(), np.random.default_rng(seed)
    machine = Machine(code, findings, random, limit)
    for ids in _batches(extents.grid):
        machine.run(_group(kernel, memory, findings, ids, extents))
    found = {each.name: memory.array_of(each.name).view(each.held.dtype).reshape(each.held.shape) for each in tensors}
    return Executed(found, tuple(findings.found.values()), machine.executed)


def _batches(grid: Triple) -> Iterator[npt.NDArray[np.int64]]:
    """Workgroup ids, x fastest, so many at a time."""
    x, y, z = grid
    ids = np.stack(np.unravel_index(np.arange(x * y * z), (z, y, x))[::-1], axis=-1)
    for at in range(0, len(ids), _TOGETHER):
        yield ids[at : at + _TOGETHER]


def _group(
    kernel: CodeKernel, memory: Memory, findings: Findings, ids: npt.NDArray[np.int64], extents: Extents
) -> Group:
    described = kernel.descriptor
    count = -(-extents.threads // LANES)
    lds_bytes = described.lds_bytes + extents.dynamic_lds
    stride = max(8, (lds_bytes + 7) // 8 * 8)
    registers = vector_registers(described.vgprs, described.agprs)
    waves = [new_wave(number, len(ids), registers, described.entry, described.scratch_bytes) for number in range(count)]
    for wave in waves:
        start(wave, kernel, memory, ids, extents)
    lds = np.full((len(ids), stride), 0xD5, np.uint8)
    written = np.zeros((len(ids), stride), np.uint8)
    return Group(ids, waves, lds, written, memory, findings, Races(count, len(ids), stride), lds_bytes)
