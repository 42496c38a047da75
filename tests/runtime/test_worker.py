"""One launch in a worker process, on a fake driver; and the diagnostics of workers that fail."""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from argus.core.diagnostic import ArgusError
from argus.runtime.processes.isolated import run_worker
from argus.runtime.processes.request import Request, Result, Tensor, read_request, read_result, write_result
from argus.runtime.processes.worker import run
from tests.runtime.fake_driver import FakeDriver

POINTER = {"kind": "pointer", "shape": ["M"], "align": 4}
LAUNCH: dict[str, Any] = {
    "symbol": "double",
    "grid": ["M"],
    "threads": 32,
    "shared_bytes": 0,
    "maps": [],
    "arguments": [POINTER | {"name": "A"}, POINTER | {"name": "B"}, {"name": "M", "kind": "int"}],
    "checks": [],
}
GIVEN = np.arange(5, dtype=np.float32)


def floats(address: int, count: int) -> Any:  # noqa: ANN401 reason: ctypes arrays have no types
    return (ctypes.c_float * count).from_address(address)


def double(arguments: list[int]) -> None:
    a, b, count = arguments
    assert all(np.isnan(value) for value in floats(b, count)) or list(floats(b, count)) == [2 * x for x in GIVEN]
    floats(b, count)[:] = [2 * value for value in floats(a, count)]


@pytest.fixture
def request_in(tmp_path: Path) -> Request:
    (tmp_path / "double.json").write_text(json.dumps({"kernel": "double", "launch": LAUNCH}), encoding="utf-8")
    (tmp_path / "double.cubin").write_bytes(b"code")
    tensors = (Tensor("A", (5,), 4, read=True, written=False), Tensor("B", (5,), 4, read=False, written=True))
    GIVEN.tofile(tensors[0].file(tmp_path))
    made = Request(str(tmp_path / "double.json"), "sm_90a", tensors, {"M": 5}, repeats=3)
    made.write(tmp_path)
    return made


def test_a_request_is_read_as_it_was_written(tmp_path: Path, request_in: Request) -> None:
    assert read_request(tmp_path) == request_in


def test_the_worker_launches_and_leaves_outputs_and_times(tmp_path: Path, request_in: Request) -> None:
    run(tmp_path, FakeDriver(double, pointers=2, sizes=1).driver)

    assert read_result(tmp_path) == Result("Imagined GPU", (0.5, 0.5, 0.5))
    assert np.fromfile(request_in.tensors[1].file(tmp_path), np.float32).tolist() == [0, 2, 4, 6, 8]


@pytest.fixture
def program_in(tmp_path: Path, request_in: Request) -> Request:
    """B = 4 A in two launches of one kernel, through a workspace."""
    launches = [
        {"description": "double.json", "given": {"A": "A", "B": "W"}},
        {"description": "double.json", "given": {"A": "W", "B": "B"}},
    ]
    spaces = [{"name": "W", "dtype": "f32", "shape": ["M"]}]
    text = json.dumps({"program": "four_times", "launches": launches, "workspaces": spaces})
    (tmp_path / "four_times.json").write_text(text, encoding="utf-8")
    made = evolve(request_in, description=str(tmp_path / "four_times.json"), program=True)
    made.write(tmp_path)
    return made


def test_a_program_is_launched_whole_on_a_workspace_of_its_own(tmp_path: Path, program_in: Request) -> None:
    seen: list[bool] = []

    def twice(arguments: list[int]) -> None:
        a, b, count = arguments
        seen.append(all(np.isnan(value) for value in floats(b, count)))
        floats(b, count)[:] = [2 * value for value in floats(a, count)]

    fake = FakeDriver(twice, pointers=2, sizes=1)
    run(tmp_path, fake.driver)

    assert read_request(tmp_path) == program_in
    assert read_result(tmp_path) == Result("Imagined GPU", (0.5, 0.5, 0.5))
    assert np.fromfile(program_in.tensors[1].file(tmp_path), np.float32).tolist() == [0, 4, 8, 12, 16]
    assert seen[:2] == [True, True]  # the workspace and the output hold no data at first
    assert len(fake.launches) == 2 * (1 + program_in.repeats)


def test_a_damaged_program_is_reported(tmp_path: Path, program_in: Request) -> None:
    Path(program_in.description).write_text("{}", encoding="utf-8")

    run(tmp_path, FakeDriver().driver)

    with pytest.raises(ArgusError, match=r"the built program .* cannot be read"):
        read_result(tmp_path)


@pytest.mark.parametrize(
    ("fake", "code"),
    [
        (FakeDriver(devices=0), "E406"),
        (FakeDriver(capability={"MAJOR": 10, "MINOR": 0}), "E407"),
        (FakeDriver(fails={"cuMemAlloc": "OUT_OF_MEMORY"}), "E408"),
        (FakeDriver(fails={"cuCtxSynchronize": "ILLEGAL_ADDRESS"}), "E409"),
        (FakeDriver(fails={"cuLaunchKernelEx": "INVALID_VALUE"}), "E405"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.usefixtures("request_in")
def test_errors_are_written_as_a_diagnostic(tmp_path: Path, fake: FakeDriver, code: str) -> None:
    run(tmp_path, fake.driver)

    with pytest.raises(ArgusError) as told:
        read_result(tmp_path)
    assert told.value.diagnostic.code == code


# -- as a child ----------------------------------------------------------------------------------------------


def child(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", text)


def test_a_kernel_that_hangs_is_stopped(tmp_path: Path, request_in: Request) -> None:
    with pytest.raises(ArgusError) as told:
        run_worker(request_in, tmp_path, 0.2, child("import time; time.sleep(60)"))

    assert told.value.diagnostic.code == "E410"
    assert "within 0.2 s" in told.value.diagnostic.message


def test_a_process_that_dies_is_reported_with_its_error_output(tmp_path: Path, request_in: Request) -> None:
    with pytest.raises(ArgusError) as told:
        run_worker(request_in, tmp_path, 30, child("import os, sys; print('gone', file=sys.stderr); os.abort()"))

    diagnostic = told.value.diagnostic
    assert (diagnostic.code, diagnostic.facts) == ("E409", (("last words", "gone"),))


@pytest.mark.share(3)
def test_the_worker_itself_says_that_there_is_no_gpu(tmp_path: Path, request_in: Request) -> None:
    without = child(
        "import sys; from pathlib import Path; from argus.runtime.cuda import driver; driver.bindings = lambda: None; "
        "from argus.runtime.processes.worker import run; run(Path(sys.argv[-1]))"
    )

    with pytest.raises(ArgusError) as told:
        run_worker(request_in, tmp_path, 60, without)
    assert told.value.diagnostic.code == "E406"


def test_the_workers_result_is_returned(tmp_path: Path, request_in: Request) -> None:
    write_result(tmp_path, Result("Imagined GPU", (1.0,)))

    assert run_worker(request_in, tmp_path, 30, child("")) == Result("Imagined GPU", (1.0,))


def test_a_process_ended_by_a_signal_is_reported_with_it(tmp_path: Path, request_in: Request) -> None:
    with pytest.raises(ArgusError, match="was ended by SIGKILL") as told:
        run_worker(request_in, tmp_path, 30, child("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"))
    assert told.value.diagnostic.code == "E409"


def test_a_process_that_cannot_be_started_is_reported(tmp_path: Path, request_in: Request) -> None:
    with pytest.raises(ArgusError, match="no process could be started") as told:
        run_worker(request_in, tmp_path, 30, (str(tmp_path / "absent"),))
    assert told.value.diagnostic.code == "E408"


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"device": 1}'])
def test_a_damaged_result_counts_as_none(tmp_path: Path, request_in: Request, text: str) -> None:
    (tmp_path / "result.json").write_text(text, encoding="utf-8")
    with pytest.raises(ArgusError) as told:
        run_worker(request_in, tmp_path, 30, child(""))
    assert told.value.diagnostic.code == "E409"


@pytest.mark.parametrize("text", [None, "", "{}", "[]", '{"kernel": "double", "launch": {}}'])
def test_a_damaged_description_is_reported(tmp_path: Path, request_in: Request, text: str | None) -> None:
    description = Path(request_in.description)
    description.unlink()
    if text is not None:
        description.write_text(text, encoding="utf-8")

    run(tmp_path, FakeDriver().driver)

    with pytest.raises(ArgusError, match="cannot be read") as told:
        read_result(tmp_path)
    assert told.value.diagnostic.code == "E405"


def test_a_failure_during_timing_is_reported(tmp_path: Path, request_in: Request) -> None:
    del request_in
    run(tmp_path, FakeDriver(double, pointers=2, sizes=1, fails={"cuEventSynchronize": "LAUNCH_TIMEOUT"}).driver)
    with pytest.raises(ArgusError) as told:
        read_result(tmp_path)
    assert told.value.diagnostic.code == "E410"
