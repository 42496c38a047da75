"""Global memory: allocations in one address range, apart from each other, with bounds."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import define, field, frozen

from argus.interp.gfx942.code_object import CodeObject, Section

BASE = 0x7F00_0000_0000
"""The address of the first byte. Addresses take more than 32 bits, so that arithmetic in 32 bits shows itself."""
SHARED_BASE, PRIVATE_BASE = 1 << 48, 2 << 48
"""Where flat addresses of LDS and of scratch memory begin: the upper 32 bits tell them from global ones."""
_APART = 1 << 16
_ALIGNED = 4096

Addresses = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]


@frozen
class Allocation:
    """start, size: in bytes; start: offset in the memory. writable: whether a store may go there."""

    name: str
    start: int
    size: int
    writable: bool = True

    @property
    def address(self) -> int:
        return BASE + self.start


@define
class Memory:
    """data: all bytes, those between allocations included."""

    data: Bytes
    allocations: tuple[Allocation, ...]
    code_base: int = 0
    """What is added to an address of the code object to get the one at which it is loaded."""
    _starts: npt.NDArray[np.int64] = field(init=False)
    _ends: npt.NDArray[np.int64] = field(init=False)
    _writable: npt.NDArray[np.bool_] = field(init=False)
    _sorted: list[int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._starts = np.array([each.start for each in self.allocations], np.int64)
        self._sorted = [each.start for each in self.allocations]
        self._ends = np.array([each.start + each.size for each in self.allocations], np.int64)
        self._writable = np.array([each.writable for each in self.allocations], np.bool_)

    def offsets(self, addresses: Addresses) -> npt.NDArray[np.int64]:
        """Offsets in `data`; addresses elsewhere give offsets out of its range."""
        return (addresses - np.uint64(BASE)).view(np.int64)

    def inside(self, offsets: npt.NDArray[np.int64], size: int, *, stores: bool = False) -> npt.NDArray[np.bool_]:
        """Whether so many bytes from each offset are of one allocation."""
        found = np.searchsorted(self._starts, offsets, side="right") - 1
        known = found >= 0
        found = np.where(known, found, 0)
        fits = known & (offsets + size <= self._ends[found])
        return fits & self._writable[found] if stores else fits

    def all_inside(self, offsets: npt.NDArray[np.int64], size: int, *, stores: bool = False) -> bool:
        """Whether so many bytes from each offset are of one allocation, the same for all; False if it is not known."""
        least = int(offsets.min())
        found = bisect_right(self._sorted, least) - 1
        if found < 0 or int(offsets.max()) + size > self._ends[found]:
            return False
        return not stores or bool(self._writable[found])

    def describe(self, offset: int) -> str:
        """Where an offset is, relative to the nearest allocation below it."""
        below = [each for each in self.allocations if each.start <= offset]
        if not below or offset >= len(self.data):
            return f"the address 0x{(BASE + offset) % (1 << 64):x}, at which nothing is"
        near = below[-1]
        return f"byte {offset - near.start} of `{near.name}`, which has {near.size}"

    def array_of(self, name: str) -> Bytes:
        """The bytes of an allocation."""
        each = next(each for each in self.allocations if each.name == name)
        return self.data[each.start : each.start + each.size]


def memory_of(blocks: dict[str, tuple[Bytes, bool]], code: CodeObject | None = None) -> Memory:
    """Memory with a copy of each of the arrays, and of the loaded sections of a code object.

    blocks: bytes by name, and whether they may be written.
    """
    placed: list[Allocation] = []
    at = _APART
    for name, (held, writable) in blocks.items():
        placed.append(Allocation(name, at, len(held), writable))
        at += (len(held) + _APART + _ALIGNED - 1) // _ALIGNED * _ALIGNED
    sections = () if code is None else _loaded(code)
    first = min((each.address for each in sections), default=0) // _ALIGNED * _ALIGNED
    shift = at - first
    end = at + max((each.address + each.size - first for each in sections), default=0)
    data = np.full((end + _APART + _ALIGNED - 1) // _ALIGNED * _ALIGNED if sections else at, 0xA5, np.uint8)
    for each in placed:
        data[each.start : each.start + each.size] = blocks[each.name][0]
    for section in sections:
        start = section.address + shift
        placed.append(Allocation(f"{section.name} of the code object", start, section.size, section.writable))
        data[start : start + section.size] = 0
        data[start : start + len(section.data)] = np.frombuffer(section.data, np.uint8)
    for place, value in code.relocations if code is not None else ():
        raw = (value + BASE + shift).to_bytes(8, "little")
        data[place + shift : place + shift + 8] = np.frombuffer(raw, np.uint8)
    return Memory(data, tuple(placed), BASE + shift)


def _loaded(code: CodeObject) -> list[Section]:
    found = (each for each in code.sections.values() if each.size and each.address)
    return sorted(found, key=lambda each: each.address)


def as_bytes(array: npt.NDArray[Any]) -> Bytes:
    """The bytes of a contiguous array."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
