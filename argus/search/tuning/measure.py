"""Times candidates on the GPU for one shape: checks their results first, then times all of them interleaved.

The generators here run under `argus.runtime.processes.watchdog`: each yielded note names the candidate that is running
on the GPU. Results are plain data.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from itertools import cycle
from math import ceil, prod
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import field, frozen
from ml_dtypes import bfloat16

from argus.core.diagnostic import ArgusError
from argus.runtime.gpu.device import Device, Memory
from argus.runtime.gpu.find import open_gpu
from argus.runtime.gpu.launch import LoadedKernel, load
from argus.runtime.gpu.timing import REGIMES, Call, Regime, Stopwatch, time_interleaved

Shape = tuple[int, int, int]
Floats = npt.NDArray[np.float32]
BRIEF = Regime("brief", 0.0, 2.0, 1)
CLOSE = 2.0**-7
FAR = 2.0
"""Candidates slower than this multiple of the fastest, by two calls each, are not timed in bursts."""
_ELEMENT = 2
_CACHE = 128 << 20
"""Bytes of operands between two uses of one set: more than the L2 cache holds."""
_MOST_SETS = 16
_DRAWN = 4_194_301
"""Size of the pool of normal numbers; a prime, so that rows of a matrix differ."""
_SAMPLED = 16
_POISON = 0xFF
_HELD = 256 << 20
_RATE = 3.0e12
"""Upper bound of the memset rate in bytes per second, for keeping the GPU busy while launches queue up."""


@frozen
class Job:
    """What to time. paths: description files of built kernels, by configuration name."""

    shape: Shape
    paths: Mapping[str, str]
    rounds: int


@frozen
class Medians:
    """Median times in microseconds by regime and name. left_out: reason by name. wrong: names with wrong results."""

    medians: Mapping[str, Mapping[str, float]]
    left_out: Mapping[str, str] = field(factory=dict[str, str])
    wrong: tuple[str, ...] = ()

    def order(self) -> list[str]:
        """Names by ascending geometric mean over the regimes."""
        first = next(iter(self.medians.values()))
        return sorted(first, key=lambda name: geometric_mean(each[name] for each in self.medians.values()))


MeasureSteps = Generator[str, None, Medians]


def device_name() -> Generator[str, None, str]:
    """Name of the GPU. Raises ArgusError: E406 without a GPU, E407 if it does not run sm_90a code."""
    yield "the GPU"
    the_device().check_runs("sm_90a")
    return the_device().name


def measure_brief(job: Job) -> MeasureSteps:
    """Check the results of every candidate, then time it in short bursts unless two calls show that it is far slower.

    Raises ArgusError: E408, E409.
    """
    with _operands(job.shape) as operands:
        good: dict[str, Call] = {}
        left_out: dict[str, str] = {}
        wrong: list[str] = []
        for name, path in job.paths.items():
            yield name
            try:
                call = operands.calls(load_once(path))
                if operands.right(load_once(path)):
                    good[name] = call
                else:
                    wrong.append(name)
            except ArgusError as problem:
                if problem.diagnostic.code != "E405":
                    raise
                left_out[name] = str(problem)
        watch = operands.watch()
        quick: dict[str, float] = {}
        for name, call in good.items():
            yield name
            quick[name] = 1e3 * watch.milliseconds(call, 2)
        near = {name: call for name, call in good.items() if quick[name] <= FAR * min(quick.values())}
        medians = yield from _medians(operands, near, BRIEF, job.rounds)
    return Medians({BRIEF.name: {**quick, **medians}}, left_out, tuple(wrong))


def measure_thorough(job: Job) -> MeasureSteps:
    """Time a few candidates in both regimes, interleaved."""
    with _operands(job.shape) as operands:
        calls = {name: operands.calls(load_once(path)) for name, path in job.paths.items()}
        found: dict[str, Mapping[str, float]] = {}
        for regime in REGIMES:
            found[regime.name] = yield from _medians(operands, calls, regime, job.rounds)
    return Medians(found)


def _medians(
    operands: Operands, calls: Mapping[str, Call], regime: Regime, rounds: int
) -> Generator[str, None, dict[str, float]]:
    """Median times in microseconds by name."""
    if not calls:
        return {}
    yield f"{regime.name}: {', '.join(calls)}"
    times = time_interleaved(operands.watch(), calls, regime, rounds)
    return {name: 1e3 * times.median(name) for name in calls}


# -- device --------------------------------------------------------------------------------------------------


@cache
def the_device() -> Device:
    return open_gpu()


@cache
def load_once(path: str) -> LoadedKernel:
    return load(Path(path), the_device().driver)


@cache
def scratch_memory() -> Memory:
    return the_device().allocate((_HELD,), 1)


def keep_busy(device: Device, seconds: float) -> None:
    """Keep the GPU busy for at least this long by memsets."""
    for _ in range(ceil(seconds * _RATE / _HELD)):
        device.driver.fill_in_stream(scratch_memory().pointer, 0, _HELD, 0)


@frozen
class Operands:
    """Sets of A, B and C on the device with equal contents. left, right_rows: A and B in f32."""

    device: Device
    shape: Shape
    sets: Sequence[Mapping[str, Memory]]
    left: Floats
    right_rows: Floats

    @property
    def sizes(self) -> dict[str, int]:
        return dict(zip("MNK", self.shape, strict=True))

    def calls(self, kernel: LoadedKernel) -> Call:
        """A launch that rotates through the sets. Raises ArgusError (E405) if the kernel does not accept the shape."""
        ready = kernel.prepare(self.sizes)
        following = cycle([ready.bind(each) for each in self.sets])
        return lambda: next(following)()  # noqa: PLW0108 reason: another call each time

    def right(self, kernel: LoadedKernel) -> bool:
        """Whether sampled rows were written and match an f32 reference."""
        _, n, k = self.shape
        target = self.sets[0]["C"]
        target.fill(_POISON)
        kernel.prepare(self.sizes).bind(self.sets[0])()
        self.device.synchronise()
        for row, wanted in self.wanted.items():
            held = Memory(self.device.driver, target.pointer + row * n * _ELEMENT, (n,), _ELEMENT).read()
            found = held.view(bfloat16).astype(np.float32)
            if not np.all(np.abs(found - wanted) <= CLOSE * (np.abs(wanted) + k**0.5)):
                return False
        return True

    @cached_property
    def wanted(self) -> Mapping[int, Floats]:
        """Sampled rows of the reference product, by row index."""
        m = self.shape[0]
        rows = sorted({round(place * (m - 1) / max(1, _SAMPLED - 1)) for place in range(_SAMPLED)})
        return dict(zip(rows, self.left[rows] @ self.right_rows.T, strict=True))

    def watch(self) -> Stopwatch:
        return Stopwatch(self.device.driver, 0, self._hold)

    def _hold(self, seconds: float) -> None:
        keep_busy(self.device, seconds)


@contextmanager
def _operands(shape: Shape) -> Generator[Operands]:
    """Allocate operands with normal numbers; frees them at the end."""
    m, n, k = shape
    device = the_device()
    left, right = _normal(m, k, 0), _normal(n, k, 1)
    shapes = {"A": (m, k), "B": (n, k), "C": (m, n)}
    held = _ELEMENT * sum(map(prod, shapes.values()))
    taken: list[Memory] = []
    try:
        sets = [_set(device, shapes, taken) for _ in range(max(1, min(_MOST_SETS, ceil(_CACHE / max(1, held)))))]
        for each in sets:
            each["A"].write(left.view(np.uint8).reshape(-1))
            each["B"].write(right.view(np.uint8).reshape(-1))
        yield Operands(device, shape, sets, left.astype(np.float32), right.astype(np.float32))
    finally:
        for each in taken:
            with suppress(ArgusError):  # after a fault the process ends, which frees its memory
                device.free(each)


def _set(device: Device, shapes: Mapping[str, Shape | tuple[int, int]], taken: list[Memory]) -> dict[str, Memory]:
    found: dict[str, Memory] = {}
    for name, extents in shapes.items():
        found[name] = device.allocate(extents, _ELEMENT)
        taken.append(found[name])
    return found


def _normal(rows: int, columns: int, seed: int) -> npt.NDArray[Any]:
    """A bfloat16 matrix of normal numbers."""
    drawn = np.random.default_rng(seed).standard_normal(min(_DRAWN, rows * columns), np.float32).astype(bfloat16)
    return np.resize(drawn, (rows, columns))
