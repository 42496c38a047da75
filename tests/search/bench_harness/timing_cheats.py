"""Cheats that take work out of the measured time, or report a shorter time."""

from __future__ import annotations

from functools import partial
from typing import Any

from attrs import define, field

from argus.search.bench_harness.bench import Call, Operand
from tests.search.bench_harness.candidates import HONEST, LAZY, Candidate
from tests.search.bench_harness.numeric_cheats import Fp8


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


class PatchedHostClock(Candidate):
    """Works late on another stream and tampers with the host clock."""

    def call(self, a: Operand, b: Operand, c: Operand) -> None:
        took = self.pace * self.device.least_of(a, b)
        self.device.functions["host"] = lambda: LAZY / HONEST * self.device.now
        self.device.launch(LAZY / HONEST * took, lambda: None)
        self.device.launch(took, lambda: self.work(a, b, c), self.device.side)
