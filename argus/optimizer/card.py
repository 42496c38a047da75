"""The bench of the examination on a GPU, and built kernels as its candidates."""

from __future__ import annotations

import secrets
import time
from collections.abc import Generator
from pathlib import Path

from attrs import field, frozen

from argus.optimizer.examination.bench import ELEMENT, Bytes, Call, Candidate, Operand
from argus.optimizer.examination.examine import clocked, correct
from argus.optimizer.examination.session import session
from argus.optimizer.examination.verdict import Caught, Plan, Verdict
from argus.optimizer.problem import Gemm
from argus.runtime.cuda import Loaded, load
from argus.runtime.device import Device, Memory
from argus.runtime.driver import Driver
from argus.tuning.measure import hold, the_device

_CLOCK = time.perf_counter
"""As it is before any candidate is loaded."""
_MEASURING = (
    "cuMemcpyDtoH",
    "cuMemcpyHtoD",
    "cuMemsetD8",
    "cuCtxSynchronize",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuEventElapsedTime",
)
_LAUNCH = 30e-6
_MORE = 5
"""Seconds that a launch may take on the host, and launches more than there are that the GPU is kept busy for."""
ROUNDS = 3


@frozen
class Card:
    """A GPU with the events of its driver; calls go to the default stream."""

    device: Device

    @property
    def driver(self) -> Driver:
        return self.device.driver

    def allocate(self, size: int) -> int:
        return self.device.allocate((size,), 1).pointer

    def free(self, address: int) -> None:
        self.device.free(self._bytes(address, 0))

    def write(self, address: int, contents: Bytes) -> None:
        self._bytes(address, contents.size).write(contents)

    def fill(self, address: int, size: int, byte: int) -> None:
        self._bytes(address, size).fill(byte)

    def read(self, address: int, size: int) -> Bytes:
        return self._bytes(address, size).read()

    def settle(self, *, everything: bool) -> None:
        if everything:
            self.device.synchronise()
            return
        event = self.mark()
        self.driver.call("cuEventSynchronize", event)
        self.driver.call("cuEventDestroy", event)

    def hold(self, calls: int) -> None:
        hold(self.device, _LAUNCH * (calls + _MORE))

    def mark(self) -> object:
        event = self.driver.call("cuEventCreate", 0)
        self.driver.call("cuEventRecord", event, 0)
        return event

    def between(self, first: object, last: object) -> float:
        took = 1e3 * float(self.driver.call("cuEventElapsedTime", first, last))
        for event in (first, last):
            self.driver.call("cuEventDestroy", event)
        return took

    def host(self) -> float:
        return 1e6 * _CLOCK()

    def instruments(self) -> tuple[object, ...]:
        return (*(getattr(self.driver.raw, name) for name in _MEASURING), time.perf_counter)

    def least(self, problem: Gemm) -> float:
        return problem.bounds.least

    def _bytes(self, address: int, size: int) -> Memory:
        return Memory(self.driver, address, (size,), 1)


def candidate(kernel: Loaded, stream: int = 0) -> Candidate:
    """A built kernel; binding raises ArgusError (E405) for a shape that it does not take."""

    def bind(a: Operand, b: Operand, c: Operand) -> Call:
        sizes = {"M": c.shape[0], "N": c.shape[1], "K": a.shape[1]}
        held = {
            name: Memory(kernel.driver, each.address, each.shape, ELEMENT)
            for name, each in zip("ABC", (a, b, c), strict=True)
        }
        return kernel.prepare(sizes).bind(held, stream)

    return bind


@frozen
class Job:
    """What to examine. path: of the description of a built kernel. seed: known to nobody before."""

    problem: Gemm
    path: str
    seed: int = field(factory=lambda: secrets.randbits(64))
    rounds: int = ROUNDS

    @property
    def plan(self) -> Plan:
        return Plan(self.seed, rounds=self.rounds)


def results(job: Job) -> Generator[str, None, Caught | None]:
    """What is wrong with a kernel's results. Raises ArgusError: E405 to E409."""
    yield Path(job.path).stem
    card = Card(the_device())
    kernel = load(Path(job.path), card.driver)
    with session(card, job.plan) as opened:
        return (yield from correct(opened, candidate(kernel), job.problem))


def times(job: Job) -> Generator[str, None, Verdict]:
    """A kernel's time. Raises ArgusError: E405 to E409."""
    yield Path(job.path).stem
    card = Card(the_device())
    kernel = load(Path(job.path), card.driver)
    with session(card, job.plan) as opened:
        return (yield from clocked(opened, candidate(kernel), job.problem))
