"""Targets (gfx942, sm_90a) and their architectural limits: threads, shared memory, registers, banks, queues.

Sources: AMD CDNA3 ISA; NVIDIA H100 tuning guide. Processors: 304 [AMD CDNA 3 white paper], 132 of the SXM parts [NVIDIA
H100 white paper]. Segments of gfx942: lines of 128 bytes [AMD CDNA 3 white paper, vector cache]. Segments of sm_90a:
sectors of 32 bytes, four per line [NVIDIA CUDA C++ best practices guide, coalesced access]. Four schedulers share the
waves of a block: on gfx942 each has 512 registers for each of 64 lanes [AMD CDNA3 ISA, vector registers], on sm_90a
each has 16,384 [NVIDIA H100 tuning guide, occupancy]. gfx942 has a unified register file: of the 512 registers of a
lane, up to 256 are accumulation registers, and a wave's allocation counts both kinds [ibid.].
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen


@frozen
class Target:
    """Limits of one architecture.

    unit: threads that run in lockstep (wave, warp). shared_bytes: shared memory of one block.
    registers: the most 32-bit registers of one thread. banks: shared-memory banks of 4 bytes.
    queues: per queue, the largest number of pending operations that a wait can name.
    segment_bytes: size of an aligned global-memory transaction. processors: compute units or multiprocessors, which
    is the number of blocks of a persistent kernel. file: 32-bit registers in the file of each of the four schedulers.
    waves: the most that are resident on one processor.
    reserved: bytes of shared memory that the system takes for each block, besides those of the block.
    accumulation: of `registers`, the accumulation registers, which matrix instructions accumulate into; 0 if there
    are none.
    """

    name: str
    unit: int
    max_threads: int
    shared_bytes: int
    registers: int
    banks: int
    queues: Mapping[str, int]
    segment_bytes: int
    processors: int
    file: int
    waves: int
    reserved: int = 0
    accumulation: int = 0

    def __str__(self) -> str:
        return self.name

    def registers_of(self, threads: int) -> int:
        """32-bit registers available to each thread of a block of `threads`, allocated in multiples of 8."""
        waves = -(-threads // self.unit)
        resident = -(-waves // _SCHEDULERS)
        return min(self.registers, self.file // (resident * self.unit) // 8 * 8)

    def shared_of(self, resident: int) -> int:
        """Bytes of shared memory available to each of so many blocks on one processor."""
        return (self.shared_bytes + self.reserved) // resident - self.reserved


_SCHEDULERS = 4

LARGEST_SIZE = 1 << 30
"""The largest size of a tensor's axis: coordinates are 32-bit integers, and tiles reach beyond the tensor."""

DESCRIPTOR_BYTES = 0xFFFF_FFF0
"""The most bytes that a buffer descriptor (V#) may span. A vector of at most 16 bytes at this 32-bit offset is then
out of range: a load reads 0, a store is dropped.
"""

gfx942 = Target("gfx942", 64, 1024, 65_536, 512, 32, {"vmem": 63, "lds": 15}, 128, 304, 512 * 64, 32, accumulation=256)
sm_90a = Target("sm_90a", 32, 1024, 232_448, 255, 32, {"cp_async": 7, "bulk": 7, "wgmma": 7}, 32, 132, 16_384, 64, 1024)

TARGETS = (gfx942, sm_90a)
