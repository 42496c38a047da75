"""`argus optimize --out`: however a search ends, its best design is delivered and its run told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from argus.cli import main
from argus.optimizer.judgement import Judgement
from argus.optimizer.run import Judging

JUDGED = Judging.__call__


def searched(folder: Path, *more: str) -> int:
    places = ["--journal", str(folder / "runs.db"), "--out", str(folder / "fast"), "--workers", "0"]
    return main(["optimize", "gemm:512x512x512", "--target", "gfx942", "--on", "model", *places, *more])


def interrupted_after(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keyboard interrupts the search while it judges the candidate after so many."""
    seen: list[str] = []

    def judged(judging: Judging, name: str, text: str = "") -> Judgement:
        seen.append(name)
        if len(seen) > count:
            raise KeyboardInterrupt
        return JUDGED(judging, name, text)

    monkeypatch.setattr(Judging, "__call__", judged)


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
    assert "no answer was recorded" in (tmp_path / "fast" / "report.html").read_text(encoding="utf-8")


def test_a_folder_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    interrupted_after(0, monkeypatch)

    assert searched(tmp_path, "--out", str(tmp_path / "file" / "deep")) == 3
    assert "E302" in capsys.readouterr().err
