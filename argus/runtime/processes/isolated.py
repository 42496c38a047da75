"""The worker as a child process: what hangs is stopped, what crashes is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.runtime.processes.request import Request, Result, read_result

WORKER = (sys.executable, "-m", "argus.runtime.processes.worker")
_SHOWN_LINES = 5
_PATIENCE = 5.0
"""Seconds in which a process that is killed ends."""


def launched(request: Request, folder: Path, seconds: float, command: Sequence[str] = WORKER) -> Result:
    """Run the worker on a folder that holds the tensors; it leaves the outputs there.

    seconds: after which it is stopped. command: the worker, which gets the folder as its last argument.
    Raises ArgusError: E410 if it is stopped, E409 if it dies, E408 if it cannot be started, and what the worker itself
    reports (E405 to E409).
    """
    request.write(folder)
    status, output = _ran((*command, str(folder)), seconds)
    try:
        return read_result(folder)
    except (OSError, ValueError, LookupError, TypeError):
        raise _died(status, output) from None


def _ran(command: Sequence[str], seconds: float) -> tuple[int, str]:
    """The status and the last words of a process. Raises ArgusError: E408 if none can be started, E410."""
    try:
        process = subprocess.Popen(
            command,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as problem:
        message = f"no process could be started for the kernel: {problem.strerror or problem}"
        raise ArgusError(Diagnostic("E408", "error", message, help="free memory, or end other processes")) from problem
    try:
        _, output = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        message = f"the kernel did not finish within {seconds:g} s, and was stopped{_stopped(process)}"
        repair = "verify it: a wait that nobody answers is refuted with its cycle; or allow more time (--seconds)"
        raise ArgusError(Diagnostic("E410", "error", message, help=repair)) from None
    except BaseException:
        _stopped(process)
        raise
    return process.returncode, output


def _stopped(process: subprocess.Popen[str]) -> str:
    """End it; what remains to be said if it does not: a driver may hold a process that waits for the GPU."""
    process.kill()
    try:
        process.communicate(timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        return f", though its process ({process.pid}) has not ended yet"
    return ""


def _died(status: int, output: str) -> ArgusError:
    ended = f"was ended by {signal.Signals(-status).name}" if _is_signal(status) else f"ended with status {status}"
    message = f"the process that ran the kernel {ended} and left no result"
    last = "\n".join(output.splitlines()[-_SHOWN_LINES:])
    facts = (("last words", last),) if last else ()
    repair = "run it under compute-sanitizer, or in the interpreter"
    return ArgusError(Diagnostic("E409", "error", message, facts=facts, help=repair))


def _is_signal(status: int) -> bool:
    return status < 0 and -status in {each.value for each in signal.Signals}
