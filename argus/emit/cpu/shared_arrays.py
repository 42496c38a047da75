"""Shared-memory arrays of sm_90a text moved apart for the CPU, with a guard zone behind each.

The text states where each array begins, as a number of bytes from an aligned base; the arrays adjoin. For the CPU they
are moved apart by multiples of the base's alignment, which changes no swizzle. A text that states other places than
the kernel's plan keeps its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import frozen

from argus.core.ir import Buffer, static
from argus.core.memory.placement import BASE_ALIGNMENT, bytes_of

GUARD = BASE_ALIGNMENT
"""Bytes behind each array."""
_MOST = 1 << 18
"""Bytes that matrix descriptors address."""
_BARRIER_BYTES = 8
_DECLARED = re.compile(r"^( +const u32 (\w+) = base \+ )(\d+);$", re.MULTILINE)


@frozen
class SharedArray:
    """An array's place on the CPU, its size in bytes, and its place on the GPU; places are from the base."""

    at: int
    size: int
    planned: int


def moved_apart(
    text: str, names: Mapping[Buffer, str], offsets: Mapping[Buffer, int]
) -> tuple[str, tuple[SharedArray, ...]]:
    """The text with its arrays moved apart, and the arrays in order; the text itself and none if it cannot be."""
    declared = {found[2]: int(found[3]) for found in _DECLARED.finditer(text)}
    if not offsets or declared != {names[buffer]: at for buffer, at in offsets.items()}:
        return text, ()
    order = sorted(offsets, key=lambda buffer: offsets[buffer])
    arrays = {
        names[buffer]: SharedArray(offsets[buffer] + number * GUARD, _size(buffer), offsets[buffer])
        for number, buffer in enumerate(order)
    }
    if max(each.at + each.size for each in arrays.values()) + 2 * GUARD > _MOST:
        return text, ()
    return _DECLARED.sub(lambda found: f"{found[1]}{arrays[found[2]].at};", text), tuple(arrays.values())


def _size(buffer: Buffer) -> int:
    return _BARRIER_BYTES * static(buffer.shape[0]) if buffer.space == "barrier" else bytes_of(buffer)
