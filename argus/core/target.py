"""The machines: one row of limits each.

Sources: AMD CDNA3 ISA; NVIDIA H100 tuning guide. Processors: 304 [AMD CDNA 3 white paper], 132 of the SXM parts [NVIDIA
H100 white paper]. Segments of gfx942: lines of 128 bytes [AMD CDNA 3 white paper, vector cache]. Segments of sm_90a:
sectors of 32 bytes, four in a line [NVIDIA CUDA C++ best practices guide, coalesced access]. Four schedulers share the
waves of a block: of gfx942 each has 512 registers for every lane of 64 [AMD CDNA3 ISA, vector registers], of sm_90a
each has 16,384 [NVIDIA H100 tuning guide, occupancy]. The file of gfx942 is one for both kinds of vector registers: of
the 512 of a lane up to 256 are accumulation registers, and a wave has what it takes of both [ibid.].
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen


@frozen
class Target:
    """Limits of one architecture.

    unit: threads that run in lockstep (wave, warp). shared_bytes: shared memory of one block.
    registers: 32-bit registers one thread may hold. banks: shared banks of 4 bytes.
    queues: the largest number of pending operations that a wait can name, per queue.
    segment_bytes: global memory moves in aligned segments of this many bytes. processors: compute units or
    multiprocessors, the blocks of a persistent kernel. file: 32-bit registers of each of the four schedulers.
    accumulation: of `registers`, those of a file that matrix instructions sum into; 0 where there is one file only.
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
    accumulation: int = 0

    def __str__(self) -> str:
        return self.name

    def registers_of(self, threads: int) -> int:
        """32-bit registers that a thread of a block of so many may hold, in grains of 8."""
        waves = -(-threads // self.unit)
        resident = -(-waves // _SCHEDULERS)
        return min(self.registers, self.file // (resident * self.unit) // 8 * 8)


_SCHEDULERS = 4


gfx942 = Target("gfx942", 64, 1024, 65_536, 512, 32, {"vmem": 63, "lds": 15}, 128, 304, 512 * 64, 256)
sm_90a = Target("sm_90a", 32, 1024, 232_448, 255, 32, {"cp_async": 7, "bulk": 7, "wgmma": 7}, 32, 132, 16_384)

TARGETS = (gfx942, sm_90a)
