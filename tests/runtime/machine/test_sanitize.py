"""`argus sanitize` on code objects from plain HIP: right kernels give nothing, faults are found at their lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from jsonschema import Draft202012Validator

import argus
from argus.cli.main import main
from argus.core.diagnostic import ArgusError
from argus.interp.gfx942.code_object import read_code_object
from argus.runtime.machine.spec import spec_of
from tests.runtime.machine.hip_code import compiled

HERE = Path(__file__).parent
SOURCE = HERE / "plain.hip"
Data = dict[str, Any]
ROWS, COLUMNS, COUNT = 50, 70, 1000


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code object, with the arrays of the launches beside it."""
    folder = tmp_path_factory.mktemp("plain")
    random = np.random.default_rng(3)
    whole = random.integers(-8, 9, COUNT).astype(np.float32)
    octets = random.integers(0, 256, COUNT).astype(np.uint8)
    table = random.random((ROWS, COLUMNS), np.float32)
    soft = np.exp(table.astype(np.float64) - table.max(1, keepdims=True))
    arrays = {
        "whole": whole, "total": whole.sum(keepdims=True), "octets": octets, "bins": np.bincount(octets, minlength=256),
        "table": table, "turned": table.T, "soft": soft / soft.sum(1, keepdims=True),
    }  # fmt: skip
    for name, held in arrays.items():
        np.save(folder / f"{name}.npy", held)
    return compiled(SOURCE, folder)


def buffer(dtype: str, shape: list[int], name: str, **more: object) -> Data:
    return {"buffer": dtype, "shape": shape, "name": name, **more}


def read(dtype: str, shape: list[int], file: str) -> Data:
    return buffer(dtype, shape, "in", init={"file": f"{file}.npy"}, access="read")


def left(dtype: str, shape: list[int], file: str, **bounds: float) -> Data:
    return buffer(dtype, shape, "out", expected={"file": f"{file}.npy", **bounds})


def size(value: int) -> Data:
    return {"scalar": "i32", "value": value}


LAUNCHES: dict[str, Data] = {
    "sum": {
        "grid": [3], "block": [256],
        "arguments": [read("f32", [COUNT], "whole"), left("f32", [1], "total"), size(COUNT)],
    },
    "histogram": {
        "grid": [2], "block": [128],
        "arguments": [read("u8", [COUNT], "octets"), left("u32", [256], "bins"), size(COUNT)],
    },
    "transpose": {
        "grid": [3, 2], "block": [32, 8],
        "arguments": [
            read("f32", [ROWS, COLUMNS], "table"), left("f32", [COLUMNS, ROWS], "turned"), size(ROWS), size(COLUMNS),
        ],
    },
    "softmax": {
        "grid": [ROWS], "block": [64], "dynamic_lds": 4 * COLUMNS,
        "arguments": [
            read("f32", [ROWS, COLUMNS], "table"), left("f32", [ROWS, COLUMNS], "soft", relative=1e-5), size(COLUMNS),
        ],
    },
}  # fmt: skip
FAULTS = {
    "sum_without_barrier": ("LDS race", "fault of reduce"),
    "histogram_without_barrier": ("LDS race", "fault of zeroing"),
    "histogram_not_zeroed": ("uninitialised LDS", "fault of histogram"),
    "transpose_beyond": ("out of bounds", "fault of transpose"),
    "softmax_beyond": ("out of LDS", "fault of softmax"),
}


def launch(code: Path, kernel: str, capsys: pytest.CaptureFixture[str], *more: str, **changed: object) -> Data:
    """What the command answers in JSON. changed: keys of the description in place of the kernel's own."""
    made = {"schema": "argus.sanitize-spec/1", **LAUNCHES[kernel.partition("_")[0]], **changed}
    spec = code.parent / f"{kernel}.json"
    spec.write_text(json.dumps(made), "utf-8")
    status = main(["sanitize", str(code), "--kernel", kernel, "--args", str(spec), "--json", *more])
    answer: Data = json.loads(capsys.readouterr().out)
    assert answer["exit_code"] == status
    return answer


@pytest.mark.parametrize("name", LAUNCHES)
def test_a_right_kernel_gives_nothing_and_leaves_what_is_expected(
    code: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = launch(code, f"{name}_right", capsys, "--seed", "1")

    assert (answer["exit_code"], answer["diagnostics"]) == (0, [])
    assert answer["compared_elements"] > 0
    assert answer["instructions"] > 100


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_at_its_line(code: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    kind, marked = FAULTS[name]
    answer = launch(code, name, capsys)
    lines = SOURCE.read_text("utf-8").splitlines()
    found = [each for each in answer["diagnostics"] if each["code"] == "E416" and each["message"].startswith(kind)]
    places = [each["primary"]["frames"][0] for each in found]

    assert answer["exit_code"] == 1
    assert any(place["file"] == str(SOURCE) and marked in lines[place["line"] - 1] for place in places), answer


def test_findings_are_written_as_sarif_and_shown_with_the_source(
    code: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    launch(code, "sum_without_barrier", capsys, "--sarif", str(tmp_path / "log.sarif"))
    (run,) = json.loads((tmp_path / "log.sarif").read_text("utf-8"))["runs"]
    status = main(
        [
            "sanitize",
            str(code),
            "--kernel",
            "sum_without_barrier",
            "--args",
            str(code.parent / "sum_without_barrier.json"),
        ]
    )
    shown = capsys.readouterr().out

    assert status == 1
    assert "fault of reduce" in shown
    assert "error[E416]: LDS race" in shown
    first = run["results"][0]
    assert first["ruleId"] == "E416"
    assert first["locations"][0]["physicalLocation"]["region"]["startLine"] > 0
    assert first["partialFingerprints"]["argusFinding/v1"]


def test_an_output_that_differs_is_an_error_of_its_own(code: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = [read("f32", [COUNT], "whole"), left("f32", [1], "total"), size(COUNT - 1)]
    answer = launch(code, "sum_right", capsys, arguments=wrong)

    assert [each["code"] for each in answer["diagnostics"]] == ["E417"]
    assert answer["exit_code"] == 1
    assert "1 of 1 elements differ" in answer["diagnostics"][0]["message"]


@pytest.mark.nightly
def test_arguments_that_are_preloaded_into_registers_are_there(
    code: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    preloaded = compiled(SOURCE, tmp_path, ("-mllvm", "-amdgpu-kernarg-preload-count=8"))
    for file in code.parent.glob("*.npy"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    described = read_code_object(preloaded.read_bytes()).kernel("transpose_right").descriptor
    answer = launch(preloaded, "transpose_right", capsys)

    assert described.preloaded > 0
    assert answer["diagnostics"] == []
    assert answer["compared_elements"] == ROWS * COLUMNS


VALID: Data = {"schema": "argus.sanitize-spec/1", "grid": [1], "block": [64], "arguments": []}
SPECS: dict[str, tuple[bool, object]] = {
    "least": (True, VALID),
    "three_axes": (True, VALID | {"grid": [1, 2, 3], "block": [8, 4, 2], "dynamic_lds": 65536}),
    "no_object": (False, [VALID]),
    "no_schema": (False, {key: value for key, value in VALID.items() if key != "schema"}),
    "other_schema": (False, VALID | {"schema": "argus.sanitize-spec/2"}),
    "unknown_key": (False, VALID | {"gird": [1]}),
    "four_axes": (False, VALID | {"grid": [1, 1, 1, 1]}),
    "empty_grid": (False, VALID | {"grid": []}),
    "no_work_items": (False, VALID | {"block": [0]}),
    "a_truth_value": (False, VALID | {"block": [True]}),
    "negative_lds": (False, VALID | {"dynamic_lds": -1}),
    "no_arguments": (False, {key: value for key, value in VALID.items() if key != "arguments"}),
    "argument_of_no_kind": (False, VALID | {"arguments": [{"value": 3}]}),
    "argument_of_two_kinds": (False, VALID | {"arguments": [{"scalar": "i32", "value": 3, "bytes": "00"}]}),
    "scalar": (True, VALID | {"arguments": [{"scalar": "f16", "value": 0.5}]}),
    "scalar_without_value": (False, VALID | {"arguments": [{"scalar": "i32"}]}),
    "scalar_of_no_type": (False, VALID | {"arguments": [{"scalar": "i31", "value": 3}]}),
    "bytes": (True, VALID | {"arguments": [{"bytes": "00ffA0"}]}),
    "half_a_byte": (False, VALID | {"arguments": [{"bytes": "00f"}]}),
    "no_bytes": (False, VALID | {"arguments": [{"bytes": ""}]}),
    "buffer": (True, VALID | {"arguments": [{"buffer": "bf16", "shape": [2, 3]}]}),
    "number_without_axes": (True, VALID | {"arguments": [{"buffer": "f64", "shape": []}]}),
    "random": (True, VALID | {"arguments": [buffer("i8", [2], "a", init="random", seed=3, low=-4, high=5)]}),
    "file": (True, VALID | {"arguments": [read("f32", [2], "a"), left("f32", [2], "a", absolute=0.5)]}),
    "no_shape": (False, VALID | {"arguments": [{"buffer": "f32"}]}),
    "empty_axis": (False, VALID | {"arguments": [{"buffer": "f32", "shape": [0]}]}),
    "other_start": (False, VALID | {"arguments": [buffer("f32", [2], "a", init="ones")]}),
    "start_of_two": (False, VALID | {"arguments": [buffer("f32", [2], "a", init={"file": "a", "seed": 1})]}),
    "other_access": (False, VALID | {"arguments": [buffer("f32", [2], "a", access="none")]}),
    "negative_bound": (False, VALID | {"arguments": [left("f32", [2], "a", absolute=-1)]}),
    "expected_of_no_file": (False, VALID | {"arguments": [buffer("f32", [2], "a", expected={"absolute": 1})]}),
}


def is_valid(data: object) -> bool:
    path = Path(argus.__file__).parent / "report" / "schemas" / "sanitize-spec-1.json"
    # The stubs of jsonschema leave the type of what is validated open.
    validator: Any = Draft202012Validator(cast("dict[str, Any]", json.loads(path.read_text("utf-8"))))
    return bool(validator.is_valid(data))


@pytest.mark.parametrize("name", SPECS)
def test_the_reader_and_the_schema_accept_the_same_documents(name: str) -> None:
    valid, data = SPECS[name]

    assert is_valid(data) == valid
    if valid:
        assert spec_of(data, Path()).grid
        return
    with pytest.raises(ArgusError) as caught:
        spec_of(data, Path())
    assert caught.value.diagnostic.code == "E422"


BEYOND: dict[str, list[Data]] = {
    "same_names": [buffer("f32", [2], "a"), buffer("f32", [2], "a")],
    "too_large": [buffer("f64", [1 << 32], "a")],
    "byte_of_256": [{"scalar": "u8", "value": 256}],
    "no_whole_number": [{"scalar": "i32", "value": 0.5}],
}


@pytest.mark.parametrize("name", BEYOND)
def test_what_no_schema_can_say_is_refused_by_the_reader(name: str) -> None:
    with pytest.raises(ArgusError) as caught:
        spec_of(VALID | {"arguments": BEYOND[name]}, Path())

    assert caught.value.diagnostic.code == "E422"


WRONG: dict[str, tuple[str, Data]] = {
    "file_that_is_not_there": (
        "E422",
        {"arguments": [read("f32", [COUNT], "none"), left("f32", [1], "total"), size(1)]},
    ),
    "file_of_another_type": (
        "E422",
        {"arguments": [read("i32", [COUNT], "whole"), left("f32", [1], "total"), size(1)]},
    ),
    "file_of_another_shape": ("E422", {"arguments": [read("f32", [2], "whole"), left("f32", [1], "total"), size(1)]}),
    "bounds_that_do_not_fit": ("E422", {"arguments": [buffer("u8", [2], "a", init="random", high=300)]}),
    "no_values_between": ("E422", {"arguments": [buffer("f32", [2], "a", init="random", low=2)]}),
    "too_few_arguments": ("E420", {"arguments": [size(1)]}),
    "array_for_a_number": ("E420", {"arguments": [buffer("f32", [1], name) for name in "abc"]}),
    "number_of_another_size": (
        "E420",
        {"arguments": [buffer("f32", [1], "a"), buffer("f32", [1], "b"), {"bytes": "00"}]},
    ),
    "more_lds_than_there_is": ("E420", {"dynamic_lds": 65536}),
    "too_many_work_items": ("E422", {"block": [1024, 2]}),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_launch_that_does_not_fit_is_bad_input(code: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    wanted, changed = WRONG[name]
    answer = launch(code, "sum_right", capsys, **changed)

    assert answer["exit_code"] == 3
    assert [each["code"] for each in answer["diagnostics"]] == [wanted]


def test_files_that_are_none_are_bad_input(code: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.json").write_text("{", "utf-8")
    for given in ([str(code), "--args", str(tmp_path / "a.json")], [str(tmp_path), "--args", str(tmp_path / "a.json")]):
        assert main(["sanitize", *given, "--kernel", "sum_right", "--json"]) == 3
        assert json.loads(capsys.readouterr().out)["diagnostics"]
    assert launch(code, "sum_right", capsys)["exit_code"] == 0
    (code.parent / "other.json").write_text(json.dumps(VALID), "utf-8")
    assert main(["sanitize", str(code), "--args", str(code.parent / "other.json"), "--kernel", "other"]) == 3
    assert "has no kernel `other`" in capsys.readouterr().err


def test_buffers_beyond_memory_are_bad_input(
    code: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("argus.interp.gfx942.launch.memory_of", full)
    answer = launch(code, "sum_right", capsys)

    assert answer["exit_code"] == 3
    assert "need more memory than there is" in answer["diagnostics"][0]["message"]


@pytest.mark.parametrize("offset", [40, 60], ids=["sections", "number of sections"])
def test_a_damaged_header_is_refused(code: Path, offset: int) -> None:
    """Places beyond what Python's own offsets hold, too."""
    data = bytearray(code.read_bytes())
    data[offset : offset + 8] = b"\xff" * 8
    with pytest.raises(ArgusError) as refused:
        read_code_object(bytes(data))
    assert refused.value.diagnostic.code == "E420"
