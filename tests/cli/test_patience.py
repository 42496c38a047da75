"""What the command line does while it waits, and with files that end or never end."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from argus.cli.main import main
from argus.cli.waiting import waiting
from argus.core.ir import Kernel
from argus.interp.progress import counted, counted_by
from argus.interp.run import run
from argus.verifier.progress import tell
from tests.corpus.refuted.no_full_wait import gemm as hopper
from tests.interp.programs import gemm

REFUTED = str(Path(__file__).parents[1] / "corpus" / "refuted" / "no_full_wait.py")
COPIED = str(Path(__file__).parents[1] / "corpus" / "nearest" / "copied_rows.py")
Captured = pytest.CaptureFixture[str]


def test_a_spinner_says_what_is_tried_on_a_terminal_alone() -> None:
    shown, plain = StringIO(), StringIO()
    drawn = threading.Event()

    class Terminal(StringIO):
        def write(self, text: str) -> int:
            if "I5, 3 statements" in text:
                drawn.set()
            return shown.write(text)

    with waiting("verifying gemm", Console(file=Terminal(), force_terminal=True, width=100), first=0.0):
        tell("proving I5, 3 statements")
        assert drawn.wait(30)
    with waiting("verifying gemm", Console(file=plain)):
        tell("proving I5, 3 statements")

    assert "verifying gemm: proving I5, 3 statements" in shown.getvalue()
    assert plain.getvalue() == ""


def test_a_run_in_the_interpreter_has_a_bar_on_a_terminal_alone() -> None:
    shown, plain = StringIO(), StringIO()
    drawn = threading.Event()

    class Terminal(StringIO):
        def write(self, text: str) -> int:
            if re.search("1/ ?2", text):
                drawn.set()
            return shown.write(text)

    with waiting("running gemm", Console(file=Terminal(), force_terminal=True, width=100), first=0.0, bar=True):
        for cluster in counted(iter(range(2)), 2):
            assert cluster == 0 or drawn.wait(30)
    with waiting("running gemm", Console(file=plain), bar=True):
        list(counted(iter(range(2)), 2))

    assert "running gemm" in shown.getvalue()
    assert plain.getvalue() == ""


@pytest.mark.parametrize(
    ("kernel", "sizes"),
    [(gemm(), {"M": 128, "N": 64, "K": 16}), (hopper.trace(), {"M": 1, "N": 32, "K": 8})],
    ids=["waves", "agents"],
)
def test_every_block_of_a_run_is_counted(kernel: Kernel, sizes: dict[str, int]) -> None:
    seen: list[tuple[int, int]] = []
    with counted_by(lambda done, total: seen.append((done, total))):
        run(kernel, sizes, tags=False)

    assert seen == [(0, 2), (1, 2), (2, 2)]


def test_nothing_is_shown_before_its_time() -> None:
    shown = StringIO()
    with waiting("verifying gemm", Console(file=shown, force_terminal=True), first=600.0):
        tell("proving I5")

    assert shown.getvalue() == ""


def test_a_contained_file_is_verified_with_its_lines(capsys: Captured) -> None:
    assert main(["verify", f"{REFUTED}:gemm", "--contained", "--solver", "z3"]) == 1
    assert "34 |             mma(mm, acc" in capsys.readouterr().out


@pytest.mark.nightly
def test_a_contained_file_cannot_end_the_process(tmp_path: Path, capsys: Captured) -> None:
    ending = tmp_path / "ending.py"
    ending.write_text("import ctypes\nctypes.CDLL(None)._exit(7)\n", encoding="utf-8")

    assert main(["verify", str(ending), "--contained"]) == 3
    assert "E944" in capsys.readouterr().err


@pytest.mark.nightly
def test_a_file_that_catches_everything_is_ended(tmp_path: Path) -> None:
    stubborn = tmp_path / "stubborn.py"
    loop = "import time\nwhile True:\n    try:\n        time.sleep(1)\n    except BaseException:\n        pass\n"
    stubborn.write_text(loop, encoding="utf-8")
    ended = subprocess.run(  # noqa: S603 reason: this interpreter
        [sys.executable, "-m", "argus", "verify", str(stubborn), "--load-seconds", "0.5"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert ended.returncode == 3
    assert ended.stderr == "argus: the file goes on beyond its time limit and catches every exception; ended\n"


@pytest.mark.parametrize("size", [999999999999, -1])
def test_sizes_out_of_range_say_so(size: int, capsys: Captured) -> None:
    assert main(["run", REFUTED, "--sizes", f"M={size}"]) == 3
    assert f"M = {size} is out of range, expected 0 to 2147483647" in capsys.readouterr().err


def test_a_long_run_in_the_interpreter_ends_at_its_limit(capsys: Captured) -> None:
    sizes = "R=100000,A=1,M=100"
    assert main(["run", COPIED, "--on", "interpreter", "--seconds", "0.1", "--sizes", sizes]) == 3
    assert "did not finish in the interpreter within 0.1 s" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, capsys: Captured) -> None:
    assert main(["completion", shell]) == 0
    assert "_ARGUS_COMPLETE" in capsys.readouterr().out
