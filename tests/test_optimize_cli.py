"""`argus optimize` as a user starts it, interrupts it, kills it and goes on with it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from argus.cli import main
from argus.optimizer.events import Judged, Proposed
from argus.optimizer.journal import Journal

PROBLEM = "gemm:512x512x512:bf16"


STARTED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from argus.cli import main
sys.exit(main(sys.argv[1:]))
"""
"""The command line, which Ctrl-C reaches even where whoever runs tests ignores it."""


def asked(journal: Path, *more: str) -> list[str]:
    return ["optimize", PROBLEM, "--target", "gfx942", "--on", "model", "--journal", str(journal), *more]


def begun(journal: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603 reason: our own command line
        [sys.executable, "-c", STARTED, *asked(journal, "--planner", "exhaustive", *more)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )


def judged(journal: Path, run: str = "run-0001") -> list[str]:
    with Journal(journal) as opened:
        return [each.judgement.name for each in opened.events(run) if isinstance(each, Judged)]


def waited(journal: Path, least: int) -> None:
    """Until so many candidates have been judged."""
    for _ in range(1200):
        if journal.exists() and len(names_of(journal)) >= least:
            return
        time.sleep(0.1)
    raise AssertionError(f"{least} candidates were not judged in two minutes")


def names_of(journal: Path) -> list[str]:
    with Journal(journal) as opened:
        return judged(journal) if opened.runs() else []


def test_a_search_tells_each_candidate_and_the_best(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(asked(tmp_path / "runs.db", "--trials", "2")) == 0

    said = capsys.readouterr().out
    assert "speed of light:" in said
    assert said.count("% of light") + said.count(" s: ") == 2
    assert "best: " in said
    assert "predicted by the static model" in said
    assert "--resume run-0001" in said


def test_a_search_as_json_is_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(asked(tmp_path / "runs.db", "--trials", "1", "--json")) == 0

    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "argus.optimize/1"
    assert found["reason"] == "trials spent"
    assert len(found["judged"]) == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["optimize", "gemm:512x512"], "E903"),
        (["optimize", "gemm:512x512x512:f64"], "E903"),
        (["optimize", PROBLEM, "--target", "sm_20"], "E903"),
        (["optimize"], "E701"),
        (["optimize", "--resume", "run-0009"], "E904"),
    ],
)
def test_what_cannot_be_searched_is_told(
    arguments: list[str], code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--journal", str(tmp_path / "runs.db")]) == 3
    assert f"error[{code}]" in capsys.readouterr().err


def test_ctrl_c_tells_the_best_and_ends_well(tmp_path: Path) -> None:
    journal = tmp_path / "runs.db"
    process = begun(journal)
    waited(journal, 1)
    process.send_signal(signal.SIGINT)
    said, complaints = process.communicate(timeout=120)

    assert process.returncode == 0, complaints
    assert "ended: interrupted" in said
    assert "best: " in said


def test_a_search_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    journal, whole = tmp_path / "runs.db", tmp_path / "whole.db"
    process = begun(journal, "--trials", "4")
    waited(journal, 2)
    process.kill()
    process.communicate()
    before = judged(journal)

    assert main(asked(journal, "--resume", "run-0001", "--trials", "4")) == 0
    assert main(asked(whole, "--planner", "exhaustive", "--trials", "4")) == 0
    assert judged(journal) == judged(whole)
    assert judged(journal)[: len(before)] == before
    with Journal(journal) as opened:
        proposed = [each.name for each in opened.events("run-0001") if isinstance(each, Proposed)]
    assert proposed == judged(whole)


def test_runs_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = tmp_path / "runs.db"
    main(asked(journal, "--trials", "1"))
    capsys.readouterr()

    assert main(["optimize", "--runs", "--journal", str(journal)]) == 0
    assert "run-0001  gemm:512x512x512:bf16 on gfx942, bandit, seed 0: 1 candidates, trials spent" in (
        capsys.readouterr().out
    )
