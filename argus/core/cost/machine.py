"""Machine descriptions for the static model: rates and latencies of each GPU.

Cycles count at the highest SM clock. Constants that no manual states are in `Fitted`: fitted to measured times
(`benchmarks/static_model.py`) or assumed.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from argus.core.target import Target, gfx942, sm_90a


@frozen
class Fitted:
    """Constants that no document states: few, global, none per configuration.

    In cycles. cache_latency: of a last-level-cache hit. memory_latency: what a miss adds. landing_latency: from the
    last byte of a TMA load to the waiting threads. barrier_latency: from an mbarrier arrival to a waiting thread.
    sync_latency: of a thread barrier. mma_latency: from the end of the last matrix instruction until its accumulator
    is readable. block_start: until the next block starts on an SM. issue_overhead: of the issuing thread, for each
    asynchronous operation.

    power_slowdown: slowdown factor of matrix instructions where all SMs multiply at once (power limit).
    resident_share: the share of the last-level cache that operands may fill and still hit in the next wave of tiles.
    shared_line_cost: the cost of a cache line that another SM requests too, relative to the first request.
    fill_rate: bytes per cycle of a TMA box outside its tensor. remote_rate: bytes per cycle into another SM's shared
    memory (DSMEM). shortest_row: bytes that a row of a box costs at least on the way from the last-level cache.
    launch_us: microseconds of launch overhead. address_instructions: address and bounds instructions of a wave for
    each of its global memory instructions.
    """

    cache_latency: float
    memory_latency: float
    landing_latency: float
    barrier_latency: float
    sync_latency: float
    mma_latency: float
    power_slowdown: float
    resident_share: float
    shared_line_cost: float
    fill_rate: float
    remote_rate: float
    shortest_row: float
    launch_us: float
    block_start: float
    issue_overhead: float
    address_instructions: float


@frozen
class Machine:
    """One processor (streaming multiprocessor, compute unit) and the machine's shared resources.

    clock: cycles per microsecond. schedulers: per processor, each issues one instruction per cycle. waves, blocks,
    registers, shared: capacity of a processor; registers counts 32-bit registers of all lanes, allocated to a wave in
    multiples of `grain`. reserved: bytes of shared memory that the system takes per block. bank_bytes: shared memory
    bandwidth, bytes per cycle. line: bytes of global memory that one instruction accesses per cycle. port: bytes per
    cycle from the last-level cache into one processor. port_sharers: processors that share one port. cache: bandwidth
    of the last-level cache for all processors together, memory: of device memory, both in bytes per cycle. cached:
    bytes of the last-level cache. simple, special: issue cycles of a wave's addition, and of its transcendental
    function. shared_latency: latency of a shared memory read in cycles. parts: processors of each graphics processing
    cluster or die; a thread block cluster lies within one.
    """

    target: Target
    parts: tuple[int, ...]
    clock: float
    schedulers: int
    waves: int
    blocks: int
    registers: int
    grain: int
    shared: int
    reserved: int
    bank_bytes: float
    line: int
    port: float
    port_sharers: int
    cache: float
    memory: float
    cached: float
    simple: float
    special: float
    shared_latency: float
    fitted: Fitted

    def usable(self, blocks: int) -> int:
        """Processors that clusters of `blocks` blocks can occupy at one time, one block each."""
        return blocks * sum(part // blocks for part in self.parts)

    def missed(self, operands: float) -> float:
        """The share of repeated requests that miss the warm last-level cache. operands: bytes of all that is read."""
        room = self.fitted.resident_share * self.cached
        return min(1.0, max(0.0, operands / room - 1)) if room else 1.0


H200 = Machine(
    target=sm_90a,
    # 132 SMs in eight graphics processing clusters of up to 18; the split is fitted to the times of clusters of eight.
    parts=(18, 18, 18, 16, 16, 16, 16, 14),
    clock=1980.0,  # the card's limit
    schedulers=4,  # NVIDIA H100 white paper, as are blocks, registers and shared memory
    waves=sm_90a.waves,
    blocks=32,
    registers=65_536,
    grain=256,  # NVIDIA H100 tuning guide, occupancy
    shared=233_472,
    reserved=sm_90a.reserved,
    bank_bytes=128.0,  # 32 banks of 4 bytes
    line=128,
    port=64.0,  # DeepGEMM, cost model: bytes per clock and SM
    port_sharers=2,  # SMs per TPC [NVIDIA H100 white paper]; a single active SM gets the bandwidth of both
    cache=8e6 / 1.3e3,  # DeepGEMM, cost model: bytes per clock of the L2 cache
    memory=4.2e6 / 1980.0,  # measured on one H200: bytes per microsecond of a copy of 268 MB
    cached=50 * 2.0**20,  # NVIDIA H100 white paper
    simple=1.0,
    shared_latency=30.0,  # order of magnitude
    special=8.0,  # 16 per clock and SM [NVIDIA CUDA C++ programming guide, instruction throughput]
    fitted=Fitted(
        cache_latency=900.0,
        memory_latency=300.0,
        landing_latency=60.0,
        barrier_latency=40.0,
        sync_latency=30.0,
        mma_latency=100.0,
        power_slowdown=1.2,
        resident_share=0.9,
        shared_line_cost=0.75,
        fill_rate=22.0,
        remote_rate=48.0,
        shortest_row=96.0,
        launch_us=3.5,
        block_start=1500.0,
        issue_overhead=10.0,
        address_instructions=21.0,
    ),
)
MI300X = Machine(
    target=gfx942,
    parts=(38,) * 8,  # AMD CDNA 3 white paper: eight dies
    clock=2100.0,  # AMD MI300X data sheet
    schedulers=4,
    waves=gfx942.waves,
    blocks=32,
    registers=4 * 512 * 64,  # AMD CDNA3 ISA: VGPRs and AGPRs of four SIMDs
    grain=8 * 64,
    shared=65_536,
    reserved=gfx942.reserved,
    bank_bytes=128.0,  # AMD CDNA3 ISA, data share
    line=64,  # AMD CDNA 3 white paper: the vector cache delivers 64 bytes per clock
    port=64.0,
    port_sharers=1,
    cache=8 * 2048.0,  # eight L2 caches of 2 KiB per clock each [AMD CDNA 3 white paper]
    memory=5.3e6 / 2100.0,  # AMD MI300X data sheet; not measured
    cached=256 * 2.0**20,  # AMD CDNA 3 white paper, Infinity Cache
    simple=4.0,  # 64 lanes on 16 ALUs [AMD CDNA3 ISA]
    special=16.0,
    shared_latency=64.0,  # order of magnitude
    # Assumed, except `power_slowdown`: no MI300X was available to fit them.
    fitted=Fitted(
        cache_latency=700.0,
        memory_latency=800.0,
        landing_latency=0.0,
        barrier_latency=40.0,
        sync_latency=40.0,
        mma_latency=40.0,
        power_slowdown=1307
        / 797,  # peak over best reported TFLOPS at 8192^3 [hipBLASLt on MI325X, HipKittens cdna3 branch]
        resident_share=0.7,
        shared_line_cost=0.5,
        fill_rate=32.0,
        remote_rate=32.0,
        shortest_row=64.0,
        launch_us=5.0,
        block_start=1500.0,
        issue_overhead=4.0,
        address_instructions=2.0,
    ),
)
MACHINES: Mapping[str, Machine] = {each.target.name: each for each in (H200, MI300X)}
