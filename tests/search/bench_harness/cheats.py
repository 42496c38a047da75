"""Candidates on the simulated device: honest ones and cheats."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import define, field
from ml_dtypes import bfloat16, float8_e4m3fn

from argus.search.bench_harness.bench import Call, Operand
from argus.search.bench_harness.products import random_operands
from argus.testing.simulated import Simulated

Halves = npt.NDArray[Any]
SHAPE = (48, 48, 2304)
"""Sizes of the problem."""
DEEP = 2048
"""Least K of products that count as deep."""
HONEST, LAZY = 2.0, 1.2
"""Times relative to the device's lower bound: of an honest candidate and of a cheat."""


Epilogue = Callable[[npt.NDArray[np.float32]], npt.NDArray[np.float32]]


def same(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return values


@define
class Candidate:
    """An honest product. pace: time over the lower bound. after: applied to sums before rounding."""

    device: Simulated
    pace: float = HONEST
    after: Epilogue = same

    def product(self, a: Halves, b: Halves) -> Halves:
        return self.after(a.astype(np.float32) @ b.astype(np.float32).T).astype(bfloat16)

    def __call__(self, a: Operand, b: Operand, c: Operand) -> Call:
        return lambda: self.call(a, b, c)

    def call(self, a: Operand, b: Operand, c: Operand) -> None:
        self.launch(a, b, lambda: self.work(a, b, c))

    def launch(self, a: Operand, b: Operand, work: Callable[[], None], share: float = 1.0) -> None:
        self.device.launch(share * self.pace * self.device.least_of(a, b), work)

    def work(self, a: Operand, b: Operand, c: Operand) -> None:
        self.device.matrix(c)[:] = self.product(self.device.matrix(a), self.device.matrix(b))

    def all_of(self, calls: list[tuple[Operand, Operand, Operand]]) -> None:
        for each in calls:
            self.work(*each)


@define
class Stale(Candidate):
    """Writes nothing if the operands equal those of the previous call, as C should still contain the product."""

    seen: dict[int, tuple[bytes, bytes]] = field(factory=dict[int, tuple[bytes, bytes]])

    def work(self, a: Operand, b: Operand, c: Operand) -> None:
        now = self.device.matrix(a).tobytes(), self.device.matrix(b).tobytes()
        if self.seen.get(c.address) != now:
            super().work(a, b, c)
        self.seen[c.address] = now


class LastRowsSkipped(Candidate):
    """Computes full tiles of 16 rows only."""

    def work(self, a: Operand, b: Operand, c: Operand) -> None:
        whole = a.shape[0] // 16 * 16
        self.device.matrix(c)[:whole] = self.product(self.device.matrix(a)[:whole], self.device.matrix(b))


class TailOfKSkipped(Candidate):
    """Computes full tiles of 64 columns only."""

    def work(self, a: Operand, b: Operand, c: Operand) -> None:
        whole = a.shape[1] // 64 * 64
        self.device.matrix(c)[:] = self.product(self.device.matrix(a)[:, :whole], self.device.matrix(b)[:, :whole])


class ZerosDetected(Candidate):
    """Returns zeros if the first row is all zeros."""

    def work(self, a: Operand, b: Operand, c: Operand) -> None:
        if self.device.matrix(a)[0].any():
            super().work(a, b, c)
        else:
            self.device.matrix(c)[:] = 0


class NormalNumbersExpected(Candidate):
    """Clamps inputs to the range of normal random numbers."""

    def work(self, a: Operand, b: Operand, c: Operand) -> None:
        left, right = (np.clip(self.device.matrix(each).astype(np.float32), -16, 16) for each in (a, b))
        self.device.matrix(c)[:] = self.product(left, right)


class Fp8(Candidate):
    """Multiplies 8-bit roundings of the inputs."""

    def work(self, a: Operand, b: Operand, c: Operand) -> None:
        left, right = (self.device.matrix(each).astype(float8_e4m3fn) for each in (a, b))
        self.device.matrix(c)[:] = self.product(left, right)


class SumsInHalfPrecision(Candidate):
    """Accumulates parts of a deep product in bfloat16."""

    def work(self, a: Operand, b: Operand, c: Operand) -> None:
        left, right = map(self.device.matrix, (a, b))
        if a.shape[1] < DEEP:
            super().work(a, b, c)
            return
        total: Halves = np.zeros(c.shape, bfloat16)
        for start in range(0, a.shape[1], 1152):
            one, other = (each[:, start : start + 1152].astype(np.float32) for each in (left, right))
            part: Halves = (one @ other.T).astype(bfloat16)
            total = np.add(total, part)
        whole: npt.NDArray[np.float32] = total.astype(np.float32)
        self.device.matrix(c)[:] = self.after(whole).astype(bfloat16)


class Truncated(Candidate):
    """Truncates results of a deep product instead of rounding, except the largest."""

    def work(self, a: Operand, b: Operand, c: Operand) -> None:
        if a.shape[1] < DEEP:
            super().work(a, b, c)
            return
        exact = self.after(self.device.matrix(a).astype(np.float32) @ self.device.matrix(b).astype(np.float32).T)
        cut = (exact.view(np.uint32) >> 16).astype(np.uint16).view(bfloat16)
        self.device.matrix(c)[:] = np.where(np.abs(exact) < 64, cut, exact.astype(bfloat16))


@define
class Remembered(Candidate):
    """Caches a result per key and copies it when the key recurs."""

    results: dict[Any, Halves] = field(factory=dict[Any, Halves])

    def key(self, a: Operand, b: Operand, c: Operand) -> object:
        return a.address, b.address, c.address, c.shape, a.shape

    def call(self, a: Operand, b: Operand, c: Operand) -> None:
        share = LAZY / HONEST if self.key(a, b, c) in self.results else 1.0
        self.launch(a, b, lambda: self.work(a, b, c), share)

    def work(self, a: Operand, b: Operand, c: Operand) -> None:
        key = self.key(a, b, c)
        if key not in self.results:
            super().work(a, b, c)
            self.results[key] = self.device.matrix(c).copy()
        self.device.matrix(c)[:] = self.results[key]


class RememberedByPointer(Remembered):
    """Caches by address."""


class RememberedByShape(Remembered):
    """Caches by shape."""

    def key(self, a: Operand, b: Operand, c: Operand) -> object:
        return a.shape, b.shape, c.shape


@define
class FirstAddresses(Candidate):
    """Replays its first call with the same operands."""

    first: dict[Any, tuple[Operand, Operand, Operand]] = field(factory=dict[Any, Any])

    def call(self, a: Operand, b: Operand, c: Operand) -> None:
        used = self.first.setdefault((a.shape, c.shape), (a, b, c))
        self.launch(a, b, lambda: self.work(*used))


class OtherStream(Candidate):
    """Runs half of the time on an unsynchronised stream."""

    def call(self, a: Operand, b: Operand, c: Operand) -> None:
        took = self.pace * self.device.least_of(a, b)
        self.device.launch(LAZY / HONEST * took, lambda: None)
        self.device.launch(took, lambda: self.work(a, b, c), self.device.side)


@define
class Deferred(Candidate):
    """Defers the work of a call to the next one."""

    waiting: list[tuple[Operand, Operand, Operand]] = field(factory=list[Any])

    def call(self, a: Operand, b: Operand, c: Operand) -> None:
        before, self.waiting = self.waiting, [(a, b, c)]
        self.launch(a, b, partial(self.all_of, before))


@define
class UntilItIsRead(Candidate):
    """Replaces the memory read function and does the work there."""

    waiting: list[tuple[Operand, Operand, Operand]] = field(factory=list[Any])

    def __attrs_post_init__(self) -> None:
        self.device.functions["late"] = self.device.functions["read"]

    def call(self, a: Operand, b: Operand, c: Operand) -> None:
        self.waiting.append((a, b, c))
        self.device.functions["read"] = self.read
        self.launch(a, b, lambda: None, LAZY / HONEST)

    def read(self, address: int, size: int) -> object:
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            self.work(*each)
        return self.device.functions["late"](address, size)


def shortened(first: float, last: float) -> float:
    return LAZY / HONEST * (last - first)


class PatchedEvents(Candidate):
    """Tampers with events to report half the time."""

    def call(self, a: Operand, b: Operand, c: Operand) -> None:
        self.device.functions["between"] = shortened
        super().call(a, b, c)


class PatchedClocks(PatchedEvents):
    """Tampers with both clocks to report half the time."""

    def call(self, a: Operand, b: Operand, c: Operand) -> None:
        self.device.functions["host"] = lambda: LAZY / HONEST * self.device.now
        super().call(a, b, c)


class KnownSeed(Candidate):
    """Writes the product of inputs from a known seed."""

    def work(self, a: Operand, b: Operand, c: Operand) -> None:
        if c.shape == SHAPE[:2]:
            known = random_operands(np.random.default_rng(0), (*SHAPE[:2], a.shape[1]))
            self.device.matrix(c)[:] = self.product(*known)
        else:
            super().work(a, b, c)

    def call(self, a: Operand, b: Operand, c: Operand) -> None:
        self.launch(a, b, lambda: self.work(a, b, c), LAZY / HONEST)


class ReferenceFound(Candidate):
    """Searches memory for an output whose first row is right."""

    def work(self, a: Operand, b: Operand, c: Operand) -> None:
        left, right, target = map(self.device.matrix, (a, b, c))
        wanted = self.product(left[:1], right)
        target[:] = 0
        for address, size in self.device.taken.items():
            if size == c.bytes:
                held = self.device.matrix(Operand(address, c.shape))
                if np.allclose(held[:1].astype(np.float32), wanted.astype(np.float32), rtol=0.02, atol=0.1):
                    target[:] = held


class OutsideOfItsOutput(Candidate):
    """Writes one row beyond the output."""

    def work(self, a: Operand, b: Operand, c: Operand) -> None:
        super().work(a, b, c)
        self.device.matrix(Operand(c.address + c.bytes, (1, c.shape[1])))[:] = 1


class ScratchInItsInput(Candidate):
    """Overwrites A with zeros to make its next product easy."""

    def work(self, a: Operand, b: Operand, c: Operand) -> None:
        super().work(a, b, c)
        self.device.matrix(a)[:] = 0


class OnlyCheckedShapes(Candidate):
    """Works for small shapes only, expecting that only these are checked."""

    def work(self, a: Operand, b: Operand, c: Operand) -> None:
        if a.shape[1] < DEEP:
            super().work(a, b, c)
            return
        half = a.shape[0] // 2
        self.device.matrix(c)[:half] = self.product(self.device.matrix(a)[:half], self.device.matrix(b))


@define
class IdleUnderTiming(Candidate):
    """Skips rows when called twice without synchronisation."""

    pending: int = 0

    def call(self, a: Operand, b: Operand, c: Operand) -> None:
        timed = bool(self.device.main.pending) or self.device.main.free > self.device.now + 1
        share = LAZY / HONEST if timed else 1.0
        rows = a.shape[0] // 2 if timed else a.shape[0]
        self.launch(a, b, lambda: self.some(a, b, c, rows), share)

    def some(self, a: Operand, b: Operand, c: Operand, rows: int) -> None:
        self.device.matrix(c)[:rows] = self.product(self.device.matrix(a)[:rows], self.device.matrix(b))


class PoisonReturned(Candidate):
    """Writes NaN, which passes naive comparisons."""

    def work(self, a: Operand, b: Operand, c: Operand) -> None:
        del a, b
        self.device.matrix(c)[:] = np.nan


class CornerEstimated(Candidate):
    """One slightly wrong element."""

    def work(self, a: Operand, b: Operand, c: Operand) -> None:
        super().work(a, b, c)
        if a.shape[1] >= DEEP:
            corner = self.device.matrix(c)[-1:, -1:]
            corner[:] = corner.astype(np.float32) + 1.5


@define
class FirstOfABurst(Candidate):
    """The first call of a burst does the work for all bound operands; other calls do almost nothing."""

    bound: list[tuple[Operand, Operand, Operand]] = field(factory=list[Any])

    def __call__(self, a: Operand, b: Operand, c: Operand) -> Call:
        self.bound.append((a, b, c))
        return lambda: self.call(a, b, c)

    def call(self, a: Operand, b: Operand, c: Operand) -> None:
        alone = not self.device.main.pending
        peers = [each for each in self.bound if each[0].shape == a.shape and each[2].shape == c.shape]
        if alone:
            self.launch(a, b, partial(self.all_of, peers), 3.0)
        else:
            self.launch(a, b, lambda: None, LAZY / HONEST)


class FasterThanPhysics(Candidate):
    """Right results faster than possible."""

    def call(self, a: Operand, b: Operand, c: Operand) -> None:
        self.launch(a, b, lambda: self.work(a, b, c), 0.3)


@define
class AllButTheLastDropped(Candidate):
    """Of consecutive launches, only the last one works."""

    latest: int = 0

    def call(self, a: Operand, b: Operand, c: Operand) -> None:
        self.latest += 1
        self.launch(a, b, partial(self.unless_followed, self.latest, a, b, c), LAZY / HONEST)

    def unless_followed(self, number: int, a: Operand, b: Operand, c: Operand) -> None:
        if number == self.latest:
            self.work(a, b, c)


class CoarseUnderTiming(Candidate):
    """Multiplies 8-bit roundings when called twice without synchronisation."""

    def call(self, a: Operand, b: Operand, c: Operand) -> None:
        timed = bool(self.device.main.pending) or self.device.main.free > self.device.now + 1
        work = partial(Fp8.work, Fp8(self.device), a, b, c) if timed else partial(self.work, a, b, c)
        self.launch(a, b, work, LAZY / HONEST if timed else 1.0)


@define
class WorkedWhenBound(Candidate):
    """Multiplies when it is bound, and copies the result when called."""

    def __call__(self, a: Operand, b: Operand, c: Operand) -> Call:
        ready = self.product(self.device.matrix(a), self.device.matrix(b))
        return lambda: self.launch(a, b, partial(self.copied, ready, c), LAZY / HONEST)

    def copied(self, ready: Halves, c: Operand) -> None:
        self.device.matrix(c)[:] = ready


@define
class EachFifthLeftOut(Candidate):
    """Right in most calls only."""

    calls: int = 0

    def work(self, a: Operand, b: Operand, c: Operand) -> None:
        self.calls += 1
        if self.calls % 5:
            super().work(a, b, c)


class PatchedHostClock(Candidate):
    """Works late on another stream and tampers with the host clock."""

    def call(self, a: Operand, b: Operand, c: Operand) -> None:
        took = self.pace * self.device.least_of(a, b)
        self.device.functions["host"] = lambda: LAZY / HONEST * self.device.now
        self.device.launch(LAZY / HONEST * took, lambda: None)
        self.device.launch(took, lambda: self.work(a, b, c), self.device.side)
