from __future__ import annotations

from importlib import import_module

import pytest

from argus.core.diagnostic import ArgusError
from argus.runtime.cuda import driver, status_codes
from argus.runtime.cuda.driver import Driver, find_driver
from argus.runtime.gpu.find import open_gpu
from tests.runtime.fake_driver import FakeDriver


def code_of(fake: FakeDriver, name: str) -> str:
    with pytest.raises(ArgusError) as refused:
        fake.driver.call(name)
    assert name in refused.value.diagnostic.message
    return refused.value.diagnostic.code


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("NO_DEVICE", "E406"),
        ("INSUFFICIENT_DRIVER", "E406"),
        ("NO_BINARY_FOR_GPU", "E407"),
        ("OUT_OF_MEMORY", "E408"),
        ("ILLEGAL_ADDRESS", "E409"),
        ("MISALIGNED_ADDRESS", "E409"),
        ("LAUNCH_FAILED", "E409"),
        ("LAUNCH_TIMEOUT", "E410"),
        ("INVALID_VALUE", "E405"),
        ("ECC_UNCORRECTABLE", "E409"),
        ("INVALID_PTX", "E407"),
        ("INVALID_IMAGE", "E405"),
        ("LAUNCH_OUT_OF_RESOURCES", "E405"),
        ("STREAM_CAPTURE_UNSUPPORTED", "E405"),
        ("CONTEXT_IS_DESTROYED", "E405"),
        ("DEVICE_UNAVAILABLE", "E405"),
        ("MPS_SERVER_NOT_READY", "E406"),
        ("SOMETHING_NEW", "E405"),
    ],
)
def test_driver_errors_have_codes(status: str, code: str) -> None:
    assert code_of(FakeDriver(fails={"cuCtxSynchronize": status}), "cuCtxSynchronize") == code


def test_without_bindings_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "bindings", lambda: None)

    with pytest.raises(ArgusError) as refused:
        find_driver()
    assert refused.value.diagnostic.code == "E406"
    assert "argus[sm90a]" in refused.value.diagnostic.help


def test_bindings_without_the_driver_itself_are_no_gpu() -> None:
    class NoLibrary:
        def cuInit(self, _flags: int) -> None:
            raise RuntimeError("Failed to dlopen libcuda.so.1")

    with pytest.raises(ArgusError) as refused:
        open_gpu(Driver(NoLibrary()))
    assert refused.value.diagnostic.code == "E406"
    assert "libcuda" in refused.value.diagnostic.message


def test_a_machine_without_a_device_has_no_gpu() -> None:
    with pytest.raises(ArgusError) as refused:
        open_gpu(FakeDriver(devices=0).driver)
    assert refused.value.diagnostic.code == "E406"


@pytest.mark.parametrize(
    ("capability", "target"), [({"MAJOR": 8, "MINOR": 0}, "sm_90a"), ({"MAJOR": 9, "MINOR": 0}, "gfx942")]
)
def test_a_gpu_runs_only_its_own_code(capability: dict[str, int], target: str) -> None:
    device = open_gpu(FakeDriver(capability=capability).driver)

    with pytest.raises(ArgusError) as refused:
        device.check_runs(target)
    assert refused.value.diagnostic.code == "E407"
    assert "Imagined GPU" in refused.value.diagnostic.message


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("STREAM_CAPTURE_IMPLICIT", "once before the capture"),
        ("INVALID_IMAGE", "build it again"),
        ("LAUNCH_OUT_OF_RESOURCES", "shared memory"),
        ("ILLEGAL_ADDRESS", "compute-sanitizer"),
    ],
)
def test_each_status_meaning_has_a_repair(status: str, words: str) -> None:
    with pytest.raises(ArgusError) as refused:
        FakeDriver(fails={"cuCtxSynchronize": status}).driver.call("cuCtxSynchronize")
    assert words in refused.value.diagnostic.help


def test_every_listed_status_is_one_of_the_driver_s() -> None:
    known = {each.name.removeprefix("CUDA_ERROR_") for each in import_module("cuda.bindings.driver").CUresult}
    of_the_runtime_above_it = {"INSUFFICIENT_DRIVER"}
    assert status_codes.MEANINGS.keys() - of_the_runtime_above_it <= known


def test_a_status_unknown_to_the_bindings_is_an_error() -> None:
    class Newer:
        def cuCtxSynchronize(self) -> None:
            raise ValueError("1234 is not a valid CUresult")

    with pytest.raises(ArgusError, match="1234") as refused:
        Driver(Newer()).call("cuCtxSynchronize")
    assert refused.value.diagnostic.code == "E405"
