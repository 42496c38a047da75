"""The report of an MI300X (`benchmarks/mi300x.py`) on the stand-in: all of its parts, and a part that ends early."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import frozen

from argus.runtime.gpu.device import Device, Memory
from argus.runtime.gpu.find import open_gpu
from argus.runtime.hip.driver import LIBRARY
from benchmarks import mi300x
from benchmarks.mi300x_checks import Zoned
from benchmarks.mi300x_times import cases
from benchmarks.shipped import configurations
from tests.runtime.hip.rocm_torch import RocmTorch, Tensor

Row = dict[str, Any]
Parts = dict[str, Callable[[], Iterator[Row]]]


@frozen
class OnStandIn:
    """Tensors in the stand-in's memory."""

    rocm: RocmTorch

    def put(self, values: np.ndarray[Any, np.dtype[np.float64]], dtype: str) -> Tensor:
        return self.rocm.tensor(values, f"torch.{dtype}")

    def get(self, tensor: Tensor) -> np.ndarray[Any, np.dtype[np.float64]]:
        return tensor.wide


@pytest.fixture
def device(rocm: RocmTorch) -> Device:
    return open_gpu(rocm.stub.driver)


@pytest.fixture
def parts(rocm: RocmTorch, device: Device) -> Parts:
    return mi300x.parts(device, OnStandIn(rocm), None, few=True)


def checked(rocm: RocmTorch, parts: Parts, name: str) -> list[Row]:
    """The rows of a part, all right. What is timed is launched some hundred times, and not executed."""
    rocm.stub.executing = not name.startswith("times")
    rows = list(parts[name]())
    if name == mi300x.TRAP:
        rocm.stub.library.stub_stop(0)
    assert rows
    assert not [row for row in rows if row["trouble"] or not row["right"]]
    assert not rocm.stub.findings
    return rows


KERNELS, TIMES = "kernels of gemm", "times of gemm M=64, N=64, K=64"


@pytest.mark.share(340, among="operators on the stand-in")
@pytest.mark.parametrize("name", [KERNELS, TIMES, "guards of data contracts", mi300x.TRAP])
def test_the_report_holds_what_was_run(rocm: RocmTorch, parts: Parts, tmp_path: Path, name: str) -> None:
    place = tmp_path / "report.json"
    found = {"rows": checked(rocm, parts, name), "trouble": ""}

    assert mi300x.report(place, [name], lambda _: found, {"name": "stand-in"})

    document = json.loads(place.read_text("utf-8"))
    assert (document["schema"], document["right"]) == ("argus.mi300x/1", True)
    assert {"versions", "machine", "doctor", "device"} <= document.keys()
    rows = document["parts"][name]["rows"]
    if name == KERNELS:
        assert [row["kernel"] for row in rows] == ["gemm-cdna3"]
        assert all(row["compared"]["elements"] == 40 * 72 for row in rows)
    elif name == TIMES:
        assert [row["regime"] for row in rows] == ["sustained", "duty-cycled"]
        assert rows[1]["rates"]["cdna3"] == pytest.approx(2 * 64**3 / 0.25e9)
    else:
        assert [row["told"].partition(":")[0] for row in rows] == ["", "E402"]


OTHERS = ("operators", *(f"times of {case.name}" for case in cases(few=True)))


@pytest.mark.nightly(4)
@pytest.mark.parametrize("name", [*(f"kernels of {family}" for family in configurations("gfx942")), *OTHERS])
def test_every_part_is_right(rocm: RocmTorch, parts: Parts, name: str) -> None:
    checked(rocm, parts, name)


@pytest.mark.share(3)
def test_a_wrong_element_and_one_beside_a_tensor_are_reported(
    rocm: RocmTorch, device: Device, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoilt(zoned: Zoned, like: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        found = zoned.tensor.read().view(like.dtype).reshape(like.shape)
        found[0, 0] += 1
        Memory(device.driver, zoned.whole.pointer, (1,), 1).fill(0)
        return found

    monkeypatch.setattr(Zoned, "contents", spoilt)
    first = next(iter(parts["kernels of gemm"]()))
    assert (first["right"], first["compared"]["outside"], first["zones touched"]) == (False, 1, ["C"])
    del rocm


def test_a_part_that_ends_early_leaves_the_others(tmp_path: Path) -> None:
    found: dict[str, Row] = {name: {"rows": [], "trouble": "exit -6"} for name in ("bad", mi300x.TRAP)}
    assert mi300x.report(tmp_path / "1", [mi300x.TRAP], found.__getitem__, {})
    assert not mi300x.report(tmp_path / "2", ["bad", mi300x.TRAP], found.__getitem__, {})
    written = json.loads((tmp_path / "2").read_text("utf-8"))
    assert [each["trouble"] for each in written["parts"].values()] == ["exit -6", "exit -6"]


def test_without_an_amd_gpu_it_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(LIBRARY, str(tmp_path / "absent.so"))
    assert mi300x.main([str(tmp_path / "report.json")]) == 1
    assert "E406" in capsys.readouterr().err
