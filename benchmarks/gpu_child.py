"""Runs a script in a child process that prints one JSON document per kernel, and ends it if it does not answer."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

FIRST_SECONDS = 90.0
"""Time limit of a child for its first result."""


def run_child(script: str, arguments: Sequence[str], seconds: float, take: Callable[[dict[str, Any]], None]) -> str:
    """Pass each document to `take` until the child ends; returns the reason for its end, empty if the last result
    explains it.

    seconds: time limit between results. Each document says in `ends` whether the child ends with it.
    """
    command = [sys.executable, script, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:  # noqa: S603 reason: a script of this folder
        assert child.stdout is not None
        assert child.stderr is not None
        late: list[str] = []
        explained = False
        timer = _timer(child, FIRST_SECONDS, late)
        for line in child.stdout:
            timer.cancel()
            if line.startswith("{"):
                found = json.loads(line)
                take(found)
                explained = found["ends"]
            timer = _timer(child, seconds, late)
        timer.cancel()
        words = child.stderr.read().strip().splitlines()
    if explained:
        return ""
    return late[0] if late else words[-1] if words else f"exit {child.returncode}"


def _timer(child: subprocess.Popen[str], seconds: float, late: list[str]) -> threading.Timer:
    def end() -> None:
        late.append(f"no answer within {seconds:g} s")
        child.kill()

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    return timer
