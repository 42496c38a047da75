"""Deliveries of programs of several launches: every launch has its files, and every change of them is found."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import pytest
from attrs import evolve
from jsonschema import Draft202012Validator

from argus.cli.main import main
from argus.core.ir import Program
from argus.core.ir.kernels import ClaimedProgram
from argus.core.serde import read, write
from argus.search.certificates.certificate import open_certificate, schema
from argus.search.certificates.check import check_certificate
from argus.search.certificates.check_result import Check
from argus.search.certificates.delivery import deliver
from argus.search.certificates.output_dir import staged_output
from argus.search.evaluation.gate_task import GateTask
from argus.search.problems.families.problem import FamilyProblem
from argus.search.problems.problem import problem_of
from argus.search.run import SearchResult

PROBLEM = "conv:4x8x12x12:8x3x3:pad=1:bf16"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A delivery of a convolution's usual design."""
    home = tmp_path_factory.mktemp("programs")
    asked = problem_of(PROBLEM, "sm_90a")
    assert isinstance(asked, FamilyProblem)
    best = GateTask(PROBLEM, "sm_90a", folder=home / "code")(asked.space.usual)
    assert best.outcome == "timed", best.why
    found = SearchResult(asked, "run-0001", Path("runs.db"), best, (best,), "trials spent", 3)
    deliver(found, home / "fast")
    return home / "fast"


def checks(folder: Path) -> dict[str, Check]:
    """The checks that are not ok, by name."""
    found = check_certificate(*open_certificate(folder))
    return {each.name: each for each in found if each.state != "ok"}


def claimed(folder: Path) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads((folder / "certificate.json").read_text(encoding="utf-8")))


@pytest.mark.nightly
def test_a_delivered_program_is_checked_in_all_its_launches(made: Path) -> None:
    data = claimed(made)

    Draft202012Validator(schema()).validate(data)  # pyright: ignore[reportUnknownMemberType]
    assert [sorted(each) for each in data["launches"]] == [["code", "description", "source"]] * 3
    assert set(data["files"]) == {"description", "ir", "loader"}
    assert list(checks(made)) == ["run"]


def _swap(folder: Path, data: dict[str, Any]) -> None:
    del folder
    data["launches"].reverse()


def _leave_out(folder: Path, data: dict[str, Any]) -> None:
    del folder, data["launches"][1]


def _another_source(folder: Path, data: dict[str, Any]) -> None:
    named = data["launches"][0]["source"]
    (folder / named["name"]).write_text("// nothing\n", encoding="utf-8")
    _digest(folder, named)


def _another_order(folder: Path, data: dict[str, Any]) -> None:
    named = data["files"]["description"]
    described = json.loads((folder / named["name"]).read_text(encoding="utf-8"))
    described["launches"].reverse()
    (folder / named["name"]).write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
    _digest(folder, named)


def _without_claims(folder: Path, data: dict[str, Any]) -> None:
    named = data["files"]["ir"]
    (program,) = read(json.loads((folder / named["name"]).read_text(encoding="utf-8")))
    assert isinstance(program, ClaimedProgram)
    assert program.claims
    (folder / named["name"]).write_text(json.dumps(write([evolve(program, claims=())])), encoding="utf-8")
    _digest(folder, named)


def _one_launch(folder: Path, data: dict[str, Any]) -> None:
    """The files of one kernel in place of a program's."""
    del folder
    data["files"] |= data["launches"][2]
    data["launches"] = []


def _digest(folder: Path, named: dict[str, Any]) -> None:
    contents = (folder / named["name"]).read_bytes()
    named |= {"bytes": len(contents), "sha256": sha256(contents).hexdigest()}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("change", "blamed"),
    [
        (_swap, "names"),
        (_leave_out, "launches"),
        (_another_source, "source"),
        (_another_order, "description"),
        (_without_claims, "traced"),
        (_one_launch, "launches"),
    ],
)
def test_a_changed_program_fails_its_check(
    change: Callable[[Path, dict[str, Any]], None], blamed: str, made: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "changed"
    shutil.copytree(made, folder)
    data = claimed(folder)
    change(folder, data)
    (folder / "certificate.json").write_text(json.dumps(data), encoding="utf-8")

    found = checks(folder)
    assert blamed in found
    assert found[blamed].state == "FAILED"


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("problem", "target"),
    [
        (PROBLEM, "sm_90a"),
        ("conv:4x64x28x28:64x1x1:bf16", "sm_90a"),
        ("moe:64x64x32:experts=4:topk=2:routing=zipf:bf16", "sm_90a"),
        ("moe:64x64x32:experts=4:topk=2:bf16", "gfx942"),
    ],
)
def test_a_search_ends_with_a_certificate_that_is_accepted(
    problem: str, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = ["--journal", str(tmp_path / "runs.db"), "--out", str(tmp_path / "fast"), "--workers", "0"]

    assert main(["optimize", problem, "--target", target, "--on", "model", "--trials", "1", *places]) == 0
    assert "1 passed, 0 were rejected" in capsys.readouterr().out
    assert main(["certify", str(tmp_path / "fast")]) == 0
    assert " 0 FAILED" in capsys.readouterr().out


def test_a_second_delivery_replaces_the_launches_of_the_first(tmp_path: Path) -> None:
    """A folder of a launch is moved over an earlier one, with what it had."""
    from_, to = tmp_path / "from", tmp_path / "to"
    for folder, text in ((from_, "new"), (to, "old")):
        (folder / "0-first").mkdir(parents=True)
        (folder / "0-first" / "first.cu").write_text(text, encoding="utf-8")
    (to / "0-first" / "left.json").write_text("{}", encoding="utf-8")
    (to / "certificate.json").write_text('{"schema": "argus.certificate/1"}', encoding="utf-8")
    with staged_output(to) as staged:
        shutil.copytree(from_, staged, dirs_exist_ok=True)

    assert [each.name for each in (to / "0-first").iterdir()] == ["first.cu"]
    assert (to / "0-first" / "first.cu").read_text(encoding="utf-8") == "new"


@pytest.mark.nightly
def test_the_loader_of_a_program_for_a_gpu_allocates_its_workspaces(made: Path) -> None:
    text = (made / "load.py").read_text(encoding="utf-8")

    (program,) = read(json.loads((made / "kernel.json").read_text(encoding="utf-8")))
    assert isinstance(program, Program)
    compile(text, "load.py", "exec")
    assert all(f'"{each.name}": "bfloat16"' in text for each in program.workspaces)
    assert "load_program(DESCRIPTION)" in text
