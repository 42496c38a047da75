"""How many blocks a processor holds at once, and what keeps it from holding more."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Literal

from attrs import frozen

from argus.core.cost.addressing import value_of
from argus.core.cost.groups import sizes_of
from argus.core.cost.machine import Machine
from argus.core.ir import Alloc, Kernel, Policy, walk
from argus.core.memory.placement import BASE_ALIGNMENT, bytes_of, shared_memory_plan
from argus.core.proof.dataflow.lifetimes import peak_live_tiles
from argus.core.proof.limits.budgets import launch_registers, planned, register_words

Limit = Literal["registers", "shared memory", "waves", "blocks", "grid"]
_ADDRESSES = 32
"""Registers of a thread beside its tiles, where no compiler has said: addresses, counters, descriptors."""


@frozen
class Compiled:
    """What a compiler says of a kernel. registers: 32-bit ones of a thread. shared: bytes of a block, None: as planned.

    spilled: bytes of a thread that live in memory. serialised: whether matrix instructions wait for one another.
    beside: instructions for each matrix instruction that only move registers between files, or idle for such moves.
    Where accumulation registers are of the same file, `registers` counts them, too.
    """

    registers: int
    spilled: int = 0
    shared: int | None = None
    serialised: bool = False
    beside: float = 0.0


@frozen
class Occupancy:
    """blocks, waves: on one processor at once. limit: what allows no more.

    registers: of a thread, as they were counted. shared: bytes of a block. guessed: whether registers are a guess, for
    want of a compiler's report.
    """

    blocks: int
    waves: int
    limit: Limit
    registers: int
    shared: int
    guessed: bool


@frozen
class Rounds:
    """Blocks over processors. blocks: of the grid. processors: that have any. full: rounds in which each has as many
    as it can hold; rest: blocks of the busiest processor in the round after those. Persistent kernels have one round.
    """

    blocks: int
    processors: int
    full: int
    rest: int

    @property
    def count(self) -> int:
        return self.full + (self.rest > 0)


def shared_bytes(kernel: Kernel) -> int:
    """Of a block, with the room that aligns it where we place it."""
    if planned(kernel):
        return shared_memory_plan(kernel)[1] + BASE_ALIGNMENT
    tensors = {s.buffer for s in walk(kernel.body) if isinstance(s, Alloc) and s.buffer.space == "shared"}
    return sum(map(bytes_of, tensors))


def registers(kernel: Kernel) -> int:
    """Of a thread, guessed: tiles that hold something at once, and some for addresses.

    A kernel whose roles give registers away has been launched with all of them.
    """
    if any(isinstance(stmt, Policy) and stmt.name == "registers" for stmt in walk(kernel.body)):
        return launch_registers(kernel.threads)
    tiles = sum(map(register_words, peak_live_tiles(kernel, register_words)))
    return min(tiles + _ADDRESSES, kernel.target.registers_of(kernel.threads))


def occupancy(kernel: Kernel, machine: Machine, report: Compiled | None) -> Occupancy:
    """Of one processor. A kernel that does not fit at all has one block: what it lacks is another matter (I22)."""
    waves = ceil(kernel.threads / machine.target.unit)
    needed = registers(kernel) if report is None else report.registers
    shared = shared_bytes(kernel) if report is None or report.shared is None else report.shared
    # A wave is of one scheduler, and takes whole grains of its part of the file.
    wave = ceil(max(1, needed) * machine.target.unit / machine.grain) * machine.grain
    per_scheduler = machine.registers // machine.schedulers // wave
    room: dict[Limit, int] = {
        "registers": machine.schedulers * per_scheduler // waves,
        "shared memory": machine.shared // max(1, shared + machine.reserved),
        "waves": machine.waves // waves,
        "blocks": machine.blocks,
    }
    limit = min(room, key=lambda each: room[each])
    blocks = max(1, room[limit])
    return Occupancy(blocks, blocks * waves, limit, needed, shared, report is None)


def rounds(kernel: Kernel, sizes: Mapping[str, int], machine: Machine, held: Occupancy) -> Rounds:
    """Raises KeyError for a size that is not given."""
    known = sizes_of(kernel, sizes)
    blocks = 1
    for extent in kernel.grid:
        blocks *= int(value_of(extent, known))
    # Blocks of a cluster begin together, so that processors that make up no whole cluster stay idle.
    usable = max(kernel.peers, machine.usable(kernel.peers))
    together = usable * held.blocks
    full, left = divmod(blocks, together)
    return Rounds(blocks, min(blocks, usable), full, ceil(left / usable))
