"""The worker as a child process: what hangs is stopped, what crashes is told."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.runtime.request import Request, Result, read_result

WORKER = (sys.executable, "-m", "argus.runtime.worker")
_SHOWN_LINES = 5


def launched(request: Request, folder: Path, seconds: float, command: Sequence[str] = WORKER) -> Result:
    """Run the worker on a folder that holds the tensors; it leaves the outputs there.

    seconds: after which it is stopped. command: the worker, which gets the folder as its last argument.
    Raises ArgusError: E410 if it is stopped, E409 if it dies, and what the worker itself reports (E405 to E409).
    """
    request.write(folder)
    try:
        done = subprocess.run(
            (*command, str(folder)),
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        message = f"the kernel did not finish within {seconds:g} s, and was stopped"
        repair = "verify it: a wait that nobody answers is refuted with its cycle; or allow more time (--seconds)"
        raise ArgusError(Diagnostic("E410", "error", message, help=repair)) from None
    try:
        return read_result(folder)
    except (OSError, ValueError):
        raise _died(done.returncode, done.stderr) from None


def _died(status: int, output: str) -> ArgusError:
    message = f"the process that ran the kernel ended with status {status} and left no result"
    last = "\n".join(output.splitlines()[-_SHOWN_LINES:])
    facts = (("last words", last),) if last else ()
    repair = "run it under compute-sanitizer, or in the interpreter"
    return ArgusError(Diagnostic("E409", "error", message, facts=facts, help=repair))
