"""What the dispatcher and the runtime prepare for a launch: kernel arguments, the dispatch packet, initial registers.

[LLVM AMDGPU user guide: "Initial kernel execution state", "Kernel argument segment", code object V5 metadata; HSA
runtime specification 2.9.6, "Kernel dispatch packet".]
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.interp.gfx942.code_object import CodeKernel, KernelArgument, damaged
from argus.interp.gfx942.instruction import EXEC
from argus.interp.gfx942.memory import PRIVATE_BASE, SHARED_BASE, Memory
from argus.interp.gfx942.state import LANES, Wave

KERNARG, PACKET = "kernel arguments", "dispatch packet"
PACKET_BYTES = 64
_LDS = 1 << 16
_UNIT = 64
"""Runtimes allocate whole cache lines, which LLVM relies on when it widens loads of arguments."""
_PRELOADED_ENTRY = 256
"""Code that fills the registers itself comes first, for firmware that does not preload; the kernel proper follows."""
Triple = tuple[int, int, int]


@frozen
class Tensor:
    """An array in global memory. written: whether the kernel may write to it."""

    name: str
    held: npt.NDArray[Any]
    written: bool = False


Argument = Tensor | int | bytes
"""A pointer to an array, an integer of the argument's size, or its bytes."""


@frozen
class Extents:
    """grid: workgroups along x, y, z. block: work-items of a workgroup. dynamic_lds: bytes beyond the descriptor's."""

    grid: Triple
    block: Triple
    dynamic_lds: int = 0

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]


def triple(extents: Sequence[int]) -> Triple:
    """With ones for axes that are left out."""
    x, y, z = (*extents, 1, 1)[:3]
    return x, y, z


def kernarg_bytes(kernel: CodeKernel) -> int:
    return -(-max(1, kernel.descriptor.kernarg_bytes) // _UNIT) * _UNIT


def fill(kernel: CodeKernel, memory: Memory, arguments: Sequence[Argument], extents: Extents) -> None:
    """Write the kernel arguments and the dispatch packet. Raises ArgusError (E420) for a launch that does not fit."""
    if extents.threads > kernel.most_threads:
        raise damaged(f"`{kernel.name}` is for {kernel.most_threads} work-items at most, got {extents.threads}")
    if (lds := kernel.descriptor.lds_bytes + extents.dynamic_lds) > _LDS:
        raise damaged(f"`{kernel.name}` needs {lds} bytes of LDS, of which there are {_LDS}")
    own = [each for each in kernel.arguments if not each.kind.startswith("hidden")]
    if len(own) != len(arguments):
        raise damaged(f"`{kernel.name}` takes {len(own)} arguments, got {len(arguments)}")
    held = memory.array_of(KERNARG)
    starts = {each.name: each.address for each in memory.allocations}
    for place, given in zip(own, arguments, strict=True):
        _put(held, place, _raw(kernel, place, given, starts))
    values = _hidden(extents)
    for place in kernel.arguments:
        if place.kind in values:
            _put(held, place, values[place.kind].to_bytes(place.size, "little"))
    memory.array_of(PACKET)[:] = np.frombuffer(_packet(kernel, extents, starts[KERNARG]), np.uint8)


def _raw(kernel: CodeKernel, place: KernelArgument, given: Argument, starts: Mapping[str, int]) -> bytes:
    match given:
        case bytes():
            if len(given) != place.size:
                raise damaged(f"`{kernel.name}` takes {place.size} bytes as `{place.name}`, got {len(given)}")
            return given
        case Tensor():
            return _pointer(kernel, place, starts[given.name])
        case int():
            return (given % (1 << 8 * place.size)).to_bytes(place.size, "little")


def _pointer(kernel: CodeKernel, place: KernelArgument, address: int) -> bytes:
    if place.size != 8:
        raise damaged(f"`{kernel.name}` takes {place.size} bytes as `{place.name}`, got an array")
    return address.to_bytes(8, "little")


def _put(held: npt.NDArray[np.uint8], place: KernelArgument, raw: bytes) -> None:
    held[place.offset : place.offset + place.size] = np.frombuffer(raw, np.uint8)


def _hidden(extents: Extents) -> dict[str, int]:
    """Arguments that a runtime fills. Those that are left out are pointers to services of a host, 0 here: a kernel that
    uses them reads at an address at which nothing is, which is reported.
    """
    axes = ("x", "y", "z")
    return {
        **{f"hidden_block_count_{axis}": each for axis, each in zip(axes, extents.grid, strict=True)},
        **{f"hidden_group_size_{axis}": each for axis, each in zip(axes, extents.block, strict=True)},
        "hidden_grid_dims": max(
            n for n in (1, 2, 3) if n == 1 or (extents.grid[n - 1], extents.block[n - 1]) != (1, 1)
        ),
        "hidden_dynamic_lds_size": extents.dynamic_lds,
        "hidden_private_base": PRIVATE_BASE >> 32,
        "hidden_shared_base": SHARED_BASE >> 32,
    }


def _packet(kernel: CodeKernel, extents: Extents, kernarg: int) -> bytes:
    sizes = [count * each for count, each in zip(extents.grid, extents.block, strict=True)]
    lds = kernel.descriptor.lds_bytes + extents.dynamic_lds
    return struct.pack(
        "<HHHHHHIIIIIQQQQ", 2, 3, *extents.block, 0, *sizes, kernel.descriptor.scratch_bytes, lds, 0, kernarg, 0, 0
    )


def start(wave: Wave, kernel: CodeKernel, memory: Memory, ids: npt.NDArray[np.int64], extents: Extents) -> None:
    """Set a new wave's registers: user SGPRs, workgroup ids, and work-item ids packed in v0. ids: (workgroup, axis).

    The address of the queue is 0: nothing is there.
    """
    described = kernel.descriptor
    wave.mode = described.mode
    starts = {each.name: each.address for each in memory.allocations}
    values = {
        "dispatch pointer": starts[PACKET],
        "kernarg pointer": starts[KERNARG],
        "private segment size": described.scratch_bytes,
    }
    for first, name, count in described.user_values:
        for number in range(count):
            wave.write_scalar(first + number, np.uint32(values.get(name, 0) >> 32 * number & 0xFFFFFFFF))
    words = memory.array_of(KERNARG).view(np.uint32)
    for number in range(described.preloaded):
        held = words[described.preloaded_from + number]
        wave.write_scalar(described.user_sgprs - described.preloaded + number, held)
    if described.preloaded:
        wave.at += _PRELOADED_ENTRY
    following = described.user_sgprs
    for axis, wanted in enumerate(described.ids):
        if wanted:
            wave.write_scalar(following, ids[:, axis].astype(np.uint32))
            following += 1
    thread = wave.number * LANES + np.arange(LANES, dtype=np.uint32)
    wave.v[0] = packed_ids(thread, extents.block, described.lane_ids)
    wave.whole[0] = True
    if thread[-1] >= extents.threads:
        alive = np.broadcast_to(thread < extents.threads, wave.active.shape)
        wave.write_mask(EXEC, alive)


def packed_ids(thread: npt.NDArray[np.uint32], block: Triple, count: int) -> npt.NDArray[np.uint32]:
    """The ids x, y, z of work-items, ten bits each; those that the descriptor does not ask for are 0."""
    x, y = np.uint32(block[0]), np.uint32(block[1])
    ids = (thread % x, thread // x % y, thread // (x * y))
    found = np.zeros(thread.shape, np.uint32)
    for axis, each in enumerate(ids[:count]):
        found |= each.astype(np.uint32) << np.uint32(10 * axis)
    return found
