"""Interleaved timing, on a fake GPU whose clock advances only by launches."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import pytest
from attrs import define, field

from argus.runtime.cuda.driver import Driver
from argus.runtime.gpu.timing import Regime, Stopwatch, host_microseconds, time_interleaved
from argus.runtime.monitor import Monitor

DONE = "done"
SINGLE = Regime("single", 0.0, 0.0, 0)
BURSTS = Regime("bursts", 0.0, 10.0, 2)


@define
class Imagined:
    """now: milliseconds. begun: the launches in order."""

    now: float = 0.0
    begun: list[str] = field(factory=list[str])
    held: list[float] = field(factory=list[float])
    _events: list[float] = field(factory=list[float])

    @property
    def watch(self) -> Stopwatch:
        answers = {name: getattr(self, name) for name in dir(self) if name.startswith("cu")}
        return Stopwatch(Driver(SimpleNamespace(CUresult=SimpleNamespace(CUDA_SUCCESS=DONE), **answers)), 0, self.hold)

    def hold(self, seconds: float) -> None:
        self.held.append(seconds)

    def cuEventCreate(self, _flags: int) -> tuple[str, int]:
        self._events.append(0.0)
        return DONE, len(self._events) - 1

    def cuEventRecord(self, event: int, _stream: int) -> tuple[str]:
        self._events[event] = self.now
        return (DONE,)

    def cuEventSynchronize(self, _event: int) -> tuple[str]:
        return (DONE,)

    def cuEventElapsedTime(self, begin: int, end: int) -> tuple[str, float]:
        return DONE, self._events[end] - self._events[begin]

    def cuEventDestroy(self, _event: int) -> tuple[str]:
        return (DONE,)

    def cuDriverGetVersion(self) -> tuple[str, int]:
        return DONE, 13020

    def call(self, name: str, took: float) -> None:
        self.begun.append(name)
        self.now += took


def test_each_round_begins_with_the_next_candidate_and_is_compared_with_itself() -> None:
    gpu = Imagined()
    slower = iter(range(1, 100))
    calls = {"ours": lambda: gpu.call("ours", 2.0), "peer": lambda: gpu.call("peer", 2.0 + next(slower))}
    times = time_interleaved(gpu.watch, calls, SINGLE, 4)
    assert times.median("ours") == pytest.approx(2.0)
    ratios = times.ratios("ours", "peer")
    assert [round(b - a, 6) for a, b in pairwise(ratios)] == [1.0, 1.0, 1.0]
    timed = gpu.begun[-16:]
    assert [timed[place] for place in range(0, 16, 4)] == ["ours", "peer", "ours", "peer"]


def test_a_burst_is_as_long_as_the_regime_says_and_led_by_its_own_calls() -> None:
    gpu = Imagined()
    calls = {"quick": lambda: gpu.call("quick", 0.5), "slow": lambda: gpu.call("slow", 5.0)}
    times = time_interleaved(gpu.watch, calls, BURSTS, 1)
    assert times.median("quick") == pytest.approx(0.5)
    assert times.median("slow") == pytest.approx(5.0)
    warm = 5
    assert gpu.begun.count("quick") == warm + 3 * 20
    assert gpu.begun.count("slow") == warm + 3 * 2


def test_launches_are_hidden_for_as_long_as_they_take() -> None:
    gpu = Imagined()
    gpu.watch.milliseconds(lambda: gpu.call("one", 1.0), 1)
    gpu.watch.milliseconds(lambda: gpu.call("one", 1.0), 100)
    few, many = gpu.held
    assert many - few == pytest.approx(99 * 30e-6)


def test_host_time_excludes_the_gpu() -> None:
    settled: list[int] = []
    assert host_microseconds(lambda: None, lambda: settled.append(0), 10) < 1000
    assert len(settled) == 6


def test_driver_version() -> None:
    assert Imagined().watch.driver.version() == "13.2"


def test_without_nvidia_smi_there_are_no_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with Monitor() as monitor:
        pass
    assert monitor.readings == []
    assert monitor.summary() == {}


def test_the_summary_has_minimum_median_and_maximum() -> None:
    monitor = Monitor([(1980.0, 500.0, 40.0), (1400.0, 700.0, 60.0), (1700.0, 690.0, 50.0)])
    told = monitor.summary()
    assert told["clocks.sm"] == [1400.0, 1700.0, 1980.0]
    assert told["power.draw"] == [500.0, 690.0, 700.0]
