"""`GpuBench` on a fake driver: a correct kernel passes, one that skips a row does not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from argus.core.diagnostic import ArgusError
from argus.runtime.gpu.find import open_gpu
from argus.runtime.gpu.launch import load
from argus.search.bench_harness import interleaved
from argus.search.bench_harness.examine import run_to_end
from argus.search.bench_harness.verdict import Caught, Passed, Verdict
from argus.search.evaluation import gpu_bench
from argus.search.evaluation.gpu_bench import GpuBench, Job, check_job, time_job, time_jobs
from argus.search.problems.problem import Gemm
from argus.search.tuning import measure
from tests.runtime.fake_driver import Clocked
from tests.search.tuning.test_measure import last_row_forgotten, multiply, written

PROBLEM = Gemm(40, 24, 16, "bf16", "sm_90a")
TOOK = 400.0


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clocked]:
    yield from imagined(monkeypatch)


def imagined(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clocked]:
    """A fake GPU that multiplies matrices."""
    made = Clocked(pointers=3, sizes=3, took=TOOK, computes=multiply)
    made.kernel = made.launched
    device = open_gpu(made.driver)
    monkeypatch.setattr(gpu_bench, "the_device", lambda: device)
    monkeypatch.setattr(gpu_bench, "_CLOCK", lambda: 1e-6 * made.now)
    monkeypatch.setattr(measure, "_RATE", 1.0)
    measure.scratch_memory.cache_clear()
    monkeypatch.setattr(measure, "the_device", lambda: device)
    yield made
    measure.scratch_memory.cache_clear()


def found(folder: Path, name: str = "one", *checks: str) -> tuple[Caught | None, Verdict | None]:
    """Results of both jobs; wrong results are not timed."""
    job = Job(PROBLEM, written(folder, name, *checks), seed=3, rounds=1)
    wrong = run_to_end(check_job(job))
    return (wrong, None) if wrong is not None else (None, run_to_end(time_job(job)))


def test_an_honest_kernel_has_the_time_that_the_events_tell(fake: Clocked, tmp_path: Path) -> None:
    wrong, verdict = found(tmp_path)
    assert wrong is None
    assert isinstance(verdict, Passed)
    assert verdict.microseconds == pytest.approx(TOOK)
    assert fake.calls.count("cuMemAlloc") - 1 == fake.calls.count("cuMemFree")  # one keeps the GPU busy


def test_a_forgotten_row_is_reported(fake: Clocked, tmp_path: Path) -> None:
    fake.computes = last_row_forgotten
    wrong, _ = found(tmp_path)
    assert wrong is not None
    assert wrong.check == "numbers"
    assert "24 of 960 elements of C were not written" in wrong.why


def test_events_that_tell_a_tenth_are_caught(fake: Clocked, tmp_path: Path) -> None:
    fake.share = 0.1
    _, verdict = found(tmp_path)
    assert isinstance(verdict, Caught)
    assert verdict.check == "clocks"
    assert verdict.outcome == "cheat"


def test_a_shape_that_a_kernel_declines_is_left_out_unless_it_is_the_problem(fake: Clocked, tmp_path: Path) -> None:
    wrong, verdict = found(tmp_path, "some", "M % 40 == 0")
    assert wrong is None
    assert isinstance(verdict, Passed)
    with pytest.raises(ArgusError) as refused:
        found(tmp_path, "none", "M % 64 == 0")
    assert refused.value.diagnostic.code == "E405"
    assert fake.launches


def test_a_replaced_clock_is_seen(fake: Clocked, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = GpuBench(open_gpu(fake.driver))
    before = bench.instruments()
    assert before == bench.instruments()
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
    assert before != bench.instruments()


def test_the_stream_of_calls_is_waited_for_alone(fake: Clocked) -> None:
    GpuBench(open_gpu(fake.driver)).synchronise(everything=False)
    assert "cuEventSynchronize" in fake.calls
    assert "cuCtxSynchronize" not in fake.calls


def test_a_launch_is_on_the_stream_that_is_asked_for(fake: Clocked, tmp_path: Path) -> None:
    bench = GpuBench(open_gpu(fake.driver))
    held = [gpu_bench.Operand(bench.allocate(2 * 64), (8, 8)) for _ in range(3)]
    gpu_bench.bind_kernel(load(Path(written(tmp_path, "one")), bench.driver), gpu_bench.PRODUCT, stream=7)(*held)()
    assert fake.launches[0][8] == 7


def test_finalists_are_timed_in_both_regimes(fake: Clocked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interleaved, "BATCH", 2)
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    jobs = {name: Job(PROBLEM, written(tmp_path, name), seed=3) for name in ("one", "two")}
    batch = run_to_end(time_jobs(jobs, ("two", "one")))

    assert batch.wrong == {}
    assert {regime: list(by_name) for regime, by_name in batch.times.items()} == {
        "sustained": ["two", "one"],
        "duty-cycled": ["two", "one"],
    }
    for by_name in batch.times.values():
        assert [time for each in by_name.values() for time in each] == pytest.approx([TOOK] * 4)
    fake.computes = last_row_forgotten
    assert list(run_to_end(time_jobs(jobs, ("one", "two"))).wrong) == ["one", "two"]
