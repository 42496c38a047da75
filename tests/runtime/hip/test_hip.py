"""The runner of AMD GPUs on a stand-in for the HIP runtime: a built kernel, the worker, errors, discovery."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ml_dtypes import bfloat16

from argus.core.diagnostic import ArgusError
from argus.emit.build import build
from argus.kernels.gemm import gemm
from argus.runtime.gpu import find
from argus.runtime.gpu.device import Device
from argus.runtime.gpu.find import find_gpu, open_gpu, visible_gpus
from argus.runtime.gpu.launch import load
from argus.runtime.gpu.timing import DUTY_CYCLED, Stopwatch, time_interleaved
from argus.runtime.hip.driver import LIBRARY, find_driver, loaded_libraries
from argus.runtime.processes.request import Request, Result, Tensor, read_result
from argus.runtime.processes.worker import run
from tests.runtime.hip.stub import Stub

M, N, K = 40, 24, 16


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(gemm.trace("cdna3"), directory=tmp_path_factory.mktemp("built")).description


def requested(folder: Path, description: Path) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.float32]], ...]:
    """A request for one launch, in the folder; the operands."""
    tensors = (
        Tensor("A", (M, K), 2, read=True, written=False),
        Tensor("B", (N, K), 2, read=True, written=False),
        Tensor("C", (M, N), 2, read=False, written=True),
    )
    random = np.random.default_rng(0)
    operands = [random.standard_normal(each.shape).astype(bfloat16) for each in tensors[:2]]
    for tensor, each in zip(tensors, operands, strict=False):
        each.tofile(tensor.file(folder))
    Request(str(description), "gfx942", tensors, {"M": M, "N": N, "K": K}, repeats=3).write(folder)
    return tuple(each.astype(np.float32) for each in operands)


@pytest.mark.share(2)
def test_the_worker_launches_a_built_kernel_with_its_arguments(tmp_path: Path, built: Path, stub: Stub) -> None:
    symbol = load(built, stub.driver).launch["symbol"]
    left, right = requested(tmp_path, built)

    run(tmp_path, stub.driver)

    result = read_result(tmp_path)
    assert isinstance(result, Result)
    assert result.device == "AMD Instinct MI300X (stand-in)"
    assert result.milliseconds == (0.25, 0.25, 0.25)
    found = np.fromfile(tmp_path / "C.bin", bfloat16).reshape(M, N)
    np.testing.assert_array_equal(found, (left @ right.T).astype(bfloat16))
    assert not stub.findings
    threads = load(built, stub.driver).launch["threads"]
    assert [each for each, _ in stub.launches] == [symbol] * 4
    assert {shape[3:] for _, shape in stub.launches} == {(threads, 1, 1, 0)}


def test_code_is_loaded_although_a_graph_is_captured(built: Path, stub: Stub) -> None:
    load(built, stub.driver)
    assert stub.calls[-4:] == [
        "hipThreadExchangeStreamCaptureMode",
        "hipModuleLoadData",
        "hipModuleGetFunction",
        "hipThreadExchangeStreamCaptureMode",
    ]


@pytest.mark.parametrize(
    ("function", "status", "code"),
    [
        ("hipMalloc", "OutOfMemory", "E408"),
        ("hipModuleLoadData", "NoBinaryForGpu", "E407"),
        ("hipDeviceSynchronize", "IllegalAddress", "E409"),
        ("hipDeviceSynchronize", "LaunchTimeOut", "E410"),
        ("hipModuleLaunchKernel", "LaunchFailure", "E409"),
    ],
)
def test_a_status_of_the_library_is_a_diagnostic(
    tmp_path: Path, built: Path, stub: Stub, function: str, status: str, code: str
) -> None:
    requested(tmp_path, built)
    stub.fail(function, status)

    run(tmp_path, stub.driver)

    with pytest.raises(ArgusError) as problem:
        read_result(tmp_path)
    found = problem.value.diagnostic
    assert (found.code, f"{function} returned hipError{status}" in found.message) == (code, True)


def test_damaged_code_is_refused(tmp_path: Path, built: Path, stub: Stub) -> None:
    description = tmp_path / built.name
    description.write_bytes(built.read_bytes())
    description.with_suffix(".hsaco").write_bytes(b"no code object")
    with pytest.raises(ArgusError) as refused:
        load(description, stub.driver)
    assert refused.value.diagnostic.code == "E405"


def test_the_gpu_is_found_by_the_library_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch, library: Path, stub: Stub
) -> None:
    monkeypatch.setenv(LIBRARY, str(library))
    found = find_gpu(find_driver())
    assert (found.architecture, found.bus, found.driver.version()) == ("gfx942", "0000:00:00.0", "7.2")
    found.check_runs("gfx942")
    with pytest.raises(ArgusError) as refused:
        found.check_runs("sm_90a")
    assert refused.value.diagnostic.code == "E407"

    stub.devices(2, "gfx950:sramecc+")
    assert visible_gpus(find_driver()) == ("0", "1")
    with pytest.raises(ArgusError) as refused:
        find_gpu(find_driver()).check_runs("gfx942")
    assert "(gfx950), the kernel is for gfx942" in refused.value.diagnostic.message


def test_a_target_of_another_maker_has_the_library_of_its_own(
    monkeypatch: pytest.MonkeyPatch, library: Path, stub: Stub
) -> None:
    assert stub.driver.devices() == 1
    monkeypatch.setenv(LIBRARY, str(library))
    cuda = object()
    monkeypatch.setattr(find, "find_cuda", lambda: cuda)  # a machine with GPUs of both makers
    assert find.find_driver("sm_90a") is cuda
    assert find.find_driver("gfx942").api == "HIP"


def test_the_runtime_that_the_process_has_loaded_is_used(tmp_path: Path) -> None:
    mapped = "7f00-7f01 r-xp 0000 08:01 42                   "
    maps = tmp_path / "maps"
    lines = ("/lib/libc.so.6", "/torch lib/libamdhip64.so", "/torch lib/libamdhip64.so", "/opt/libamdhip64.so.7", "")
    maps.write_text("\n".join(mapped + each for each in lines), encoding="utf-8")
    assert loaded_libraries(maps) == ("/torch lib/libamdhip64.so", "/opt/libamdhip64.so.7")
    assert loaded_libraries(tmp_path / "absent") == ()


def test_without_the_library_or_a_gpu_there_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stub: Stub
) -> None:
    monkeypatch.setenv(LIBRARY, str(tmp_path / "absent.so"))
    with pytest.raises(ArgusError) as refused:
        find_driver()
    assert refused.value.diagnostic.code == "E406"
    stub.devices(0, "")
    with pytest.raises(ArgusError) as refused:
        find_gpu(stub.driver)
    assert refused.value.diagnostic.code == "E406"


def test_memory_and_clocks_go_through_the_library(stub: Stub) -> None:
    device: Device = open_gpu(stub.driver)
    held = device.allocate((2, 3), 4)
    contents = np.arange(24, dtype=np.uint8)
    held.write(contents)
    np.testing.assert_array_equal(held.read(), contents)
    held.fill(7)
    assert set(held.read().tolist()) == {7}
    device.free(held)
    watch = Stopwatch(stub.driver, 0, lambda _: None)
    times = time_interleaved(watch, {"a": lambda: None, "b": lambda: None}, DUTY_CYCLED, 1)
    assert times.median("a") == times.median("b") == pytest.approx(0.25)
