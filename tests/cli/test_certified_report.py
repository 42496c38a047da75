"""`argus certify` renders report.html again from the delivered events, which must be those of the certified run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve

from argus.cli import certify
from argus.cli.main import main
from argus.cli.search.page.page import page
from argus.cli.search.page.record import check_report, events_text
from argus.cli.search.page.story import story_of
from argus.policy.last_round import Standing
from argus.search.certificates.certificate import open_certificate
from argus.search.certificates.check_result import Check
from argus.search.events import LastRound, best_of
from argus.search.journal import decode_event
from tests.cli.test_optimize_out import searched
from tests.search.problems.test_files import SIZES, kernel_file


@pytest.fixture(scope="module")
def delivered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("search")
    assert searched(folder, "--trials", "2") == 0
    return folder / "fast"


@pytest.fixture
def out(delivered: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(delivered, tmp_path / "out"))


def reported(out: Path) -> Check:
    found = check_report(*open_certificate(out))
    assert found is not None
    return found


@pytest.mark.share(8, among="certified reports")
def test_a_changed_report_does_not_certify(
    out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["certify", str(out)]) == 0
    assert "ok          report: report.html is rendered again from run.jsonl, byte for byte" in capsys.readouterr().out

    path = out / "report.html"
    before = path.read_text(encoding="utf-8")
    path.write_text(before.replace("of light", "of light, 400% of light", 1), encoding="utf-8")
    assert path.read_text(encoding="utf-8") != before
    assert main(["certify", str(out)]) == 1
    assert "FAILED      report: report.html is not what is rendered from run.jsonl" in capsys.readouterr().out

    def unchecked(*_: object) -> None:
        return None

    monkeypatch.setattr(certify, "check_report", unchecked)
    assert main(["certify", str(out)]) == 0, "the mutation: without this check the changed page certifies"


def faster(event: dict[str, object]) -> None:
    judgement = event.get("judgement")
    if isinstance(judgement, dict) and judgement["microseconds"] is not None:
        judgement["microseconds"] /= 4


def of_another_problem(event: dict[str, object]) -> None:
    if "problem" in event:
        event["problem"] = "gemm:512x512x1024:bf16"


def of_another_seed(event: dict[str, object]) -> None:
    if "seed" in event:
        event["seed"] = 99


def test_the_time_of_a_single_measurement_does_not_certify_after_a_last_round(out: Path) -> None:
    """The events and the page are those of a run whose best candidate has another median."""
    events = [decode_event(line) for line in (out / "run.jsonl").read_text(encoding="utf-8").splitlines()]
    best = best_of(events)
    assert best is not None
    assert best.microseconds is not None
    last = LastRound((Standing(best.name, "best", {"sustained": 1.1 * best.microseconds}),), 12)
    told = (*events[:-1], last, events[-1])
    claimed, folder = open_certificate(out)
    (out / "run.jsonl").write_text(events_text(told), encoding="utf-8")
    (out / "report.html").write_text(page(story_of(claimed.run.name, told)), encoding="utf-8")

    assert "microseconds" in reported(out).why
    time = evolve(claimed.time, microseconds=1.1 * best.microseconds, median=True)
    found = check_report(evolve(claimed, time=time), folder)
    assert found is not None
    assert found.state == "ok", found.why


@pytest.mark.parametrize(
    ("change", "said"),
    [(faster, "microseconds "), (of_another_problem, "problem gemm:512x512x1024:bf16"), (of_another_seed, "seed 99")],
)
def test_events_of_another_run_do_not_certify(
    out: Path, change: Callable[[dict[str, object]], None], said: str
) -> None:
    """The page is changed with them."""
    path = out / "run.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        change(row)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    events = tuple(decode_event(json.dumps(row)) for row in rows)
    claimed, _ = open_certificate(out)
    (out / "report.html").write_text(page(story_of(claimed.run.name, events)), encoding="utf-8")

    found = reported(out)
    assert found.state == "FAILED"
    assert said in found.why


@pytest.mark.parametrize(
    "text", [None, "", "[]", "{", '{"event": "Ended", "reason": "no gain"}', "[" * 100_000, "\udcff"]
)
def test_a_report_without_its_events_does_not_certify(out: Path, text: str | None) -> None:
    (out / "run.jsonl").unlink()
    if text is not None:
        (out / "run.jsonl").write_text(text, encoding="utf-8", errors="surrogateescape")

    assert reported(out).state == "FAILED"


def test_a_folder_without_a_report_claims_nothing_about_it(out: Path) -> None:
    (out / "report.html").unlink()

    assert check_report(*open_certificate(out)) is None


@pytest.mark.share(8, among="certified reports")
def test_the_report_of_a_kernel_file_is_not_checked_and_all_else_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A search on a file, delivered, then certified without the file: nothing of its page is vouched for."""
    source, out = kernel_file(tmp_path), tmp_path / "fast"
    places = ["--journal", str(tmp_path / "runs.db"), "--out", str(out), "--workers", "0"]
    sought = ["optimize", str(source), "--sizes", SIZES, "--target", "gfx942", "--on", "model", "--trials", "2"]
    assert main([*sought, *places]) == 0
    source.unlink()
    capsys.readouterr()

    assert main(["certify", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split(":")[0] for line in lines if line.startswith("not checked")} == {
        "not checked run",
        "not checked report",
    }
    assert not [line for line in lines if line.startswith("ok          report")]

    code = next(out.glob("*.hip"))
    code.write_text(code.read_text(encoding="utf-8").replace("at0 < M_", "at0 <= M_"), encoding="utf-8")
    assert main(["certify", str(out)]) == 1
    assert "FAILED      source" in capsys.readouterr().out
