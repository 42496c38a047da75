"""A device that is not there: memory of NumPy, streams with a virtual clock, and functions that a cheat may replace."""

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
"""Multiplications in a microsecond."""
_LAUNCH = 2.0
_SETTLE = 4.0


@define
class Stream:
    """free: when all that was launched is done. pending: what happens in memory, by its end."""

    free: float = 0.0
    pending: list[tuple[float, Work]] = field(factory=list[tuple[float, Work]])

    def launch(self, now: float, took: float, work: Work) -> None:
        self.free = max(now, self.free) + took
        self.pending.append((self.free, work))


@define
class Simulated:
    """memory: by address. now: the host's clock in microseconds. noise: by which share times of launches differ.

    taken: bytes of what is allocated, by address. functions: what the bench measures with, by name.
    """

    memory: Bytes = field(factory=lambda: np.zeros(64 << 20, np.uint8))
    now: float = 0.0
    noise: float = 0.0
    main: Stream = field(factory=Stream)
    side: Stream = field(factory=Stream)
    taken: dict[int, int] = field(factory=dict[int, int])
    functions: dict[str, Callable[..., Any]] = field(init=False)
    _generator: np.random.Generator = field(factory=lambda: np.random.default_rng(5))
    _top: int = 4096

    def __attrs_post_init__(self) -> None:
        self.functions = {
            "late": self._read,
            "read": self._read,
            "between": _between,
            "host": lambda: self.now,
        }

    # -- what candidates use ---------------------------------------------------------------------------------

    def matrix(self, operand: Operand) -> Halves:
        """The memory of an operand itself."""
        held = self.memory[operand.address : operand.address + operand.bytes]
        return held.view(bfloat16).reshape(operand.shape)

    def least_of(self, a: Operand, b: Operand) -> float:
        """Microseconds of a product on this device at full speed."""
        return a.shape[0] * a.shape[1] * b.shape[0] / _PRODUCTS

    def launch(self, took: float, work: Work, stream: Stream | None = None) -> None:
        """Work that takes so many microseconds and is seen in memory at its end."""
        self.now += _LAUNCH
        took *= 1 + self.noise * float(self._generator.standard_normal())
        (stream or self.main).launch(self.now, max(0.0, took), work)

    # -- what the bench does ---------------------------------------------------------------------------------

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
        return self.device.functions["host"]()

    def instruments(self) -> tuple[object, ...]:
        return tuple(self.device.functions.values())

    def least(self, subject: Subject) -> float:
        return prod(subject.sizes.values()) / _PRODUCTS


def _between(first: float, last: float) -> float:
    return last - first
