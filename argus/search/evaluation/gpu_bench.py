"""Implements the bench harness's `Bench` on a GPU, and binds built kernels as its candidates."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import assert_never

from attrs import Factory, define, evolve, field, frozen

from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.core.serde import read, write
from argus.policy.last_round import Batch
from argus.runtime.gpu.device import Device, Memory
from argus.runtime.gpu.driver import GpuDriver
from argus.runtime.gpu.launch import LoadedKernel, load
from argus.runtime.gpu_lock import GpuLock
from argus.runtime.programs import LoadedProgram, PreparedProgram, load_program
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
from argus.search.problems.traced import Traced, kernels_of
from argus.search.problems.workload import size_sources
from argus.search.tuning.measure import keep_busy, the_device

_CLOCK = time.perf_counter
"""The host clock, captured before any candidate is loaded."""
_LAUNCH = 30e-6
_MORE = 5
"""Host seconds assumed per launch, and extra launches for which the GPU is kept busy."""
ROUNDS = 3
_POISON = 0xFF
"""Byte of what workspaces hold before the first call."""


@frozen
class GpuBench:
    """A GPU timed by driver events, with exclusive access per process; calls go to the default stream.

    launches: of a call, at most, while which the host is not to keep the GPU waiting.
    """

    device: Device
    launches: int = 1
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
        keep_busy(self.device, _LAUNCH * (self.launches * calls + _MORE))

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


@define
class ProgramCandidate:
    """A built program as a candidate: its launches follow one another on one stream.

    bound: a call for each placing of operands. Workspaces are allocated once for all calls at some sizes, as a caller
    has them, hold NaN before the first one, and lie there until `close`.
    """

    program: LoadedProgram
    source: SizeSources
    card: GpuBench
    stream: int = 0
    _spaces: dict[tuple[tuple[str, int], ...], dict[str, Memory]] = field(
        factory=dict[tuple[tuple[str, int], ...], dict[str, Memory]], init=False
    )

    def __call__(self, *operands: Operand) -> Call:
        """Raises ArgusError (E405) for sizes that a launch does not accept."""
        given = dict(zip(self.source.tensors, operands, strict=True))
        sizes = {size: given[name].shape[axis] for size, (name, axis) in self.source.sizes.items()}
        driver = self.program.driver
        held = {name: Memory(driver, each.address, each.shape, each.element) for name, each in given.items()}
        prepared = self.program.prepare(sizes)
        return prepared.bind({**held, **self._workspaces(prepared, sizes)}, self.stream)

    def _workspaces(self, prepared: PreparedProgram, sizes: Mapping[str, int]) -> dict[str, Memory]:
        key = tuple(sizes.items())
        if key not in self._spaces:
            made = self._spaces[key] = dict[str, Memory]()
            for each in prepared.workspaces:
                made[each.name] = self.card.device.allocate(each.shape, each.element)
                made[each.name].fill(_POISON)
        return self._spaces[key]

    def close(self) -> None:
        """Free the workspaces, which no launch may use any more."""
        for spaces in self._spaces.values():
            for each in spaces.values():
                with suppress(ArgusError):  # after a fault the process ends, which frees its memory
                    self.card.device.free(each)
        self._spaces.clear()


@frozen(slots=False)
class Job:
    """What to check or time. path: description file of the built kernel or program. plain: it as data, but of a GEMM.

    seed: fresh and secret.
    """

    problem: Problem
    path: str
    plain: str = field(default="", repr=False)
    seed: int = field(factory=lambda: secrets.randbits(64))
    rounds: int = ROUNDS

    @property
    def plan(self) -> Plan:
        plan = Plan(self.seed, rounds=self.rounds)
        return evolve(plan, launch=self.launches * plan.launch)

    @property
    def launches(self) -> int:
        """Of one call."""
        return 1 if not self.plain else len(kernels_of(self.kernel))

    @cached_property
    def kernel(self) -> Traced:
        """The kernel or program, but of a GEMM."""
        (found,) = read(json.loads(self.plain))
        return found

    def subject(self) -> Subject:
        """Raises ArgusError: E903, and E00x for a file that does not load."""
        match self.problem:
            case Gemm():
                return Product(self.problem)
            case FamilyProblem():
                kernel, asked = self.kernel, self.problem
                sizes, rules = asked.sizes_of(kernel.name), asked.inputs_of(kernel.name)
                return KernelOfFile(kernel, sizes, asked.bounds, asked.reference, rules)
            case KernelFile():
                kernel = self.kernel
                assert isinstance(kernel, Kernel)
                return KernelOfFile(kernel, self.problem.sizes, self.problem.bounds_of(kernel), self.problem.reference)
            case _:
                assert_never(self.problem)

    @contextmanager
    def candidate(self, card: GpuBench) -> Generator[Candidate]:
        """The kernel or program, loaded; the memory of its own is freed at the end."""
        path, driver = Path(self.path), card.driver
        if isinstance(self.problem, Gemm):
            yield bind_kernel(load(path, driver), PRODUCT)
            return
        made = self.kernel
        source = SizeSources(tuple(each.name for each in made.parameters), size_sources(made))
        if isinstance(made, Kernel):
            yield bind_kernel(load(path, driver), source)
            return
        with closing(ProgramCandidate(load_program(path, driver), source, card)) as program:
            yield program


def job_of(problem: Problem, kernel: Traced, path: Path) -> Job:
    """path: description file of the built kernel or program."""
    plain = "" if isinstance(problem, Gemm) else json.dumps(write([kernel]))
    return Job(problem, str(path), plain)


def check_job(job: Job) -> Generator[str, None, Caught | None]:
    """Check a kernel's results. Raises ArgusError: E405 to E409, E903."""
    yield Path(job.path).stem
    card, subject = GpuBench(the_device(), job.launches), job.subject()
    with job.candidate(card) as candidate, session(card, job.plan, subject) as opened:
        return (yield from check_results(opened, candidate))


def time_job(job: Job) -> Generator[str, None, Verdict]:
    """Measure a kernel's time. Raises ArgusError: E405 to E409, E903."""
    yield Path(job.path).stem
    card, subject = GpuBench(the_device(), job.launches), job.subject()
    with job.candidate(card) as candidate, session(card, job.plan, subject) as opened:
        return (yield from measure(opened, candidate))


def time_jobs(jobs: Mapping[str, Job], names: tuple[str, ...]) -> Generator[str, None, Batch]:
    """Time the named kernels of one problem interleaved. Raises ArgusError: E405 to E409, E903."""
    yield "the finalists"
    first, most = jobs[names[0]], max(jobs[name].launches for name in names)
    card = GpuBench(the_device(), most)
    with ExitStack() as held:
        bound = {name: held.enter_context(jobs[name].candidate(card)) for name in names}
        opened = held.enter_context(session(card, first.plan, first.subject()))
        finalists = yield from bind_finalists(opened, bound)
        return (yield from finalists.batch(names, time.sleep))
