"""Timing with a fake driver: checks, left-out candidates and freed memory."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import define, field
from ml_dtypes import bfloat16

from argus.core.diagnostic import ArgusError
from argus.runtime.gpu import timing
from argus.runtime.gpu.find import open_gpu
from argus.runtime.gpu.timing import Call
from argus.search.tuning import measure
from argus.search.tuning.measure import FAR, Job, MeasureSteps, Medians, Operands, measure_brief, measure_thorough
from tests.runtime.fake_driver import FakeDriver

POINTER = {"kind": "pointer", "align": 2}
LAUNCH: dict[str, Any] = {
    "grid": ["M"],
    "threads": 32,
    "shared_bytes": 0,
    "maps": [],
    "arguments": [
        *(POINTER | {"name": name, "shape": list(shape)} for name, shape in (("A", "MK"), ("B", "NK"), ("C", "MN"))),
        *({"name": name, "kind": "int"} for name in "MNK"),
    ],
}
SHAPE = (40, 24, 16)


def at(place: int, rows: int, columns: int) -> np.ndarray[Any, Any]:
    held = np.ctypeslib.as_array((ctypes.c_uint16 * (rows * columns)).from_address(place))
    return held.view(bfloat16).reshape(rows, columns)


def multiply(arguments: list[int]) -> None:
    a, b, c, m, n, k = arguments
    at(c, m, n)[:] = (at(a, m, k).astype(np.float32) @ at(b, n, k).astype(np.float32).T).astype(bfloat16)


def last_row_forgotten(arguments: list[int]) -> None:
    a, b, c, m, n, k = arguments
    at(c, m, n)[:-1] = (at(a, m, k).astype(np.float32) @ at(b, n, k).astype(np.float32).T).astype(bfloat16)[:-1]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    made = FakeDriver(multiply, pointers=3, sizes=3)
    monkeypatch.setattr(measure, "open_gpu", lambda: open_gpu(made.driver))
    monkeypatch.setattr(timing, "_LAUNCH", 1e-9)
    for each in (measure.the_device, measure.load_once, measure.scratch_memory):
        each.cache_clear()
    yield made
    for each in (measure.the_device, measure.load_once, measure.scratch_memory):
        each.cache_clear()


def written(folder: Path, name: str, *checks: str) -> str:
    data = LAUNCH | {"symbol": name, "checks": [{"condition": each, "why": "a test"} for each in checks]}
    (folder / f"{name}.json").write_text(json.dumps({"kernel": name, "launch": data}), encoding="utf-8")
    (folder / f"{name}.cubin").write_bytes(b"code")
    return str(folder / f"{name}.json")


def finished(going: MeasureSteps) -> tuple[list[str], Medians]:
    notes: list[str] = []
    while True:
        try:
            notes.append(next(going))
        except StopIteration as done:
            return notes, done.value


def test_candidates_are_checked_then_timed_and_those_that_do_not_fit_left_out(fake: FakeDriver, tmp_path: Path) -> None:
    paths = {"one": written(tmp_path, "one"), "odd": written(tmp_path, "odd", "M % 64 == 0")}

    notes, timed = finished(measure_brief(Job(SHAPE, paths, 2)))

    assert notes == ["one", "odd", "one", "brief: one"]
    assert timed.medians["brief"].keys() == {"one"}
    assert "M % 64 == 0" in timed.left_out["odd"]
    assert timed.wrong == ()
    # Sixteen sets of three tensors.
    assert fake.calls.count("cuMemFree") == 48


def test_candidates_far_slower_by_two_calls_are_not_timed_in_bursts(
    fake: FakeDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = {name: written(tmp_path, name) for name in ("slow", "close", "fast")}
    watch = Told([FAR + 0.1, FAR, 1.0])

    def told(_: Operands) -> Told:
        return watch

    monkeypatch.setattr(Operands, "watch", told)

    notes, timed = finished(measure_brief(Job(SHAPE, paths, 2)))

    assert notes[-1] == "brief: close, fast"
    assert timed.order() == ["fast", "close", "slow"]
    assert {name: round(took) for name, took in timed.medians["brief"].items()} == {
        "slow": 2100,
        "close": 2000,
        "fast": 1000,
    }
    assert [launch[0] for launch in fake.launches].count("slow") == 1


@define
class Told:
    """Fake milliseconds by candidate, in order of first use."""

    given: list[float]
    seen: dict[Call, float] = field(factory=dict[Call, float])

    def milliseconds(self, call: Call, _calls: int = 1) -> float:
        return self.seen.setdefault(call, self.given[min(len(self.seen), len(self.given) - 1)])


def test_candidates_with_wrong_results_are_reported_and_not_timed(fake: FakeDriver, tmp_path: Path) -> None:
    fake.kernel = last_row_forgotten

    _, timed = finished(measure_brief(Job(SHAPE, {"one": written(tmp_path, "one")}, 2)))

    assert timed.wrong == ("one",)
    assert timed.medians == {"brief": {}}


def test_finalists_are_timed_in_both_regimes(fake: FakeDriver, tmp_path: Path) -> None:
    paths = {name: written(tmp_path, name) for name in ("one", "two")}

    _, timed = finished(measure_thorough(Job(SHAPE, paths, 2)))

    assert {regime: set(each) for regime, each in timed.medians.items()} == {
        "sustained": {"one", "two"},
        "duty-cycled": {"one", "two"},
    }
    assert "cuMemsetD8Async" in fake.calls


def test_memory_is_freed_when_a_kernel_fails(fake: FakeDriver, tmp_path: Path) -> None:
    fake.fails["cuCtxSynchronize"] = "ILLEGAL_ADDRESS"

    with pytest.raises(ArgusError) as failed:
        finished(measure_brief(Job(SHAPE, {"one": written(tmp_path, "one")}, 2)))
    assert failed.value.diagnostic.code == "E409"
    assert fake.calls.count("cuMemFree") == 48


def test_order_is_that_of_all_regimes_together() -> None:
    timed = Medians({"sustained": {"a": 1.0, "b": 2.0, "c": 9.0}, "duty-cycled": {"a": 4.0, "b": 1.0, "c": 9.0}})
    assert timed.order() == ["b", "a", "c"]
