"""Speed-of-light (roofline) bounds: the least time that a problem can take on a machine, independent of the kernel.

The work is a lower bound for any kernel: arithmetic by element type, and each byte of inputs and outputs once. Peak
rates are from the data sheet; reached rates are the best that has been measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Literal

from attrs import frozen

Bottleneck = Literal["tensor", "memory", "launch"]
_BITS: Mapping[str, int] = {"f32": 32, "bf16": 16, "f16": 16, "e4m3": 8}


def _pairs(flops: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    return tuple(sorted(flops.items()))


@frozen
class Work:
    """Work of a problem. flops: operations by operand type; a multiply-add counts as 2. reads, writes: least bytes."""

    flops: tuple[tuple[str, float], ...]
    reads: float
    writes: float

    @classmethod
    def of(cls, flops: Mapping[str, float], reads: float, writes: float) -> Work:
        return cls(_pairs(flops), reads, writes)

    @property
    def bytes(self) -> float:
        return self.reads + self.writes

    @property
    def known(self) -> bool:
        """Whether both operation and byte counts are present."""
        return bool(self.bytes) and any(count for _, count in self.flops)

    @property
    def intensity(self) -> float:
        """Arithmetic intensity in operations per byte."""
        return sum(count for _, count in self.flops) / self.bytes


def gemm(m: int, n: int, k: int, dtype: str = "bf16", out: str = "bf16", batch: int = 1) -> Work:
    """C = A @ B^T, `batch` times: each operand read once, C written once. Raises KeyError for an unknown type."""
    reads = batch * (m + n) * k * _BITS[dtype] / 8
    return Work.of({dtype: 2.0 * prod((batch, m, n, k))}, reads, batch * m * n * _BITS[out] / 8)


@frozen
class Rate:
    """A value and its source."""

    value: float
    source: str


@frozen
class Ceilings:
    """Rates of one machine.

    peak, reached: operations per microsecond by element type, by the data sheet and the best measured. memory_peak,
    memory: DRAM bytes per microsecond, likewise. ports: bytes per microsecond into all SMs/CUs together, from any
    source. cached: bytes that the last-level cache may keep between calls. launch: microseconds of an empty kernel.
    overclock: highest clock over the data sheet's clock.
    """

    target: str
    peak: Mapping[str, Rate]
    reached: Mapping[str, Rate]
    memory_peak: Rate
    memory: Rate
    ports: Rate
    cached: Rate
    launch: Rate
    overclock: Rate


_TFLOPS = 1e6
_TBYTES = 1e6
_H200_SHEET = "NVIDIA H200 data sheet, SXM, without sparsity"
_AMD_SHEET = "AMD Instinct MI300X data sheet, without sparsity"
_PEERS = "best of cuBLAS, Triton and DeepGEMM at 8192 x 8192 x 8192 on one H200, duty-cycled"
_MI325X = "hipBLASLt at 8192 x 8192 x 8192 on an MI325X [HipKittens, cdna3 branch]; no MI300X at hand"

H200 = Ceilings(
    target="sm_90a",
    peak={
        "bf16": Rate(989 * _TFLOPS, _H200_SHEET),
        "f16": Rate(989 * _TFLOPS, _H200_SHEET),
        "e4m3": Rate(1979 * _TFLOPS, _H200_SHEET),
        "f32": Rate(67 * _TFLOPS, _H200_SHEET + "; not by the matrix unit"),
    },
    reached={
        "bf16": Rate(810 * _TFLOPS, _PEERS),
        "f16": Rate(810 * _TFLOPS, _PEERS + "; taken to be as of bf16"),
        "e4m3": Rate(1512 * _TFLOPS, _PEERS),
    },
    memory_peak=Rate(4.8 * _TBYTES, _H200_SHEET),
    memory=Rate(4.2 * _TBYTES, "copy of 268 MB on one H200"),
    ports=Rate(132 * 64 * 1980.0, "64 bytes a clock and multiprocessor [DeepGEMM, cost model] at 1980 MHz"),
    cached=Rate(50 * 2.0**20, "NVIDIA H100 white paper, second-level cache"),
    launch=Rate(2.0, "assumed: no shorter kernel has been timed here; no verdict depends on it"),
    overclock=Rate(1980 / 1830, "989 TFLOP/s are 132 x 4096 operations at 1830 MHz; the GPU's limit is 1980 MHz"),
)
MI300X = Ceilings(
    target="gfx942",
    peak={
        "bf16": Rate(1307 * _TFLOPS, _AMD_SHEET),
        "f16": Rate(1307 * _TFLOPS, _AMD_SHEET),
        "e4m3": Rate(2614 * _TFLOPS, _AMD_SHEET),
        "f32": Rate(163.4 * _TFLOPS, _AMD_SHEET + "; vector or matrix"),
    },
    reached={"bf16": Rate(797 * _TFLOPS, _MI325X), "f16": Rate(797 * _TFLOPS, _MI325X + "; taken to be as of bf16")},
    memory_peak=Rate(5.3 * _TBYTES, _AMD_SHEET),
    memory=Rate(5.3 * _TBYTES, _AMD_SHEET + "; nothing measured at hand"),
    ports=Rate(304 * 64 * 2100.0, "64 bytes a clock and compute unit [AMD CDNA 3 white paper] at 2100 MHz"),
    cached=Rate(256 * 2.0**20, "AMD CDNA 3 white paper, Infinity Cache"),
    launch=Rate(2.0, "assumed; no verdict depends on it"),
    overclock=Rate(1.0, "1307 TFLOP/s are 304 x 2048 operations at 2100 MHz, the GPU's limit"),
)
CEILINGS: Mapping[str, Ceilings] = {each.target: each for each in (H200, MI300X)}


@frozen
class Bounds:
    """Lower bounds of the time, in microseconds, by resource.

    tensor, memory: at data sheet rates. reachable_tensor, reachable_memory: at reached rates, or the data sheet's where
    none is known. least: no correct measurement is below it: it assumes the highest clock, and that the last-level
    cache still holds what it can from the previous call.
    """

    tensor: float
    memory: float
    launch: float
    reachable_tensor: float
    reachable_memory: float
    least: float

    @property
    def light(self) -> float:
        """The speed of light: the largest bound at data sheet rates."""
        return max(self.tensor, self.memory, self.launch)

    @property
    def reachable(self) -> float:
        """The largest bound at reached rates."""
        return max(self.reachable_tensor, self.reachable_memory, self.launch)

    @property
    def bottleneck(self) -> Bottleneck:
        """The resource whose bound is the speed of light."""
        parts: dict[Bottleneck, float] = {"tensor": self.tensor, "memory": self.memory, "launch": self.launch}
        return max(parts, key=lambda each: parts[each])

    def gap(self, microseconds: float) -> float:
        """Time over the speed of light: 1 is perfect."""
        return microseconds / self.light

    def headroom(self, microseconds: float) -> float:
        """The fraction of a time above the reachable bound; 0 at or below it."""
        return max(0.0, 1 - self.reachable / microseconds)


def bounds(work: Work, ceilings: Ceilings, *, cold: bool = False) -> Bounds:
    """Bounds of a problem on a machine. cold: caches hold none of the operands at the start.

    Raises KeyError for an element type without a rate on this machine.
    """
    peaks = [(count, ceilings.peak[dtype].value, dtype) for dtype, count in work.flops]
    tensor = sum(count / rate for count, rate, _ in peaks)
    reached = sum(count / ceilings.reached.get(dtype, ceilings.peak[dtype]).value for count, _, dtype in peaks)
    fetched = work.bytes if cold else max(0.0, work.bytes - ceilings.cached.value)
    least = max(
        tensor / ceilings.overclock.value,
        fetched / ceilings.memory_peak.value,
        work.bytes / ceilings.ports.value,
    )
    return Bounds(
        tensor=tensor,
        memory=work.bytes / ceilings.memory_peak.value,
        launch=ceilings.launch.value,
        reachable_tensor=reached,
        reachable_memory=work.bytes / ceilings.memory.value,
        least=least,
    )


@frozen
class Impossible:
    """A time below `Bounds.least`: the kernel skipped work, or the timer is wrong. It never counts as a result."""

    microseconds: float
    least: float

    def __str__(self) -> str:
        return f"{self.microseconds:.3g} us is faster than the machine can be: {self.least:.3g} us at least"


@frozen
class Share:
    """A possible time. light: speed of light over time; above 1 only by what a higher clock or a cache may give."""

    light: float
    bottleneck: Bottleneck

    def __str__(self) -> str:
        return f"{self.light:.0%} of the speed of light ({self.bottleneck})"


TOLERANCE = 0.02
"""Relative error allowed to a timer."""


def check_time(microseconds: float, bound: Bounds, *, tolerance: float = TOLERANCE) -> Impossible | Share:
    """Compare a time with the bounds. tolerance: relative timer error. Raises ValueError unless the time is above 0."""
    if not microseconds > 0:
        raise ValueError(f"{microseconds} microseconds are no time")
    if microseconds < bound.least * (1 - tolerance):
        return Impossible(microseconds, bound.least)
    return Share(bound.light / microseconds, bound.bottleneck)
