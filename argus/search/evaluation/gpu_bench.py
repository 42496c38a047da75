"""Implements the bench harness's `Bench` on a GPU, and binds built kernels as its candidates."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import assert_never

from attrs import Factory, field, frozen

from argus.core.ir import Kernel
from argus.core.serde import read, write
from argus.policy.last_round import Batch
from argus.runtime.gpu.device import Device, Memory
from argus.runtime.gpu.driver import GpuDriver
from argus.runtime.gpu.launch import LoadedKernel, load
from argus.runtime.gpu_lock import GpuLock
from argus.search.bench_harness.bench import Bytes, Call, Candidate, Operand
from argus.search.bench_harness.examine import check_results, measure
from argus.search.bench_harness.files import KernelOfFile
from argus.search.bench_harness.interleaved import bind_finalists
from argus.search.bench_harness.products import Product
from argus.search.bench_harness.session import session
from argus.search.bench_harness.subject import Subject
from argus.search.bench_harness.verdict import Caught, Plan, Verdict
from argus.search.problems.families.problem import FamilyProblem
from argus.search.problems.kernel_file import KernelFile
from argus.search.problems.problem import Gemm, Problem
from argus.search.problems.workload import size_sources
from argus.search.tuning.measure import keep_busy, the_device

_CLOCK = time.perf_counter
"""The host clock, captured before any candidate is loaded."""
_LAUNCH = 30e-6
_MORE = 5
"""Host seconds assumed per launch, and extra launches for which the GPU is kept busy."""
ROUNDS = 3


@frozen
class GpuBench:
    """A GPU timed by driver events, with exclusive access per process; calls go to the default stream."""

    device: Device
    turn: GpuLock = field(init=False, default=Factory(lambda card: GpuLock(card.device.bus), takes_self=True))

    @property
    def driver(self) -> GpuDriver:
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

    def synchronise(self, *, everything: bool) -> None:
        if everything:
            self.device.synchronise()
            return
        event = self.record_event()
        self.driver.wait(event)
        self.driver.drop(event)

    def try_acquire(self) -> bool:
        return self.turn.acquire()

    def release(self) -> None:
        self.turn.release()

    def keep_busy(self, calls: int) -> None:
        keep_busy(self.device, _LAUNCH * (calls + _MORE))

    def record_event(self) -> object:
        event = self.driver.new_event()
        self.driver.record(event, 0)
        return event

    def elapsed(self, first: object, last: object) -> float:
        took = 1e3 * self.driver.elapsed(first, last)
        for event in (first, last):
            self.driver.drop(event)
        return took

    def host_time(self) -> float:
        return 1e6 * _CLOCK()

    def instruments(self) -> tuple[object, ...]:
        return (*self.driver.instruments(), time.perf_counter)

    def least(self, subject: Subject) -> float:
        return subject.bounds.least

    def _bytes(self, address: int, size: int) -> Memory:
        return Memory(self.driver, address, (size,), 1)


@frozen
class SizeSources:
    """Where a kernel's sizes come from. tensors: parameter names in order. sizes: name -> (tensor, axis)."""

    tensors: tuple[str, ...]
    sizes: Mapping[str, tuple[str, int]]


PRODUCT = SizeSources(("A", "B", "C"), {"M": ("C", 0), "N": ("C", 1), "K": ("A", 1)})


def bind_kernel(kernel: LoadedKernel, source: SizeSources, stream: int = 0) -> Candidate:
    """A built kernel as a candidate; binding raises ArgusError (E405) for sizes that it does not accept."""

    def bind(*operands: Operand) -> Call:
        given = dict(zip(source.tensors, operands, strict=True))
        sizes = {size: given[name].shape[axis] for size, (name, axis) in source.sizes.items()}
        held = {name: Memory(kernel.driver, each.address, each.shape, each.element) for name, each in given.items()}
        return kernel.prepare(sizes).bind(held, stream)

    return bind


@frozen
class Job:
    """What to check or time. path: description file of the built kernel. plain: the serialised kernel of a user's file.

    seed: fresh and secret.
    """

    problem: Problem
    path: str
    plain: str = field(default="", repr=False)
    seed: int = field(factory=lambda: secrets.randbits(64))
    rounds: int = ROUNDS

    @property
    def plan(self) -> Plan:
        return Plan(self.seed, rounds=self.rounds)

    @property
    def kernel(self) -> Kernel:
        (found,) = read(json.loads(self.plain))
        assert isinstance(found, Kernel)
        return found

    def subject(self) -> Subject:
        """Raises ArgusError: E903, and E00x for a file that does not load."""
        match self.problem:
            case Gemm():
                return Product(self.problem)
            case FamilyProblem():
                return KernelOfFile(
                    self.kernel,
                    self.problem.sizes,
                    self.problem.bounds,
                    self.problem.reference,
                    self.problem.constants,
                )
            case KernelFile():
                return KernelOfFile(
                    self.kernel, self.problem.sizes, self.problem.bounds_of(self.kernel), self.problem.reference
                )
            case _:
                assert_never(self.problem)

    def candidate(self, kernel: LoadedKernel) -> Candidate:
        if isinstance(self.problem, Gemm):
            return bind_kernel(kernel, PRODUCT)
        made = self.kernel
        return bind_kernel(kernel, SizeSources(tuple(each.name for each in made.parameters), size_sources(made)))


def job_of(problem: Problem, kernel: Kernel, path: Path) -> Job:
    """path: description file of the built kernel."""
    plain = "" if isinstance(problem, Gemm) else json.dumps(write([kernel]))
    return Job(problem, str(path), plain)


def check_job(job: Job) -> Generator[str, None, Caught | None]:
    """Check a kernel's results. Raises ArgusError: E405 to E409, E903."""
    yield Path(job.path).stem
    card, subject = GpuBench(the_device()), job.subject()
    kernel = load(Path(job.path), card.driver)
    with session(card, job.plan, subject) as opened:
        return (yield from check_results(opened, job.candidate(kernel)))


def time_job(job: Job) -> Generator[str, None, Verdict]:
    """Measure a kernel's time. Raises ArgusError: E405 to E409, E903."""
    yield Path(job.path).stem
    card, subject = GpuBench(the_device()), job.subject()
    kernel = load(Path(job.path), card.driver)
    with session(card, job.plan, subject) as opened:
        return (yield from measure(opened, job.candidate(kernel)))


def time_jobs(jobs: Mapping[str, Job], names: tuple[str, ...]) -> Generator[str, None, Batch]:
    """Time the named kernels of one problem interleaved. Raises ArgusError: E405 to E409, E903."""
    yield "the finalists"
    card, first = GpuBench(the_device()), jobs[names[0]]
    with session(card, first.plan, first.subject()) as opened:
        bound = {name: jobs[name].candidate(load(Path(jobs[name].path), card.driver)) for name in names}
        finalists = yield from bind_finalists(opened, bound)
        return (yield from finalists.batch(names, time.sleep))
