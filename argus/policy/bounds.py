"""Speed of light: the least time that a problem can take on a machine, from first principles alone.

Work is what the problem cannot do without: arithmetic by element type, and each byte of its inputs and outputs once.
Rates are those of the data sheet, which nobody passes, and those that somebody has reached.
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
    """flops: by the element type of what is multiplied. reads, writes: least bytes of inputs and outputs.

    Of one element type a product and a sum are two operations.
    """

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
        """Whether both operations and bytes are counted at all."""
        return bool(self.bytes) and any(count for _, count in self.flops)

    @property
    def intensity(self) -> float:
        """Operations a byte, of what is known."""
        return sum(count for _, count in self.flops) / self.bytes


def gemm(m: int, n: int, k: int, dtype: str = "bf16", out: str = "bf16", batch: int = 1) -> Work:
    """C = A @ B^T, `batch` times: each operand read once, C written once. Raises KeyError for an unknown type."""
    reads = batch * (m + n) * k * _BITS[dtype] / 8
    return Work.of({dtype: 2.0 * prod((batch, m, n, k))}, reads, batch * m * n * _BITS[out] / 8)


@frozen
class Rate:
    """A number and where it is from."""

    value: float
    source: str


@frozen
class Ceilings:
    """What one machine can do.

    peak, reached: operations a microsecond by element type, of the data sheet and at best measured.
    memory_peak, memory: bytes a microsecond. ports: bytes a microsecond that all processors together take in,
    wherever they come from. cached: bytes that the last cache keeps from one call to the next. launch: microseconds
    of a kernel that does nothing. overclock: by how much the clock may pass that of the data sheet.
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
_PEERS = "best of cuBLAS, Triton and DeepGEMM at 8192 x 8192 x 8192 on one H200, single calls after idle"
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
    launch=Rate(2.0, "assumed: no shorter kernel has been timed here; it judges nobody"),
    overclock=Rate(1980 / 1830, "989 TFLOP/s are 132 x 4096 operations at 1830 MHz; the card's limit is 1980 MHz"),
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
    launch=Rate(2.0, "assumed; it judges nobody"),
    overclock=Rate(1.0, "1307 TFLOP/s are 304 x 2048 operations at 2100 MHz, the card's limit"),
)
CEILINGS: Mapping[str, Ceilings] = {each.target: each for each in (H200, MI300X)}


@frozen
class Bounds:
    """Microseconds below which the work cannot be done, part by part.

    tensor, memory: at the data sheet's rates. reachable_tensor, reachable_memory: at those that have been reached, the
    data sheet's where none has. least: below this physics is violated: the fastest clock, and what a cache may
    still hold of the call before comes from there.
    """

    tensor: float
    memory: float
    launch: float
    reachable_tensor: float
    reachable_memory: float
    least: float

    @property
    def light(self) -> float:
        """The speed of light: of the data sheet's bounds the largest."""
        return max(self.tensor, self.memory, self.launch)

    @property
    def reachable(self) -> float:
        return max(self.reachable_tensor, self.reachable_memory, self.launch)

    @property
    def bottleneck(self) -> Bottleneck:
        """What sets the speed of light."""
        parts: dict[Bottleneck, float] = {"tensor": self.tensor, "memory": self.memory, "launch": self.launch}
        return max(parts, key=lambda each: parts[each])

    def gap(self, microseconds: float) -> float:
        """Time over the speed of light: 1 is perfect."""
        return microseconds / self.light

    def headroom(self, microseconds: float) -> float:
        """The share of a time that is above what has been reached; 0 where nothing is left to gain."""
        return max(0.0, 1 - self.reachable / microseconds)


def bounds(work: Work, ceilings: Ceilings, *, cold: bool = False) -> Bounds:
    """cold: caches hold nothing of the operands when the time begins.

    Raises KeyError for an element type that the machine has no rate of.
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
    """Faster than physics: work was left out, or the clock was read wrongly. It is flagged, never rewarded."""

    microseconds: float
    least: float

    def __str__(self) -> str:
        return f"{self.microseconds:.3g} us is faster than the machine can be: {self.least:.3g} us at least"


@frozen
class Share:
    """light: share of the speed of light, above 1 only by what the clock or a cache may give."""

    light: float
    bottleneck: Bottleneck

    def __str__(self) -> str:
        return f"{self.light:.0%} of the speed of light ({self.bottleneck})"


TOLERANCE = 0.02
"""By which a timer may be wrong, as a share."""


def judge(microseconds: float, bound: Bounds, *, tolerance: float = TOLERANCE) -> Impossible | Share:
    """tolerance: by which a timer may be wrong, as a share. Raises ValueError for a time that is none."""
    if not microseconds > 0:
        raise ValueError(f"{microseconds} microseconds are no time")
    if microseconds < bound.least * (1 - tolerance):
        return Impossible(microseconds, bound.least)
    return Share(bound.light / microseconds, bound.bottleneck)
