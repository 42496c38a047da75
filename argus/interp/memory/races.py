"""Detects races in shared memory by the happens-before order of barriers and waits, independent of the schedule.

An access of wave w lasts from the epoch in which it was issued to the epoch in which a wait covered it; x happens
before y of another wave iff x ended in an earlier epoch than y began. One wave's accesses are in program order, except
that a load to LDS and another access are unordered unless a wait covers the earlier of them before the later is issued.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from argus.core.ir import Buffer
from argus.interp.compiled_kernel import first_where
from argus.interp.machine.waves import NEVER, SharedAccess
from argus.interp.memory.cells import BoolArray, IntArray
from argus.interp.memory.views import Place
from argus.interp.state import Block, shared_element


def check(block: Block) -> None:
    """Report every race of a finished block, and reads of shared cells that were never written."""
    by_buffer: dict[Buffer, list[SharedAccess]] = defaultdict(list)
    for access in block.accesses:
        by_buffer[access.buffer].append(access)
    for accesses in by_buffer.values():
        accesses.sort(key=_issued)
        for position, earlier in enumerate(accesses):
            for later in accesses[position + 1 :]:
                if later.event.epoch > earlier.drained:
                    break
                _check_pair(block, earlier, later)
        _check_written(block, accesses)


def _issued(access: SharedAccess) -> tuple[int, tuple[int, ...], int]:
    return access.event.epoch, access.event.path, access.event.wave


def _ordered(earlier: SharedAccess, later: SharedAccess) -> bool:
    """Whether `earlier` happens before `later`."""
    if earlier.event.wave == later.event.wave:
        return earlier.event.path < later.event.path
    return earlier.drained < later.event.epoch


def _check_pair(block: Block, one: SharedAccess, two: SharedAccess) -> None:
    if not (one.writes or two.writes) or not one.cells & two.cells:
        return
    if one.event.wave == two.event.wave:
        _check_same_wave(block, one, two)
        return
    if _ordered(one, two) or _ordered(two, one):
        return
    first, second = (one, two) if one.event.path <= two.event.path else (two, one)
    crossed = first.event.epoch < second.event.epoch
    name = first.buffer.name
    if first.writes:
        what = "overwritten" if second.writes else "read"
        code = "I31" if crossed else "I5"
        why = "no wait for the write lies before the barrier between them" if crossed else "no barrier lies between"
        message = f"`{name}` is {what} by one wave while another writes it: {why}"
    else:
        code = "I30" if crossed else "I36"
        why = "no wait for the read lies before the barrier between them" if crossed else "no barrier lies between"
        message = f"`{name}` is overwritten by one wave while another reads it: {why}"
    _report(block, code, message, first, second)


def _check_same_wave(block: Block, one: SharedAccess, two: SharedAccess) -> None:
    """A load to LDS and another access of one wave: a wait must cover the first before the second is issued."""
    first, second = (one, two) if one.event.path < two.event.path else (two, one)
    if one.direct == two.direct or (first.over is not None and first.over < second.event.path):
        return
    what = "overwritten" if second.writes else "read"
    name, doing = (
        first.buffer.name,
        "a load to LDS writes it" if first.direct else f"a {_verb(first)} of it is in flight",
    )
    message = f"`{name}` is {what} while {doing}: no wait lies between"
    _report(block, "I31" if first.writes else "I30", message, first, second)


def _report(block: Block, code: str, message: str, first: SharedAccess, second: SharedAccess) -> None:
    shared = first.cells & second.cells
    thread, value, cell = _holder(block, second, shared)
    other_thread, other_value, _ = _holder(block, first, 1 << cell)
    block.launch.reporter.report(
        code,
        message,
        second.event,
        thread=thread,
        value=value,
        element=shared_element(block.launch.prepared, second.buffer, cell),
        buffer=second.buffer.name,
        other=first.event,
        other_thread=other_thread,
        facts=(
            (_verb(first), f"thread {other_thread}, register {other_value}, {_span(first)}"),
            (_verb(second), f"thread {thread}, register {value}, {_span(second)}"),
        ),
    )


def _verb(access: SharedAccess) -> str:
    return "write" if access.writes else "read"


def _span(access: SharedAccess) -> str:
    done = "never waited for" if access.drained == NEVER else f"waited for after {access.drained} barriers"
    return f"issued after {access.event.epoch} barriers, {done}"


def _holder(block: Block, access: SharedAccess, cells: int) -> tuple[int, int, int]:
    """The first thread and register of an access to one of these cells, and the cell."""
    wave = block.waves[access.event.wave]
    address, inside = _rows(access.place, wave.first, wave.last)
    flags = np.unpackbits(
        np.frombuffer(cells.to_bytes((cells.bit_length() + 7) // 8, "little"), np.uint8), bitorder="little"
    )
    wide = np.zeros(max(flags.size, int(address.max()) + 1), np.bool_)
    wide[: flags.size] = flags
    touched = wide[address]
    if inside is not None:
        touched &= inside
    lane, value = first_where(touched)
    return wave.first + lane, value, int(address[lane, value])


def _rows(place: Place, first: int, last: int) -> tuple[IntArray, BoolArray | None]:
    return place.address[first:last], None if place.inside is None else place.inside[first:last]


def _check_written(block: Block, accesses: list[SharedAccess]) -> None:
    """Report reads of cells that no write can precede."""
    writes = sorted((access for access in accesses if access.writes), key=lambda access: access.drained)
    before, taken = 0, 0
    for read in (access for access in accesses if not access.writes):
        while taken < len(writes) and writes[taken].drained < read.event.epoch:
            before |= writes[taken].cells
            taken += 1
        bare = read.cells & ~before
        for write in writes[taken:] if bare else ():
            if not _ordered(read, write):
                bare &= ~write.cells
        if bare:
            _report_unwritten(block, read, bare)


def _report_unwritten(block: Block, read: SharedAccess, cells: int) -> None:
    thread, value, cell = _holder(block, read, cells)
    block.launch.reporter.report(
        "I5",
        f"`{read.buffer.name}` is read where it was never written",
        read.event,
        thread=thread,
        value=value,
        element=shared_element(block.launch.prepared, read.buffer, cell),
        buffer=read.buffer.name,
    )
