"""`argus bench solvers`, `argus query` and `argus conformance`, also with a wrong third-party solver."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from argus.cli.main import main
from argus.solvers.registry import get

KERNEL = str(Path(__file__).parents[2] / "examples" / "01_prove.py")
SOMEONES = """
from argus.core.query import Unsat
from argus.solvers.enumeration import Enumerate
from argus.solvers.z3_backend import Z3


class Hasty(Enumerate):
    def check(self, query, budget):
        return Unsat("hasty")


class Stumbling(Enumerate):
    def check(self, query, budget):
        raise RuntimeError("out of luck")


class Nothing:
    pass


Right = Z3
"""
ENTRY_POINTS = """
[argus.solvers]
someones = someones_solvers:Right
hasty = someones_solvers:Hasty
stumbling = someones_solvers:Stumbling
nothing = someones_solvers:Nothing
absent = someones_solvers:Absent
"""


@pytest.fixture(autouse=True)
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package of somebody else that declares a right solver and several wrong ones, and a folder to work in."""
    info = tmp_path / "site" / "someone-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: someone\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    (tmp_path / "site" / "someones_solvers.py").write_text(SOMEONES)
    monkeypatch.setattr("sys.path", [str(tmp_path / "site"), *sys.path])
    monkeypatch.setenv("ARGUS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    get.cache_clear()
    yield
    get.cache_clear()
    sys.modules.pop("someones_solvers", None)


Captured = pytest.CaptureFixture[str]


def document(capsys: Captured) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads(capsys.readouterr().out))


# -- conformance -----------------------------------------------------------------------------------------


@pytest.mark.share(3)
@pytest.mark.parametrize("name", ["someones", "z3", "enumerate"])
def test_solvers_that_conform(name: str, capsys: Captured) -> None:
    assert main(["conformance", name]) == 0
    assert "queries correctly" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "problem"), [("hasty", "answers unsat to a satisfiable query"), ("stumbling", "out of luck")]
)
def test_wrong_solvers_are_caught(name: str, problem: str, capsys: Captured) -> None:
    assert main(["conformance", name, "--json"]) == 1

    found = document(capsys)
    assert (found["solver"], found["exit_code"]) == (name, 1)
    assert 0 < len(found["failures"]) <= found["questions"]
    assert all(problem in failure["problem"] for failure in found["failures"])


@pytest.mark.parametrize(
    ("name", "code", "reason"),
    [("nothing", "E602", "no `name`"), ("absent", "E602", "Absent"), ("someone", "E601", "someones")],
)
def test_a_broken_solver_is_a_diagnostic(name: str, code: str, reason: str, capsys: Captured) -> None:
    assert main(["conformance", name]) == 3

    printed = capsys.readouterr().err
    assert code in printed
    assert reason in printed


# -- scripts ---------------------------------------------------------------------------------------------


def test_exported_queries_can_be_checked(tmp_path: Path, capsys: Captured) -> None:
    assert main(["query", "export", KERNEL, "scripts", "--json"]) == 0
    written = document(capsys)["files"]
    assert {Path(each) for each in written} == {Path("scripts") / each.name for each in Path("scripts").iterdir()}
    assert len(written) > 5

    for path in written[:6]:
        text = (tmp_path / path).read_text(encoding="utf-8")
        status = "unsat" if "(set-info :status unsat)" in text else "sat"
        for solver in ("z3", "cvc5"):
            assert main(["query", "check", path, "--solver", solver, "--json"]) == (0 if status == "unsat" else 1)
            found = document(capsys)
            assert found["answer"] == found["stated"] == status
            assert found["key"] == Path(path).stem
            assert len(found["model"]) == (text.count("(declare-const") if status == "sat" else 0)
            assert found["diagnostics"] == []


def test_an_answer_that_contradicts_the_script_is_reported(capsys: Captured) -> None:
    text = "(set-info :status sat)(declare-const x Int)(assert (< 1 x))(assert (< x 2))(check-sat)"
    Path("one.smt2").write_text(text)

    assert main(["query", "check", "one.smt2", "--solver", "z3"]) == 1

    printed = capsys.readouterr().out
    assert "unsat  by z3" in printed
    assert "E604" in printed
    assert main(["query", "check", "one.smt2", "--solver", "enumerate"]) == 2
    assert "x has no finite range" in capsys.readouterr().out


@pytest.mark.parametrize(("text", "code"), [("(check-sat", "E603"), (None, "E001")])
def test_bad_scripts_are_refused(text: str | None, code: str, capsys: Captured) -> None:
    if text is not None:
        Path("one.smt2").write_text(text)

    assert main(["query", "check", "one.smt2"]) == 3
    assert code in capsys.readouterr().err


# -- bench -----------------------------------------------------------------------------------------------


def test_solvers_are_compared_on_a_kernel(capsys: Captured) -> None:
    command = ["bench", "solvers", "--corpus", KERNEL, "--solver", "z3", "--solver", "enumerate", "--narrowed"]

    assert main([*command, "--out", "found", "--json"]) == 0

    found = document(capsys)
    asked, narrow = found["comparisons"]
    assert found["kernels"] == 1
    assert [each["backend"] for each in asked["backends"]] == ["z3", "enumerate"]
    assert asked["backends"][0]["unsat"] + asked["backends"][0]["sat"] == asked["queries"] > 5
    assert narrow["answered_by_two_or_more"] == narrow["queries"]
    assert asked["disagreements"] == narrow["disagreements"] == []
    assert {path.name for path in Path("found").iterdir()} == {"solvers.csv", "cactus.svg", "cactus-narrowed.svg"}


def test_a_wrong_solver_is_caught_by_the_others_and_by_script_status(capsys: Captured) -> None:
    assert main(["query", "export", KERNEL, "scripts"]) == 0
    command = ["bench", "solvers", "--queries", "scripts", "--out", "found", "--solver"]
    capsys.readouterr()

    assert main([*command, "hasty"]) == 1
    printed = capsys.readouterr().out
    assert "E604" in printed
    assert "hasty unsat, expected sat" in printed
    assert list(Path("found/disagreements").glob("*.smt2"))
    assert main([*command, "stumbling", "--json"]) == 1
    assert document(capsys)["comparisons"][0]["backends"][0]["raised"] > 5
    assert main([*command, "someones", "--json"]) == 0


def test_all_that_is_installed_and_loads_is_compared_by_default(capsys: Captured) -> None:
    assert main(["bench", "solvers", "--corpus", KERNEL, "--every", "9"]) == 1

    printed = capsys.readouterr().out
    backends = {line.split()[0] for line in printed.splitlines() if line.startswith("  ")}
    assert backends >= {"z3", "cvc5", "enumerate", "portfolio", "someones", "hasty", "stumbling"}
    assert not backends & {"all", "nothing", "absent"}
    assert "skipped nothing: E602" in printed
    assert "skipped absent: E602" in printed


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--solver", "nobody"], "E601"),
        (["--queries", "nowhere"], "E001"),
        (["--corpus", "nowhere"], "--corpus names no kernel: nowhere: E001: there is no file `nowhere`"),
        (["--queries", "x", "--corpus", KERNEL], "E701"),
        (["--every", "0"], "E701"),
        (["--corpus", KERNEL, "--solver", "z3", "--out", "/dev/null/x"], "E302"),
    ],
)
def test_comparisons_that_cannot_be_made(options: list[str], code: str, capsys: Captured) -> None:
    assert main(["bench", "solvers", *options]) == 3
    assert code in capsys.readouterr().err
