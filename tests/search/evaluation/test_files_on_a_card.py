"""A user's kernel on `GpuBench` with a fake driver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from argus.core.diagnostic import ArgusError
from argus.search.bench_harness.examine import run_to_end
from argus.search.bench_harness.verdict import Caught, Passed
from argus.search.evaluation import gpu_bench
from argus.search.evaluation.gpu_bench import check_job, job_of, time_job
from argus.search.problems.kernel_file import KernelFile
from argus.search.problems.problem import problem_of
from tests.runtime.fake_driver import Clocked
from tests.search.evaluation.test_card import TOOK, imagined
from tests.search.problems.test_files import RIGHT, WRONG, kernel_file
from tests.search.tuning.test_measure import last_row_forgotten, written

SIZES = "M=40,N=24,K=16"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clocked]:
    yield from imagined(monkeypatch)


def job(folder: Path, reference: str = RIGHT) -> gpu_bench.Job:
    problem = problem_of(str(kernel_file(folder, "sm_90a", reference)), "sm_90a", SIZES)
    assert isinstance(problem, KernelFile)
    return job_of(problem, problem.kernel("gemm"), Path(written(folder, "one")))


def test_an_honest_kernel_of_a_file_has_the_time_that_the_events_tell(fake: Clocked, tmp_path: Path) -> None:
    asked = job(tmp_path)

    assert run_to_end(check_job(asked)) is None
    verdict = run_to_end(time_job(asked))
    assert isinstance(verdict, Passed)
    assert verdict.microseconds == pytest.approx(TOOK)
    assert fake.calls.count("cuMemAlloc") - 1 == fake.calls.count("cuMemFree")  # one keeps the GPU busy


def test_a_forgotten_row_and_another_reference_are_reported(fake: Clocked, tmp_path: Path) -> None:
    assert "differ from `reference`" in str(run_to_end(check_job(job(tmp_path, WRONG))))
    fake.computes = last_row_forgotten
    wrong = run_to_end(check_job(job(tmp_path)))

    assert isinstance(wrong, Caught)
    assert wrong.why.startswith("24 of 960 elements of C were not written")


def test_a_slow_reference_does_not_reject_the_kernel(
    fake: Clocked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("argus.search.bench_harness.files.SLOWEST", 0.0)
    with pytest.raises(ArgusError) as told:
        run_to_end(check_job(job(tmp_path)))

    assert told.value.diagnostic.code == "E903"
    assert "`reference` took" in told.value.diagnostic.message
    assert fake.launches
