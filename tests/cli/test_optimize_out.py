"""`argus optimize --out`: however a search ends, its best design and a report are written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from argus.cli.main import main
from argus.search.evaluation.gate_task import GateTask
from argus.search.evaluation.judgement import Judgement

JUDGED = GateTask.__call__


def searched(folder: Path, *more: str) -> int:
    places = ["--journal", str(folder / "runs.db"), "--out", str(folder / "fast"), "--workers", "0"]
    return main(["optimize", "gemm:512x512x512", "--target", "gfx942", "--on", "model", *places, *more])


def interrupted_after(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keyboard interrupts the search while it judges the candidate after so many."""
    seen: list[str] = []

    def judged(judging: GateTask, name: str, text: str = "") -> Judgement:
        seen.append(name)
        if len(seen) > count:
            raise KeyboardInterrupt
        return JUDGED(judging, name, text)

    monkeypatch.setattr(GateTask, "__call__", judged)


@pytest.mark.share(48, among="searches on the command line")
def test_an_interrupted_search_delivers_its_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupted_after(2, monkeypatch)

    assert searched(tmp_path) == 0

    out = tmp_path / "fast"
    told = capsys.readouterr().out
    assert "ended: interrupted" in told
    assert f"wrote {out / 'certificate.json'}" in told
    assert "interrupted" in (out / "report.html").read_text(encoding="utf-8")
    claimed = json.loads((out / "certificate.json").read_text(encoding="utf-8"))
    assert (claimed["run"]["reason"], claimed["run"]["judged"]) == ("interrupted", 2)
    assert main(["certify", str(out)]) == 0


def test_a_search_without_a_result_still_has_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupted_after(0, monkeypatch)

    assert searched(tmp_path, "--json") == 0

    document = json.loads(capsys.readouterr().out)
    assert document["files"] == [str(tmp_path / "fast" / "report.html")]
    assert [each.name for each in (tmp_path / "fast").iterdir()] == ["report.html"]
    assert "no result was recorded" in (tmp_path / "fast" / "report.html").read_text(encoding="utf-8")


@pytest.mark.share(48, among="searches on the command line")
def test_an_interrupt_while_it_delivers_leaves_the_folder_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    out = tmp_path / "fast"
    out.mkdir()
    (out / "notes.txt").write_text("mine", encoding="utf-8")
    with monkeypatch.context() as patched:
        patched.setattr("argus.cli.optimize.deliver", interrupted)
        assert searched(tmp_path, "--trials", "1") == 130

    told = capsys.readouterr().out
    assert "best: " in told
    assert f"--resume run-0001 --trials 1 --out {out}" in told
    assert [each.name for each in out.iterdir()] == ["notes.txt"]

    assert searched(tmp_path, "--resume", "run-0001", "--trials", "1") == 0
    assert "1 candidates: " in capsys.readouterr().out
    assert (out / "certificate.json").is_file()
    assert (out / "notes.txt").read_text(encoding="utf-8") == "mine"


def test_a_folder_with_somebody_elses_files_is_refused_before_the_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "fast").mkdir()
    (tmp_path / "fast" / "load.py").write_text("mine", encoding="utf-8")

    assert searched(tmp_path, "--trials", "1") == 3
    assert "E302" in capsys.readouterr().err
    assert (tmp_path / "fast" / "load.py").read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / "runs.db").exists()


def test_an_unwritable_folder_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    interrupted_after(0, monkeypatch)

    assert searched(tmp_path, "--out", str(tmp_path / "file" / "deep")) == 3
    assert "E302" in capsys.readouterr().err
