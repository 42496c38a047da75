"""`run` and `argus run` of a program: all its launches on a GPU, here an imagined one."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from argus.cli.main import main
from argus.core.diagnostic import ArgusError
from argus.core.ir import Program
from argus.runtime.gpu.device import Device
from argus.runtime.gpu.find import find_gpu
from argus.runtime.processes.request import Request, Result
from argus.runtime.run import RunResult, run
from argus.verifier.loader import load
from property_tests.programs import CORPUS
from tests.runtime.fake_driver import FakeDriver

SIZES = {"M": 70, "N": 24, "K": 64}
STREAMS = CORPUS / "programs" / "proved" / "stream_k.py"
commands = import_module("argus.cli.run")


def hopper() -> Device:
    return find_gpu(FakeDriver().driver)


def program(file: Path) -> Program:
    found = load(str(file))[0].program
    assert found is not None
    return found


def multiplying(request: Request, folder: Path, seconds: float, *, wrong: float = 0.0) -> Result:
    """What stands for the GPU: C = A @ B^T, with `wrong` added to its first element."""
    assert request.program
    assert seconds == 60
    described = json.loads(Path(request.description).read_text(encoding="utf-8"))
    assert [each["given"] for each in described["launches"]] == [
        {"A": "A", "B": "B", "part": "part"},
        {"part": "part", "C": "C"},
    ]
    assert [each.name for each in request.tensors if each.read] == ["A", "B"]
    assert [each.name for each in request.tensors if each.written] == ["C"]
    a, b = (matrix(folder, name, request) for name in "AB")
    out = (a.astype(np.float32) @ b.astype(np.float32).T).astype(bfloat16)
    out[0, 0] += bfloat16(wrong)
    out.tofile(folder / "C.bin")
    return Result("Imagined GPU", (2.0, 1.0, 3.0))


def matrix(folder: Path, name: str, request: Request) -> np.ndarray[Any, Any]:
    (shape,) = (tensor.shape for tensor in request.tensors if tensor.name == name)
    return np.fromfile(folder / f"{name}.bin", bfloat16).reshape(shape)


def failing(request: Request, folder: Path, seconds: float) -> Result:
    return multiplying(request, folder, seconds, wrong=9.0)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGUS_CACHE_DIR", str(tmp_path / "cache"))


def test_a_program_runs_whole_on_a_gpu_and_is_compared() -> None:
    ran = run(program(STREAMS), SIZES, gpu=hopper, on="gpu", launch=multiplying)

    assert (ran.gpu, ran.why, ran.milliseconds) == ("Imagined GPU", "", (2.0, 1.0, 3.0))
    assert set(ran.arrays) == {"C"}
    assert ran.comparison is not None
    assert (ran.comparison.right, ran.comparison.elements, ran.uncompared) == (True, 70 * 24, ())


@pytest.mark.share(12, among="runs on the command line")
def test_a_wrong_element_of_a_program_is_told_with_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def on_gpu(kernel: Program, sizes: dict[str, int], **given: Any) -> RunResult:  # noqa: ANN401 reason: passed on
        return run(kernel, sizes, gpu=hopper, launch=failing, **given)

    monkeypatch.setattr(commands, "run_kernel", on_gpu)

    assert main(["run", str(STREAMS), "--on", "gpu", "--sizes", "M=70,N=24,K=64"]) == 1
    assert "1 of 1,680 elements of `gemm_streams` differ from" in capsys.readouterr().out


def test_a_program_for_another_gpu_is_refused_where_a_gpu_is_asked_for() -> None:
    turned = program(STREAMS.parent / "turned_before.py")

    why = "this GPU is Imagined GPU (sm_90), the kernel is for gfx942"
    assert run(turned, {"M": 8, "N": 8, "K": 8}, gpu=hopper).why == why
    with pytest.raises(ArgusError) as refused:
        run(turned, gpu=hopper, on="gpu")
    assert refused.value.diagnostic.code == "E407"
