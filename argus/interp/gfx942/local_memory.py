"""Reads and writes of LDS: bounds, bytes that nothing has written, races."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from argus.interp.gfx942.atomics import Atomic, update
from argus.interp.gfx942.instruction import Instruction, scalars
from argus.interp.gfx942.races import Places, Touch
from argus.interp.gfx942.scoreboard import Issued
from argus.interp.gfx942.state import Array, Group, Mask, Wave

U32 = np.uint32
_ALL_WRITTEN = 0x01010101
_MARK = U32(_ALL_WRITTEN)


def load_local(
    group: Group, wave: Wave, instruction: Instruction, places: Array, size: int
) -> tuple[list[Array], Touch | None]:
    """The dwords at byte addresses (workgroup, lane) of the active lanes, one array each; below 4 bytes one,
    zero-extended. Lanes out of LDS read 0.
    """
    lanes = _inside(group, wave, instruction, places, size)
    rows, columns, at = _chosen(lanes, places)
    if size >= 4 and not (at & 3).any():
        words, touch = _load_dwords(group, wave, instruction, (rows, columns, at), size)
    else:
        words, touch = _load_bytes(group, wave, instruction, (rows, columns, at), size)
    found: list[Array] = []
    whole = bool(lanes.all())
    for each in words:
        if whole:
            found.append(each.reshape(lanes.shape))
        else:
            made = np.zeros(lanes.shape, U32)
            made[lanes] = each
            found.append(made)
    return found, touch


_Where = tuple[Places, Places, Places]


def _load_dwords(
    group: Group, wave: Wave, instruction: Instruction, where: _Where, size: int
) -> tuple[list[Array], Touch]:
    rows, _, at = where
    first = rows * (group.lds.shape[1] // 4) + (at >> 2)
    flat, written = group.lds.reshape(-1).view(U32), group.written.reshape(-1).view(U32)
    index = first + np.arange(size // 4)[:, None]
    unknown = written[index] != _MARK
    if unknown.any():
        _unwritten(group, wave, instruction, where, np.any(unknown, axis=0, keepdims=True)[0])
    touch = Touch(instruction, wave.number, False, index.reshape(-1), True, np.tile(rows, size // 4))
    _begin(group, wave, instruction, touch)
    return list(flat[index]), touch


def _load_bytes(
    group: Group, wave: Wave, instruction: Instruction, where: _Where, size: int
) -> tuple[list[Array], Touch]:
    rows, _, at = where
    index = rows * group.lds.shape[1] + at + np.arange(size)[:, None]
    flat, written = group.lds.reshape(-1), group.written.reshape(-1)
    unknown = written[index] == 0
    if unknown.any():
        _unwritten(group, wave, instruction, where, np.any(unknown, axis=0, keepdims=True)[0])
    octets = flat[index].astype(U32)
    words: list[Array] = []
    for number in range((size + 3) // 4):
        part = octets[4 * number : 4 * number + 4]
        shifts = (np.arange(len(part), dtype=U32) * U32(8))[:, None]
        words.append(np.bitwise_or.reduce(part << shifts, axis=0))
    touch = Touch(instruction, wave.number, False, index.reshape(-1), False, np.tile(rows, size))
    _begin(group, wave, instruction, touch)
    return words, touch


def store_local(group: Group, wave: Wave, instruction: Instruction, places: Array, words: Array, size: int) -> Touch:
    """Write dwords (number, workgroup, lane), or the low bytes of one, at byte addresses of the active lanes."""
    lanes = _inside(group, wave, instruction, places, size)
    rows, _, at = _chosen(lanes, places)
    stride = group.lds.shape[1]
    if size >= 4 and not (at & 3).any():
        index = rows * (stride // 4) + (at >> 2) + np.arange(size // 4)[:, None]
        group.lds.reshape(-1).view(U32)[index] = words[:, lanes]
        group.written.reshape(-1).view(U32)[index] = _MARK
        touch = Touch(instruction, wave.number, True, index.reshape(-1), True, np.tile(rows, size // 4))
    else:
        index = rows * stride + at + np.arange(size)[:, None]
        octets = np.ascontiguousarray(words[:, lanes].T).view(np.uint8)
        group.lds.reshape(-1)[index] = octets.T[:size]
        group.written.reshape(-1)[index] = 1
        touch = Touch(instruction, wave.number, True, index.reshape(-1), False, np.tile(rows, size))
    _begin(group, wave, instruction, touch)
    return touch


def update_local(
    group: Group, wave: Wave, instruction: Instruction, atomic: Atomic, places: Array, operands: Sequence[int]
) -> tuple[list[Array], Touch]:
    """Operate atomically on elements of LDS at byte addresses of the active lanes, aligned to their size.

    operands: the first registers of the data, and of the values to compare with. Returns the dwords that were there
    before, by (workgroup, lane), 0 in other lanes.
    """
    size = atomic.size
    lanes = _inside(group, wave, instruction, places, size)
    apart = lanes & (places % size != 0)
    if apart.any():
        what = f"an atomic operation on byte {int(places[apart][0])} of LDS, not a multiple of {size}"
        group.report("misaligned", wave, instruction, what, apart)
        lanes = lanes & ~apart
    rows, columns, at = _chosen(lanes, places)
    stride = group.lds.shape[1]
    index = rows * stride + at
    unknown = group.written.reshape(-1)[index[:, None] + np.arange(size)] == 0
    if unknown.any():
        _unwritten(group, wave, instruction, (rows, columns, at), unknown.any(1))
    data = [elements(wave, atomic.kind, register)[lanes] for register in operands]
    found = update(
        atomic, group.lds.reshape(-1).view(atomic.kind), index // size, data[0], data[-1],
        returns=bool(instruction.results),
    )  # fmt: skip
    touch = Touch(instruction, wave.number, True, index // 4, True, rows, atomic=True)
    if size == 8:
        both = np.concatenate([index // 4, index // 4 + 1])
        touch = Touch(instruction, wave.number, True, both, True, np.tile(rows, 2), atomic=True)
    _begin(group, wave, instruction, touch)
    before = np.zeros((*lanes.shape, size // 4), U32)
    before[lanes] = np.ascontiguousarray(found).view(U32).reshape(-1, size // 4)
    return [before[..., number] for number in range(size // 4)], touch


def elements(wave: Wave, kind: type[np.generic], register: int) -> Array:
    """Elements of 32 or 64 bits that vector registers hold, by (workgroup, lane)."""
    count = np.dtype(kind).itemsize // 4
    return np.ascontiguousarray(wave.v[register : register + count].transpose(1, 2, 0)).view(kind)[..., 0]


@cache
def _everywhere(workgroups: int, lanes: int) -> tuple[Places, Places]:
    """Workgroup and lane of each element."""
    rows, columns = np.divmod(np.arange(workgroups * lanes), lanes)
    return rows, columns


def _chosen(lanes: Mask, places: Array) -> _Where:
    """Workgroups, lanes and places of the chosen lanes."""
    if lanes.all():
        return *_everywhere(*lanes.shape), places.reshape(-1)
    rows, columns = np.nonzero(lanes)
    return rows, columns, places[lanes]


def track_local(wave: Wave, instruction: Instruction, touches: list[Touch | None]) -> None:
    """Count an LDS instruction as outstanding."""
    held = frozenset(scalars(instruction.results))
    late = tuple(each for each in touches if each is not None)
    wave.scoreboard.issue(Issued("lds", instruction, instruction.written, held, late))


def _inside(group: Group, wave: Wave, instruction: Instruction, places: Array, size: int) -> Mask:
    fits = (places >= 0) & (places + size <= group.lds_bytes)
    wrong = wave.active & ~fits
    if wrong.any():
        worst = int(places[wrong][0])
        what = f"{size} bytes at byte {worst} of LDS, of which a workgroup has {group.lds_bytes}"
        group.report("out of LDS", wave, instruction, what, wrong)
        return wave.active & fits
    return wave.active


def _unwritten(group: Group, wave: Wave, instruction: Instruction, where: _Where, wrong: Array) -> None:
    rows, columns, at = where
    lanes = np.zeros(wave.active.shape, np.bool_)
    lanes[rows[wrong], columns[wrong]] = True
    what = f"byte {int(at[wrong][0])} of LDS, which nothing has written"
    group.report("uninitialised LDS", wave, instruction, what, lanes)


def _begin(group: Group, wave: Wave, instruction: Instruction, touch: Touch) -> None:
    """Record an access."""
    group.races.add(touch)
    meets_late(group, wave, instruction, touch)


def meets_late(group: Group, wave: Wave, instruction: Instruction, touch: Touch) -> None:
    """Report an access that meets a load to LDS of the same wave that is not waited for."""
    for issued in wave.scoreboard.vector:
        for other in issued.late:
            if _meet(touch, other):
                what = f"LDS that `{issued.text}` writes, without a wait for it"
                group.report("used before its wait", wave, instruction, what, other=issued.address)


def _meet(one: Touch, other: Touch) -> bool:
    left, right = (each.places if each.dwords else each.places // 4 for each in (one, other))
    return bool(np.isin(left, right).any())
