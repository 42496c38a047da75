"""A simulated GPU for tests of the bench harness: NumPy memory, streams with a virtual clock, replaceable functions."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import define, field, frozen
from ml_dtypes import bfloat16

from argus.search.bench_harness.bench import Bytes, Operand
from argus.search.bench_harness.subject import Subject

Work = Callable[[], None]
Halves = npt.NDArray[Any]
_PRODUCTS = 4.0e3
"""Multiplications per microsecond."""
_LAUNCH = 2.0
_SETTLE = 4.0


@define
class Stream:
    """free: time at which all launched work is complete. pending: memory effects, with their completion times."""

    free: float = 0.0
    pending: list[tuple[float, Work]] = field(factory=list[tuple[float, Work]])

    def launch(self, now: float, took: float, work: Work) -> None:
        self.free = max(now, self.free) + took
        self.pending.append((self.free, work))


@define
class Simulated:
    """The device's state. Times are in microseconds.

    memory: by address. now: the host's clock. noise: relative standard deviation of launch times, drawn by generator.
    waits: how long the host waits for a processor before each reading of its clock. stalls: the same before a launch.
    taken: sizes of allocations, by address. functions: the bench's measuring functions, by name; a cheating candidate
    may replace them.
    """

    memory: Bytes = field(factory=lambda: np.zeros(64 << 20, np.uint8))
    now: float = 0.0
    noise: float = 0.0
    waits: Callable[[], float] = lambda: 0.0
    stalls: Callable[[], float] = lambda: 0.0
    main: Stream = field(factory=Stream)
    side: Stream = field(factory=Stream)
    taken: dict[int, int] = field(factory=dict[int, int])
    functions: dict[str, Callable[..., Any]] = field(init=False)
    generator: np.random.Generator = field(factory=lambda: np.random.default_rng(5))
    _top: int = 4096

    def __attrs_post_init__(self) -> None:
        self.functions = {
            "late": self._read,
            "read": self._read,
            "between": _between,
            "host": lambda: self.now,
        }

    # -- interface of candidates -----------------------------------------------------------------------------

    def matrix(self, operand: Operand) -> Halves:
        """A view of an operand's memory."""
        held = self.memory[operand.address : operand.address + operand.bytes]
        return held.view(bfloat16).reshape(operand.shape)

    def least_of(self, a: Operand, b: Operand) -> float:
        """Least time of a product on this device, in microseconds."""
        return a.shape[0] * a.shape[1] * b.shape[0] / _PRODUCTS

    def launch(self, took: float, work: Work, stream: Stream | None = None) -> None:
        """Launch work of the given duration in microseconds; its memory effects appear at its end."""
        self.now += _LAUNCH + self.stalls()
        took *= 1 + self.noise * float(self.generator.standard_normal())
        (stream or self.main).launch(self.now, max(0.0, took), work)

    # -- interface of the bench ------------------------------------------------------------------------------

    def allocate(self, size: int) -> int:
        address = self._top
        self._top += -(-size // 256) * 256
        if self._top > self.memory.size:
            raise MemoryError(size)
        self.taken[address] = size
        return address

    def synchronise(self, *, everything: bool) -> None:
        streams = (self.main, self.side) if everything else (self.main,)
        works = sorted((each for stream in streams for each in stream.pending), key=lambda each: each[0])
        for stream in streams:
            stream.pending.clear()
        for _, work in works:
            work()
        self.now = max(self.now, *(stream.free for stream in streams)) + _SETTLE

    def _read(self, address: int, size: int) -> Bytes:
        return self.memory[address : address + size].copy()


@frozen
class SimulatedBench:
    """The bench on a simulated device."""

    device: Simulated

    def allocate(self, size: int) -> int:
        return self.device.allocate(size)

    def free(self, address: int) -> None:
        del self.device.taken[address]

    def write(self, address: int, contents: Bytes) -> None:
        self.device.synchronise(everything=True)
        self.device.memory[address : address + contents.size] = contents

    def fill(self, address: int, size: int, byte: int) -> None:
        self.device.synchronise(everything=True)
        self.device.memory[address : address + size] = byte

    def read(self, address: int, size: int) -> Bytes:
        return self.device.functions["read"](address, size)

    def synchronise(self, *, everything: bool) -> None:
        self.device.synchronise(everything=everything)

    def try_acquire(self) -> bool:
        return True

    def release(self) -> None: ...

    def keep_busy(self, calls: int) -> None:
        self.device.main.free = max(self.device.now, self.device.main.free) + 2 * _LAUNCH * (calls + 1)

    def record_event(self) -> float:
        return max(self.device.now, self.device.main.free)

    def elapsed(self, first: object, last: object) -> float:
        return self.device.functions["between"](first, last)

    def host_time(self) -> float:
        self.device.now += self.device.waits()
        return self.device.functions["host"]()

    def instruments(self) -> tuple[object, ...]:
        return tuple(self.device.functions.values())

    def least(self, subject: Subject) -> float:
        return prod(subject.sizes.values()) / _PRODUCTS


def _between(first: float, last: float) -> float:
    return last - first
