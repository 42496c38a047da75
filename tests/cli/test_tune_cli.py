"""`argus bench gemm` without a GPU, and with a fake one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from argus.cli import tune
from argus.cli.main import main
from argus.ops.choice import select
from argus.runtime import tuning_db
from argus.search.tuning.measure import Medians, Shape
from argus.search.tuning.search import Result

CARD = "Imagined GPU"


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("ARGUS_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tune, "tuning_candidates", lambda: ["columns_64", "nothing"])
    tuning_db.clear_cache()
    return tmp_path


def named(_child: object) -> str:
    return CARD


def result(shape: Shape, best: str, *, wrong: tuple[str, ...] = ()) -> Result:
    times = {"sustained": {best: 10.0, "clustered_bands": 12.0}, "duty-cycled": {best: 9.0, "clustered_bands": 9.0}}
    return Result(shape, Medians(times, wrong=wrong), 2, "clustered_bands", finished=True)


def test_without_options_it_prints_the_choice(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "gemm", "4096x4096x4096, 16x8192x8192"]) == 0
    few = select(16, 8192, 8192)
    assert capsys.readouterr().out.split() == ["4096x4096x4096", "clustered_bands", "16x8192x8192", few]
    assert main(["bench", "gemm", "1", "8", "7"]) == 0
    assert capsys.readouterr().out.split() == ["1x8x7", "narrow_32"]


@pytest.mark.parametrize(
    "arguments", [[], ["--tune"], ["4096"], ["4096x4096"], ["0x1x1"], ["--tune", "--prepare", "1x1x1"], ["1", "1", "x"]]
)
def test_a_bad_shape_is_a_usage_error(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "gemm", *arguments]) == 3
    assert "E701" in capsys.readouterr().err


def test_candidates_are_prepared_without_a_gpu(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert main(["bench", "gemm", "--prepare", "--processes", "1"]) == 0

    said = capsys.readouterr().out
    assert "nothing: rejected: it is not the name of a configuration" in said
    assert "1 of 2 configurations are proved and compiled" in said
    assert len(list(folder.glob("kernels/*/*.cubin"))) == 1


def test_a_search_without_a_gpu_says_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    # Its process imports the driver anew: one that is not there is refused, whatever this machine has.
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert main(["bench", "gemm", "--tune", "64x64x64"]) == 3
    assert "E406" in capsys.readouterr().err


def test_a_search_stores_and_prints_its_results(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Sequence[Shape], list[str], int]] = []

    def fake(_child: object, shapes: Sequence[Shape], paths: Mapping[str, str], rounds: int) -> Iterator[Result]:
        asked.append((shapes, list(paths), rounds))
        yield from (result(shape, "columns_64") for shape in shapes)

    monkeypatch.setattr(tune, "query_device_name", named)
    monkeypatch.setattr(tune, "search_shapes", fake)

    code = main(["bench", "gemm", "--tune", "4096x4096x4096,64x64x64", "--processes", "1", "--rounds", "3", "--json"])

    document = json.loads(capsys.readouterr().out)
    assert code == 0
    assert asked == [([(4096, 4096, 4096), (64, 64, 64)], ["columns_64"], 3)]
    assert document["device"] == CARD
    assert [each["ratios"] for each in document["results"]] == [{"sustained": 1.2, "duty-cycled": 1.0}] * 2
    assert {found.config for found in tuning_db.load_choices(CARD).values()} == {"columns_64"}


def test_wrong_results_are_an_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fake(*_: object) -> Iterator[Result]:
        yield result((64, 64, 64), "columns_64", wrong=("small",))

    monkeypatch.setattr(tune, "query_device_name", named)
    monkeypatch.setattr(tune, "search_shapes", fake)

    assert main(["bench", "gemm", "--tune", "64x64x64", "--processes", "1"]) == 1
    assert "small computes WRONG results" in capsys.readouterr().out


def test_an_interrupted_search_has_stored_its_results(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fake(*_: object) -> Iterator[Result]:
        yield result((64, 64, 64), "columns_64")
        raise KeyboardInterrupt

    monkeypatch.setattr(tune, "query_device_name", named)
    monkeypatch.setattr(tune, "search_shapes", fake)

    assert main(["bench", "gemm", "--tune", "64x64x64,65x64x64", "--processes", "1"]) == 130
    assert "interrupted: 1 of 2 shapes have a result" in capsys.readouterr().out
    assert [key.shape for key in tuning_db.load_choices(CARD)] == [(64, 64, 64)]
