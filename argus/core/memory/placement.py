"""Plan a block's shared memory: the offsets of tensors and barriers, used by the emitter and the budget check."""

from __future__ import annotations

from argus.core.ir import Alloc, Buffer, Kernel, Staged, static, walk

BASE_ALIGNMENT = 1024
"""Alignment of the plan's base, a whole period of the widest swizzle; allocations need this many bytes of slack."""
_BARRIER = 8


def shared_memory_plan(kernel: Kernel) -> tuple[dict[Buffer, int], int]:
    """(byte offsets from a base aligned to BASE_ALIGNMENT, end): tensors by falling alignment, then barriers."""
    allocs = [stmt.buffer for stmt in walk(kernel.body) if isinstance(stmt, Alloc)]
    tensors = [buffer for buffer in allocs if buffer.space == "shared"]
    offsets: dict[Buffer, int] = {}
    end = 0
    for buffer in sorted(tensors, key=lambda buffer: -alignment(buffer)):
        end = -(-end // alignment(buffer)) * alignment(buffer)
        offsets[buffer] = end
        end += bytes_of(buffer)
    end = -(-end // _BARRIER) * _BARRIER
    for buffer in (buffer for buffer in allocs if buffer.space == "barrier"):
        offsets[buffer] = end
        end += _BARRIER * static(buffer.shape[0])
    return offsets, end


def alignment(buffer: Buffer) -> int:
    """Alignment of a shared tensor in bytes: a swizzle period, since the hardware swizzles addresses, not offsets."""
    swizzle = _staged(buffer).swizzle
    return 128 if swizzle is None else max(128, swizzle.period * buffer.dtype.bits // 8)


def bytes_of(buffer: Buffer) -> int:
    """Size of a shared tensor in bytes."""
    return _staged(buffer).layout.cosize() * buffer.dtype.bits // 8


def padded_bytes(buffer: Buffer) -> int:
    """Size of a shared tensor in whole multiples of its alignment: in any order, tensors follow each other without gaps
    if those of larger alignment come first, as LLVM places them.
    """
    return -(-bytes_of(buffer) // alignment(buffer)) * alignment(buffer)


def _staged(buffer: Buffer) -> Staged:
    assert isinstance(buffer.layout, Staged), buffer.name
    return buffer.layout
