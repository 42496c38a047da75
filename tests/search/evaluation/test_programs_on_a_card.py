"""A program of two launches on `GpuBench` with a fake driver: the time of both, and workspaces allocated once."""

from __future__ import annotations

import ctypes
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import define, field
from ml_dtypes import bfloat16

from argus.runtime.gpu.find import open_gpu
from argus.search.bench_harness.examine import run_to_end
from argus.search.bench_harness.verdict import Caught, Passed
from argus.search.evaluation import gpu_bench
from argus.search.evaluation.gpu_bench import Job, check_job, job_of, time_job, time_jobs
from argus.search.problems.problem import problem_of
from argus.search.tuning import measure
from tests.runtime.fake_driver import Clocked

PROBLEM = problem_of("conv:2x8x16:8x1:bf16", "sm_90a")
TOOK = 400.0
SIZES = ("N", "C", "O", "Y0")
SHAPES = {"X": ("N", "C", "Y0"), "F": ("O", "C"), "Y": ("N", "O", "Y0"), "W": ("N", "C", "Y0")}
LAUNCHES = {"doubled": ("X", "F", "W"), "summed": ("W", "F", "Y")}


def at(place: int, *shape: int) -> np.ndarray[Any, Any]:
    count = int(np.prod(shape))
    return np.ctypeslib.as_array((ctypes.c_uint16 * count).from_address(place)).view(bfloat16).reshape(shape)


@define
class Card(Clocked):
    """Runs the launch that was asked for: W = 2 X, then Y = F W / 2. skips: a launch that does nothing."""

    running: str = ""
    skips: str = ""
    order: list[str] = field(factory=list[str])

    def cuLaunchKernelEx(self, *arguments: Any) -> None:  # noqa: ANN401, N802 reason: as of the fake driver
        self.running = arguments[1]
        super().cuLaunchKernelEx(*arguments)

    def work(self, arguments: list[int]) -> None:
        self.order.append(self.running)
        first, f, last, n, c, o, y = arguments
        if self.running == self.skips:
            return
        if self.running == "doubled":
            at(last, n, c, y)[:] = 2 * at(first, n, c, y).astype(np.float32)
        else:
            products = at(f, o, c).astype(np.float32) @ at(first, n, c, y).astype(np.float32)
            at(last, n, o, y)[:] = products / 2


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Iterator[Card]:
    made = Card(pointers=3, sizes=4, took=TOOK)
    made.computes, made.kernel = made.work, made.launched
    device = open_gpu(made.driver)
    monkeypatch.setattr(gpu_bench, "the_device", lambda: device)
    monkeypatch.setattr(gpu_bench, "_CLOCK", lambda: 1e-6 * made.now)
    monkeypatch.setattr(measure, "_RATE", 1.0)
    measure.scratch_memory.cache_clear()
    monkeypatch.setattr(measure, "the_device", lambda: device)
    yield made
    measure.scratch_memory.cache_clear()


def job(folder: Path) -> Job:
    """The parameters are those of a design; what is launched is the program of this file."""
    for name, tensors in LAUNCHES.items():
        arguments = [{"name": each, "kind": "pointer", "align": 2, "shape": list(SHAPES[each])} for each in tensors] + [
            {"name": each, "kind": "int"} for each in SIZES
        ]
        launch = {"grid": ["N"], "threads": 32, "shared_bytes": 0, "maps": [], "arguments": arguments}
        data = {"kernel": name, "launch": launch | {"symbol": name, "checks": []}}
        (folder / f"{name}.json").write_text(json.dumps(data), encoding="utf-8")
        (folder / f"{name}.cubin").write_bytes(b"code")
    made = {
        "schema": "argus.program/1",
        "program": "both",
        "workspaces": [{"name": "W", "dtype": "bf16", "shape": list(SHAPES["W"])}],
        "read": ["X", "F"],
        "launches": [
            {"description": f"{name}.json", "given": {each: each for each in tensors}}
            for name, tensors in LAUNCHES.items()
        ],
    }
    (folder / "both.json").write_text(json.dumps(made), encoding="utf-8")
    return job_of(PROBLEM, PROBLEM.kernel("shifted_pixels64_bk16_stages8_run8"), folder / "both.json")


def test_the_time_of_a_program_is_that_of_all_its_launches(card: Card, tmp_path: Path) -> None:
    asked = job(tmp_path)

    assert asked.launches == 3  # of the design whose parameters it has
    assert run_to_end(check_job(asked)) is None
    verdict = run_to_end(time_job(asked))
    assert isinstance(verdict, Passed), verdict
    assert verdict.microseconds == pytest.approx(2 * TOOK)
    assert set(zip(card.order[::2], card.order[1::2], strict=True)) == {("doubled", "summed")}
    assert {each[8] for each in card.launches} == {0}  # the stream
    assert card.calls.count("cuMemAlloc") - 1 == card.calls.count("cuMemFree")  # one keeps the GPU busy


def test_calls_at_the_same_sizes_share_their_workspaces(card: Card, tmp_path: Path) -> None:
    asked = job(tmp_path)
    bench = gpu_bench.GpuBench(open_gpu(card.driver))
    operands = [
        gpu_bench.Operand(bench.allocate(4096), shape) for shape in ((2, 8, 16), (8, 8), (2, 8, 16), (1, 8, 16))
    ]
    with asked.candidate(bench) as program:
        before = card.calls.count("cuMemAlloc")
        for _ in range(3):
            program(*operands[:3])
        assert card.calls.count("cuMemAlloc") == before + 1
        program(operands[3], operands[1], operands[3])
        assert card.calls.count("cuMemAlloc") == before + 2
        assert card.calls.count("cuMemFree") == 0
    assert card.calls.count("cuMemFree") == 2


@pytest.mark.parametrize(
    ("skipped", "said"), [("doubled", "elements of Y differ"), ("summed", "of Y were not written")]
)
def test_a_program_that_leaves_a_launch_out_is_caught(card: Card, tmp_path: Path, skipped: str, said: str) -> None:
    card.skips = skipped

    found = run_to_end(check_job(job(tmp_path)))
    assert isinstance(found, Caught)
    assert said in found.why


def test_programs_are_timed_together_in_the_last_round(
    card: Card, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("argus.search.bench_harness.interleaved.BATCH", 2)
    monkeypatch.setattr(time, "sleep", slept.append)
    batch = run_to_end(time_jobs({name: job(tmp_path) for name in ("one", "two")}, ("one", "two")))

    assert batch.wrong == {}
    times = [took for each in batch.times.values() for of_name in each.values() for took in of_name]
    assert times == pytest.approx([2 * TOOK] * len(times))
    assert card.calls.count("cuMemAlloc") - 1 == card.calls.count("cuMemFree")
