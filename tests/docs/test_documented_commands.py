"""The commands in documents print the output shown there; `--update-golden` rewrites the documents."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = (
    "README.md",
    "docs/quickstart.md",
    "docs/hopper.md",
    "docs/layouts.md",
    "docs/optimize.md",
    "docs/kernel-files.md",
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "cookbook").glob("*.md")),
)
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CANDIDATE = re.compile(r" +\d+(/\d+)? \w+( \[.*\])?: ")
"""A line of a search: it ends with the seconds of the candidate, or has them before the reason of its rejection."""
BASH = shutil.which("bash")
SHELL = 'set -e; argus() { "$PYTHON" -m argus "$@"; }; python() { "$PYTHON" "$@"; }; '


@pytest.mark.nightly
@pytest.mark.skipif(BASH is None, reason="the commands are shell commands")
@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands_print_what_is_shown(document: str, tmp_path: Path, update_golden: bool) -> None:
    path = ROOT / document
    text = path.read_text(encoding="utf-8")

    real = FENCE.sub(lambda block: rerun(block, tmp_path), text)

    if update_golden:
        path.write_text(real, encoding="utf-8")
        return
    assert comparable(real) == comparable(text), f"{document} is out of date: `make golden` rewrites it"


def rerun(block: re.Match[str], folder: Path) -> str:
    """The block with the actual output of its commands. A Python block that names a file is written to the folder."""
    language, body = block.groups()
    name = re.match(r"# (\w+\.py)\n", body)
    if language == "python" and name is not None:
        (folder / name[1]).write_text(body, encoding="utf-8")
    if language != "console":
        return block[0]
    commands = re.findall(r"^\$ (.*)$", body, re.MULTILINE)
    return "```console\n" + "".join(f"$ {command}\n{output(command, folder)}" for command in commands) + "```"


def output(command: str, folder: Path) -> str:
    environment = os.environ | {
        "PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "ARGUS_CACHE_DIR": str(folder / "cache"),
        "COLUMNS": "80",
    }
    done = subprocess.run(  # noqa: S603 reason: commands of our own documents
        (str(BASH), "-c", SHELL + command),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    return done.stdout + done.stderr


def comparable(text: str) -> str:
    """The text without figures that depend on the machine or on the order of queries."""
    return "\n".join(without_figures(text.splitlines()))


def without_figures(lines: list[str]) -> Iterator[str]:
    in_cost = False
    for line in lines:
        in_cost = line.startswith(("  cost ", "  time ")) or (in_cost and line.startswith("   "))
        shown = re.sub(r"[\d.]+", "N", line) if in_cost else line
        yield re.sub(r"(, )\d+\.\d s(?=$|:)", r"\1N s", shown) if CANDIDATE.match(line) else shown
