"""Run a compiler or a disassembler. Only this file starts programs for `argus.emit`, but for CPU compilers."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen


@frozen
class Finished:
    """status: the exit status. output, errors: text of standard output and standard error."""

    status: int
    output: str
    errors: str


def run_tool(arguments: Sequence[str], folder: Path, seconds: float) -> Finished | None:
    """Run a program in a folder; None if it did not finish within so many seconds. Raises OSError like `subprocess`."""
    try:
        done = subprocess.run(
            tuple(arguments),
            cwd=folder,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    return Finished(done.returncode, done.stdout, done.stderr)
