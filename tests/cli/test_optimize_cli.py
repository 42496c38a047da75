"""`argus optimize`: starting, interrupting, killing and resuming a search."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from argus.cli.main import main
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.search.evaluation.judgement import Judgement
from argus.search.events import Event, Judged, Proposed, Started
from argus.search.journal import Journal

PROBLEM = "gemm:512x512x512:bf16"


STARTED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from argus.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
"""The command line, with SIGINT enabled even if the test runner ignores it."""
ATTACHED = f"""
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
{STARTED}
"""
"""The same, with standard input as the controlling terminal that sends Ctrl-C."""


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


@pytest.mark.share(48, among="searches on the command line")
def test_a_search_prints_each_candidate_and_the_best(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(asked(tmp_path / "runs.db", "--trials", "2")) == 0

    said = capsys.readouterr().out
    assert "speed of light:" in said
    assert said.count("% of light") + said.count(" s: ") == 2
    assert "best: " in said
    assert "predicted by the static model" in said
    assert "--resume run-0001" in said


@pytest.mark.share(48, among="searches on the command line")
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
def test_what_cannot_be_searched_is_refused(
    arguments: list[str], code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--journal", str(tmp_path / "runs.db")]) == 3
    assert f"error[{code}]" in capsys.readouterr().err


@pytest.mark.share(48, among="searches on the command line")
def test_ctrl_c_prints_the_best_and_exits_cleanly(tmp_path: Path) -> None:
    journal = tmp_path / "runs.db"
    process = begun(journal)
    waited(journal, 1)
    process.send_signal(signal.SIGINT)
    said, complaints = process.communicate(timeout=120)

    assert process.returncode == 0, complaints
    assert "ended: interrupted" in said
    assert "best: " in said


@pytest.mark.nightly
def test_a_killed_search_resumes(tmp_path: Path) -> None:
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


HANGING = """
import os, time
if "HANGS" in os.environ:
    from argus.search.evaluation import gate_task
    PASSED = gate_task.evaluate
    def hanging(problem, name, tools, text=""):
        if name == os.environ["HANGS"]:
            time.sleep(600)
        return PASSED(problem, name, tools, text)
    gate_task.evaluate = hanging
"""
"""A `sitecustomize` for child processes that makes the gate hang at one candidate."""


@pytest.mark.nightly
def test_a_search_ends_with_its_budget_whatever_hangs(tmp_path: Path) -> None:
    journal = tmp_path / "runs.db"
    (tmp_path / "sitecustomize.py").write_text(HANGING, encoding="utf-8")
    command = asked(journal, "--planner", "exhaustive", "--budget-seconds", "8", "--workers", "2")
    path = os.pathsep.join((str(tmp_path), str(Path(__file__).parents[2])))
    environment = os.environ | {"PYTHONUNBUFFERED": "1", "PYTHONPATH": path, "HANGS": "cdna3staged"}
    with subprocess.Popen(  # noqa: S603 reason: our own command line
        [sys.executable, "-m", "argus", *command], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        begun = time.monotonic()
        said = process.stdout.read()
        took = time.monotonic() - begun

    assert process.returncode == 1, said
    assert "ended: time spent" in said
    assert "nothing passed the gate" in said
    assert took < 300  # the candidate hangs for 600 s
    with Journal(journal) as opened:
        events = opened.events("run-0001")
    assert next(each.name for each in events if isinstance(each, Proposed)) == "cdna3staged"
    assert not [each for each in events if isinstance(each, Judged)]


@pytest.mark.share(48, among="searches on the command line")
def test_a_terminal_has_a_bar_and_gets_its_cursor_back(tmp_path: Path) -> None:
    code, shown = on_terminal(
        asked(tmp_path / "runs.db", "--trials", "1"),
        60,
        TERM="xterm",
        NO_COLOR="1",
        PYTHONIOENCODING="cp1252",
        PYTHONUTF8="0",
    )
    drawn = [each for each in re.split(r"[\r\n]|\x1b\[[0-9;?]*[A-Za-z]", shown) if "of 1 trials" in each]

    assert code == 0
    assert "0 of 1 trials" in shown
    assert max(map(len, drawn)) < 60
    assert shown.isascii()
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")
    assert not re.search(r"\x1b\[[0-9;]*[34][0-7]m", shown)
    assert shown.rstrip().endswith("continue it with --resume run-0001")


@pytest.mark.share(48, among="searches on the command line")
def test_a_pipe_gets_plain_lines_only(tmp_path: Path) -> None:
    done = subprocess.run(  # noqa: S603 reason: our own command line
        [sys.executable, "-m", "argus", *asked(tmp_path / "runs.db", "--trials", "1")],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"FORCE_COLOR": "1", "TERM": "xterm"},
    )

    assert "\x1b" not in done.stdout
    assert "\r" not in done.stdout
    assert "of 1 trials" not in done.stdout
    assert "best: " in done.stdout


@pytest.mark.nightly
def test_ctrl_c_pressed_twice_on_a_terminal_prints_the_best(tmp_path: Path) -> None:
    def press(shown: str, terminal: int) -> bool:
        if "the best so far" not in shown:
            return False
        for _ in range(2):
            os.write(terminal, b"\x03")
            time.sleep(0.2)
        return True

    code, shown = on_terminal(asked(tmp_path / "runs.db", "--planner", "exhaustive"), 100, press=press, TERM="xterm")

    assert code == 0
    assert "ended: interrupted" in shown
    assert "best: cdna3" in shown
    assert "Traceback" not in shown


def on_terminal(
    arguments: list[str], columns: int, *, press: Callable[[str, int], bool] | None = None, **environment: str
) -> tuple[int, str]:
    """Exit code of the command line on a terminal of its own, and all that it wrote. press: until it says so."""
    given = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(  # noqa: S603 reason: our own command line
        [sys.executable, "-c", ATTACHED, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env=given | environment,
    )
    os.close(theirs)
    written = b""
    with suppress(OSError):  # which says that the other side has been closed
        while piece := os.read(ours, 65536):
            written += piece
            if press is not None and press(written.decode(errors="replace"), ours):
                press = None
    os.close(ours)
    return process.wait(60), written.decode()


@pytest.mark.share(48, among="searches on the command line")
def test_options_fixed_at_the_start_cannot_change_on_resume(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = tmp_path / "runs.db"
    resumed = ["optimize", "--resume", "run-0001", "--on", "model", "--trials", "1", "--workers", "0"]
    assert main(asked(journal, "--trials", "1", "--workers", "0")) == 0

    for more in (["gemm:1024x512x512"], ["--planner", "random"], ["--seed", "4"], ["--target", "sm_90a"]):
        assert main([*resumed, "--journal", str(journal), *more]) == 3
        assert "E701" in capsys.readouterr().err
    assert main([*resumed, "--journal", str(journal), PROBLEM, "--planner", "bandit", "--seed", "0"]) == 0


def test_options_of_another_planner_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(asked(tmp_path / "runs.db", "--tokens", "9")) == 3
    assert "--tokens needs the planner llm" in capsys.readouterr().err


@pytest.mark.share(48, among="searches on the command line")
def test_a_candidate_in_progress_is_shown_with_its_techniques(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = tmp_path / "runs.db"
    with Journal(journal) as opened:
        name = opened.begin(Started(PROBLEM, "gfx942", "bandit", 0, 2.0, "launch", 610))
        opened.append(name, Proposed("cdna3", ("larger-bn (bn 64 -> 128)",), 0.5, "bandit"))

    given = ["--resume", name, "--on", "model", "--journal", str(journal), "--trials", "1", "--workers", "0"]
    assert main(["optimize", *given]) == 0
    assert "   1/1 cdna3 [+larger-bn (bn 64 -> 128)]: proved" in capsys.readouterr().out


def test_measured_and_predicted_times_are_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = tmp_path / "runs.db"
    with Journal(journal) as opened:
        name = opened.begin(Started(PROBLEM, "gfx942", "bandit", 0, 2.0, "launch", 610))
        opened.append(name, Proposed("cdna3", (), 0.5, "bandit"))
        opened.append(name, Judged(Judgement("cdna3", "timed", "timing", microseconds=9.0, reward="measured")))

    assert main(["optimize", "--resume", name, "--on", "model", "--journal", str(journal)]) == 3
    complaint = capsys.readouterr().err
    assert "E905" in complaint
    assert "are measured, but new ones would be predicted" in complaint


@pytest.mark.share(48, among="searches on the command line")
def test_a_journal_that_fills_its_disk_ends_the_search_with_its_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    append = Journal.append

    def full(journal: Journal, run: str, event: Event) -> None:
        if len(journal.events(run)) > 3:
            raise ArgusError(Diagnostic("E904", "error", "database or disk is full"))
        append(journal, run, event)

    monkeypatch.setattr(Journal, "append", full)
    assert main(asked(tmp_path / "runs.db", "--trials", "9", "--workers", "0")) == 3

    said = capsys.readouterr()
    assert "best so far: cdna3" in said.out
    assert "E904" in said.err


@pytest.mark.share(48, among="searches on the command line")
def test_runs_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = tmp_path / "runs.db"
    main(asked(journal, "--trials", "1"))
    capsys.readouterr()

    assert main(["optimize", "--runs", "--journal", str(journal)]) == 0
    assert "run-0001  gemm:512x512x512:bf16 on gfx942, bandit, seed 0: 1 candidates, trials spent" in (
        capsys.readouterr().out
    )
