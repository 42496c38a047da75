"""`run` and `argus run` without a GPU: in the interpreter, and with a fake GPU."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from argus.cli.main import main
from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.kernels.gemm import gemm
from argus.runtime.gpu.device import Device
from argus.runtime.gpu.driver import no_gpu
from argus.runtime.gpu.find import find_gpu
from argus.runtime.processes.request import Request, Result
from argus.runtime.run import MOST_WORK, On, run
from property_tests.programs import CORPUS, templates
from tests.runtime.fake_driver import FakeDriver

SIZES = {"M": 33, "N": 20, "K": 41}
module = import_module("argus.runtime.run")
commands = import_module("argus.cli.run")
Captured = pytest.CaptureFixture[str]
Launch = Callable[[Request, Path, float], Result]


def hopper() -> Device:
    return find_gpu(FakeDriver().driver)


def ampere() -> Device:
    return find_gpu(FakeDriver(capability={"MAJOR": 8, "MINOR": 0}).driver)


def absent() -> Device:
    raise no_gpu("the driver sees none")


def multiplying(wrong: float = 0.0) -> Launch:
    """What stands for the GPU: C = A @ B^T, with `wrong` added to its first element."""

    def launch(request: Request, folder: Path, seconds: float) -> Result:
        assert Path(request.description).with_suffix(".cubin").is_file()
        assert seconds == 60
        a, b = (read(folder, name, request) for name in "AB")
        out = (a.astype(np.float32) @ b.astype(np.float32).T).astype(bfloat16)
        out[0, 0] += bfloat16(wrong)
        out.tofile(folder / "C.bin")
        return Result("Imagined GPU", (2.0, 1.0, 3.0))

    return launch


def read(folder: Path, name: str, request: Request) -> np.ndarray[Any, Any]:
    (shape,) = (tensor.shape for tensor in request.tensors if tensor.name == name)
    return np.fromfile(folder / f"{name}.bin", bfloat16).reshape(shape)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGUS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def narrow() -> Kernel:
    return gemm.trace("narrow")


# -- where it runs -------------------------------------------------------------------------------------------


def test_on_a_gpu_the_outputs_are_compared_and_launches_timed(narrow: Kernel) -> None:
    ran = run(narrow, SIZES, gpu=hopper, launch=multiplying())

    assert (ran.gpu, ran.why, ran.milliseconds) == ("Imagined GPU", "", (2.0, 1.0, 3.0))
    assert ran.comparison is not None
    assert (ran.comparison.right, ran.comparison.elements) == (True, 33 * 20)


def test_a_wrong_element_is_counted(narrow: Kernel) -> None:
    ran = run(narrow, SIZES, gpu=hopper, launch=multiplying(wrong=9.0))

    assert ran.comparison is not None
    assert ran.comparison.outside == 1


@pytest.mark.parametrize(
    ("gpu", "on", "why"),
    [
        (absent, "auto", "no GPU to run on: the driver sees none"),
        (ampere, "auto", "this GPU is Imagined GPU (sm_80), the kernel is for sm_90a"),
        (hopper, "interpreter", "as asked"),
    ],
)
def test_without_a_gpu_it_is_interpreted_with_the_reason(
    narrow: Kernel, gpu: Callable[[], Device], on: On, why: str
) -> None:
    ran = run(narrow, SIZES, gpu=gpu, on=on)

    assert (ran.gpu, ran.why) == ("", why)
    assert ran.comparison is not None
    assert ran.comparison.right


@pytest.mark.parametrize(("gpu", "code"), [(absent, "E406"), (ampere, "E407")])
def test_a_required_gpu_must_exist(narrow: Kernel, gpu: Callable[[], Device], code: str) -> None:
    with pytest.raises(ArgusError) as refused:
        run(narrow, SIZES, gpu=gpu, on="gpu")
    assert refused.value.diagnostic.code == code


def test_code_for_another_gpu_is_interpreted_unless_a_gpu_is_asked_for() -> None:
    cdna = gemm.trace("cdna3")

    why = "this GPU is Imagined GPU (sm_90), the kernel is for gfx942"
    assert run(cdna, {"M": 8, "N": 8, "K": 8}, gpu=hopper).why == why
    with pytest.raises(ArgusError) as refused:
        run(cdna, gpu=hopper, on="gpu")
    assert refused.value.diagnostic.code == "E407"


def test_a_seed_repeats_a_run(narrow: Kernel) -> None:
    first, again, other = (run(narrow, SIZES, seed=seed, on="interpreter").arrays["C"] for seed in (1, 1, 2))

    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


# -- what goes wrong -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "code"),
    [({"Q": 3}, "E701"), ({"K": 0}, "E402"), ({"M": 1 << 11, "N": 1 << 11, "K": MOST_WORK >> 21}, "E411")],
)
def test_bad_sizes_are_refused(narrow: Kernel, sizes: dict[str, int], code: str) -> None:
    with pytest.raises(ArgusError) as refused:
        run(narrow, sizes, on="interpreter")
    assert refused.value.diagnostic.code == code


def test_a_machine_without_room_for_the_inputs_says_so(narrow: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_given: object) -> None:
        raise MemoryError

    monkeypatch.setattr(module, "_contents", full)

    with pytest.raises(ArgusError) as refused:
        run(narrow, SIZES, on="interpreter")
    assert refused.value.diagnostic.code == "E408"


def test_a_disk_without_room_for_the_tensors_says_so(narrow: Kernel) -> None:
    def full(_request: Request, _folder: Path, _seconds: float) -> Result:
        raise OSError(28, "No space left on device")

    with pytest.raises(ArgusError) as refused:
        run(narrow, SIZES, gpu=hopper, launch=full)
    assert refused.value.diagnostic.code == "E302"


# -- the command ---------------------------------------------------------------------------------------------

NARROW = ["run", "argus.kernels.gemm:gemm_narrow", "--sizes", "M=33,N=20,K=41"]
HOPPER = "argus.kernels.gemm"


def test_the_command_prints_device_result_and_error(capsys: Captured) -> None:
    assert main([*NARROW, "--on", "interpreter"]) == 0

    out = capsys.readouterr().out
    assert out.startswith("gemm_narrow (sm_90a): right, in the interpreter (as asked)\n")
    assert "M = 33, K = 41, N = 20; inputs from seed 0" in out
    assert "660 elements with the sum over K of A * B in float64" in out


def test_the_document_has_the_run(capsys: Captured) -> None:
    assert main([*NARROW, "--on", "interpreter", "--json"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["exit_code"], found["diagnostics"]) == ("argus.run/1", 0, [])
    assert found["run"]["sizes"] == SIZES
    assert found["run"]["comparison"]["outside"] == 0


@pytest.mark.share(12, among="runs on the command line")
def test_a_wrong_result_ends_with_code_1(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    def wrong(kernel: Kernel, sizes: dict[str, int], **_named: object) -> object:
        return run(kernel, sizes, gpu=hopper, launch=multiplying(wrong=9.0))

    monkeypatch.setattr(commands, "run_kernel", wrong)

    assert main(NARROW) == 1
    out = capsys.readouterr().out
    assert "error[E412]: 1 of 660 elements of `gemm_narrow` differ" in out
    assert "gemm_narrow (sm_90a): wrong, on the GPU Imagined GPU" in out
    assert "2 ms, the median of 3 launches (1 to 3)" in out


def test_a_kernel_with_incomplete_claims_is_run_but_not_compared(tmp_path: Path, capsys: Captured) -> None:
    text = (
        "from argus.language import *\n"
        "@kernel(target=gfx942, threads=64)\n"
        'def double(A: Tensor["M N", f32], B: Tensor["M N", f32]):\n'
        "    m, n = block_id((ceil_div(A.shape[0], 16), ceil_div(A.shape[1], 16)))\n"
        "    r = registers(f32, spread((16, 16), threads=64, vector=1))\n"
        "    copy(A.tile((16, 16), (m, n)), r, via=global_load, edge=0)\n"
        "    vmem.wait(0)\n"
        "    copy(r + r, B.tile((16, 16), (m, n)), edge=0)\n"
    )
    (tmp_path / "double.py").write_text(text, encoding="utf-8")

    assert main(["run", "double.py", "--on", "interpreter", "--sizes", "M=5"]) == 2
    out = capsys.readouterr().out
    assert out.startswith("double (gfx942): not compared")
    assert "verdict         the kernel is proved, but no assertion determines B" in out
    assert "M = 5, N = 256" in out


@pytest.mark.share(12, among="runs on the command line")
def test_an_instance_is_chosen_by_name_or_else_the_first(capsys: Captured) -> None:
    assert main(["run", HOPPER, "--config", "small", "--on", "interpreter"]) == 0
    assert capsys.readouterr().out.startswith("gemm_small ")

    assert main(["run", f"{HOPPER}:gemm", "--on", "interpreter", "--sizes", "M=8,N=8,K=8"]) == 0
    assert capsys.readouterr().out.startswith("gemm_cdna3 ")


@pytest.mark.share(12)
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([HOPPER, "--config", "smal"], "E005"),
        ([HOPPER, "--sizes", "M"], "E701"),
        ([HOPPER, "--sizes", "M=999999999999"], "E701"),
        ([HOPPER, "--sizes", "M=8,M=9"], "E701"),
        ([HOPPER, "--sizes", "M=-8"], "E701"),
        ([HOPPER, "--sizes", "Q=8"], "E701"),
        ([HOPPER, "--seed", "-1"], "E701"),
        ([HOPPER, "--seconds", "0"], "E701"),
        ([HOPPER, "--on", "moon"], "E701"),
        ([HOPPER, "--config", "small", "--sizes", "K=7"], "E402"),
        ([HOPPER, "--on", "interpreter", "--sizes", "M=99999,N=99992,K=99992"], "E411"),
        (["nosuch.py"], "E001"),
    ],
    ids=" ".join,
)
def test_a_bad_run_gets_one_diagnostic_and_code_3(arguments: list[str], code: str, capsys: Captured) -> None:
    assert main(["run", *arguments]) == 3

    err = capsys.readouterr().err
    assert err.startswith(f"error[{code}]: ")
    assert err.count("error[") == 1


def test_random_integers_satisfy_the_data_contracts() -> None:
    (template,) = templates(CORPUS / "proved" / "grouped_experts.py")
    ran = run(template.trace(), {"M": 256, "MB": 4, "G": 3, "K": 64, "N": 64}, on="interpreter")
    assert ran.gpu == ""
    assert ran.arrays["C"].shape == (256, 64)
