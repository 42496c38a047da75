"""The machines as the static model sees them: one row of rates and latencies each.

A cycle is one of the processor's at its highest clock. Where no manual says a number it is `fitted` to measured times
(`benchmarks/static_model.py`) or `assumed`, and stands in `Fitted`.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from argus.core.target import Target, gfx942, sm_90a


@frozen
class Fitted:
    """The constants that no document states: few, global, none of them of a configuration.

    Cycles: near, from asking memory to data that the last cache holds; farther, how much longer where it does not;
    landed, until those who await bytes know of them; signal, from an arrival to who awaits it; meeting, of a block's
    threads; product, from the last matrix instruction's end until its sums may be read.

    heat: by how much matrix instructions slow down where all processors multiply at once, for want of power.
    kept: the share of the last cache that operands may fill and still be found there by the next wave of tiles.
    again: what a line costs the last cache that another processor asks for, too, as a share of what the first costs.
    fill: bytes a cycle of a box outside its tensor. remote: bytes a cycle into another processor's shared memory.
    row: bytes of the way from the last cache that a short row of a box takes at least.
    launch: microseconds around a kernel. block: cycles until a block that follows another one begins.
    overhead: cycles of the issuing thread for each statement that starts something. address: instructions beside each
    one that a wave sends to global memory, for its place and whether that lies inside the tensor.
    """

    near: float
    farther: float
    landed: float
    signal: float
    meeting: float
    product: float
    heat: float
    kept: float
    again: float
    fill: float
    remote: float
    row: float
    launch: float
    block: float
    overhead: float
    address: float


@frozen
class Machine:
    """One processor (multiprocessor, compute unit) and its part of the rest.

    clock: cycles a microsecond. schedulers: of a processor, each of which issues one instruction a cycle. waves,
    blocks, registers, shared: what a processor has room for; registers are 32-bit ones of all lanes, given out to a
    wave in multiples of `grain`. reserved: bytes of shared memory that each block takes beside its own.
    bank_bytes: shared memory's bytes a cycle. line: bytes of global memory that one instruction reaches in a cycle.
    port: bytes a cycle from the last cache into one processor. paired: processors that share a way there. cache: bytes
    a cycle from the last cache for all processors together. memory: bytes a cycle from memory. cached: bytes of the
    last cache. simple, special: cycles that a scheduler is kept by an addition of a wave, and by a transcendental
    function. held: cycles from a read of shared memory to its registers. parts: processors of each part of the machine;
    a cluster lies within one.
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
    paired: int
    cache: float
    memory: float
    cached: float
    simple: float
    special: float
    held: float
    fitted: Fitted

    def usable(self, blocks: int) -> int:
        """Processors that clusters of so many blocks can be on at one time, one block each."""
        return blocks * sum(part // blocks for part in self.parts)


H200 = Machine(
    target=sm_90a,
    # 132 of eight graphics processing clusters of up to 18 each, fitted: these meet the times of clusters of eight.
    parts=(18, 18, 18, 16, 16, 16, 16, 14),
    clock=1980.0,  # the card's limit
    schedulers=4,  # NVIDIA H100 white paper, as are waves, blocks, registers and shared memory
    waves=64,
    blocks=32,
    registers=65_536,
    grain=256,  # NVIDIA H100 tuning guide, occupancy
    shared=233_472,
    reserved=1024,
    bank_bytes=128.0,  # 32 banks of 4 bytes
    line=128,
    port=64.0,  # DeepGEMM, cost model: bytes a clock and multiprocessor
    paired=2,  # of a texture processing cluster [NVIDIA H100 white paper]; one at work alone has the way of both
    cache=8e6 / 1.3e3,  # DeepGEMM, cost model: bytes a clock of the second-level cache
    memory=4.2e6 / 1980.0,  # a copy of 268 MB measured on one H200, bytes a microsecond
    cached=50 * 2.0**20,  # NVIDIA H100 white paper
    simple=1.0,
    held=30.0,  # order of magnitude
    special=8.0,  # 16 a clock and multiprocessor [NVIDIA CUDA C++ programming guide, throughput of instructions]
    fitted=Fitted(
        near=900.0,
        farther=300.0,
        landed=60.0,
        signal=40.0,
        meeting=30.0,
        product=100.0,
        heat=1.2,
        kept=0.9,
        again=0.75,
        fill=22.0,
        remote=48.0,
        row=96.0,
        launch=3.5,
        block=1500.0,
        overhead=10.0,
        address=21.0,
    ),
)
MI300X = Machine(
    target=gfx942,
    parts=(38,) * 8,  # AMD CDNA 3 white paper: eight dies
    clock=2100.0,  # AMD MI300X data sheet
    schedulers=4,
    waves=32,  # 8 a SIMD [AMD CDNA3 ISA]
    blocks=32,
    registers=4 * 512 * 64,  # AMD CDNA3 ISA: vector and accumulation registers of four SIMDs
    grain=8 * 64,
    shared=65_536,
    reserved=0,
    bank_bytes=128.0,  # AMD CDNA3 ISA, data share
    line=64,  # AMD CDNA 3 white paper: the vector cache gives 64 bytes a clock
    port=64.0,
    paired=1,
    cache=8 * 2048.0,  # eight second-level caches of 2 KiB a clock each [AMD CDNA 3 white paper]
    memory=5.3e6 / 2100.0,  # AMD MI300X data sheet; nothing measured at hand
    cached=256 * 2.0**20,  # AMD CDNA 3 white paper, Infinity Cache
    simple=4.0,  # 64 lanes on 16 units [AMD CDNA3 ISA]
    special=16.0,
    held=64.0,  # order of magnitude
    # Assumed but for `heat`: there is no MI300X to fit them to.
    fitted=Fitted(
        near=700.0,
        farther=800.0,
        landed=0.0,
        signal=40.0,
        meeting=40.0,
        product=40.0,
        heat=1307 / 797,  # no more is reached at 8192 x 8192 x 8192 [hipBLASLt on an MI325X, HipKittens cdna3 branch]
        kept=0.7,
        again=0.5,
        fill=32.0,
        remote=32.0,
        row=64.0,
        launch=5.0,
        block=1500.0,
        overhead=4.0,
        address=2.0,
    ),
)
MACHINES: Mapping[str, Machine] = {each.target.name: each for each in (H200, MI300X)}
