"""Occupancy: blocks per processor, the resource that limits them, and the waves of blocks of a grid."""

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
from argus.core.proof.limits.budgets import launch_registers, plans_shared_memory, register_words

Limit = Literal["registers", "shared memory", "waves", "blocks", "grid"]
_ADDRESSES = 32
"""Registers of a thread for addresses, counters and descriptors: assumed without a compiler's report."""


@frozen
class Compiled:
    """A compiler's resource report. registers: 32-bit registers per thread. shared: bytes per block, None: as planned.

    spilled: bytes per thread spilled to local memory. serialised: whether the compiler serialised the asynchronous
    matrix instructions. moves_per_mma: instructions per matrix instruction that move registers between the vector and
    accumulation files, or wait for such moves. If both kinds share one register file, `registers` counts both.
    """

    registers: int
    spilled: int = 0
    shared: int | None = None
    serialised: bool = False
    moves_per_mma: float = 0.0


@frozen
class Occupancy:
    """blocks, waves: resident on one processor. limit: the limiting resource.

    registers: per thread. shared: bytes per block. estimated: whether `registers` is an estimate, for lack of a
    compiler's report.
    """

    blocks: int
    waves: int
    limit: Limit
    registers: int
    shared: int
    estimated: bool


@frozen
class Rounds:
    """Waves of blocks over the processors, called rounds because a wave is a warp here. blocks: of the grid.
    processors: those that run a block. full: rounds at full occupancy; rest: blocks of the busiest processor in the
    last, partial round. A persistent kernel has one round.
    """

    blocks: int
    processors: int
    full: int
    rest: int

    @property
    def count(self) -> int:
        return self.full + (self.rest > 0)


def shared_bytes(kernel: Kernel) -> int:
    """Bytes of shared memory per block, alignment slack included."""
    if plans_shared_memory(kernel):
        return shared_memory_plan(kernel)[1] + BASE_ALIGNMENT
    tensors = {s.buffer for s in walk(kernel.body) if isinstance(s, Alloc) and s.buffer.space == "shared"}
    return sum(map(bytes_of, tensors))


def registers(kernel: Kernel) -> int:
    """An estimate of the registers per thread: tiles that are live at once, plus addresses.

    A kernel whose roles set register budgets (`setmaxnreg`) launches with the maximum.
    """
    if any(isinstance(stmt, Policy) and stmt.name == "registers" for stmt in walk(kernel.body)):
        return launch_registers(kernel.threads)
    tiles = sum(map(register_words, peak_live_tiles(kernel, register_words)))
    return min(tiles + _ADDRESSES, kernel.target.registers_of(kernel.threads * kernel.resident))


def occupancy(kernel: Kernel, machine: Machine, report: Compiled | None) -> Occupancy:
    """Occupancy of one processor. A kernel that does not fit counts as one block: I22 reports the budget."""
    waves = ceil(kernel.threads / machine.target.unit)
    needed = registers(kernel) if report is None else report.registers
    shared = shared_bytes(kernel) if report is None or report.shared is None else report.shared
    # A wave belongs to one scheduler, whose register file allocates registers in multiples of the grain.
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


def rounds(kernel: Kernel, sizes: Mapping[str, int], machine: Machine, resident: Occupancy) -> Rounds:
    """Waves of blocks at given sizes. Raises KeyError for a missing size."""
    known = sizes_of(kernel, sizes)
    blocks = 1
    for extent in kernel.grid:
        blocks *= int(value_of(extent, known))
    # Blocks of a cluster start together: processors that do not form a whole cluster stay idle.
    usable = max(kernel.peers, machine.usable(kernel.peers))
    together = usable * resident.blocks
    full, left = divmod(blocks, together)
    return Rounds(blocks, min(blocks, usable), full, ceil(left / usable))
