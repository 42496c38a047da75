"""Where a block's shared memory lies: one plan, which the emitter carries out and a budget is judged by."""

from __future__ import annotations

from argus.core.ir import Alloc, Buffer, Kernel, Staged, static, walk

BASE_ALIGNMENT = 1024
"""Bytes more than the plan's, so that its base can be moved to a whole period of the widest swizzle."""
_BARRIER = 8


def shared_memory_plan(kernel: Kernel) -> tuple[dict[Buffer, int], int]:
    """Byte offsets from a base aligned to `ROOM`, and their end: tensors by falling alignment, then barriers."""
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
    """A swizzled tensor begins at a whole period: the hardware swizzles addresses, not offsets."""
    swizzle = _staged(buffer).swizzle
    return 128 if swizzle is None else max(128, swizzle.period * buffer.dtype.bits // 8)


def bytes_of(buffer: Buffer) -> int:
    """Of a tensor in shared memory."""
    return _staged(buffer).layout.cosize() * buffer.dtype.bits // 8


def _staged(buffer: Buffer) -> Staged:
    assert isinstance(buffer.layout, Staged), buffer.name
    return buffer.layout
