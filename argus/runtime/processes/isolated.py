"""Runs a launch in a worker process: a hang is stopped, and a crash becomes a diagnostic."""

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
"""Seconds to wait for a killed process to end."""


def run_worker(request: Request, folder: Path, seconds: float, command: Sequence[str] = WORKER) -> Result:
    """Run the worker on a folder that holds the input tensors; it writes the outputs there.

    seconds: the time limit. command: the worker, which gets the folder as its last argument.
    Raises ArgusError: E410 on timeout, E409 if the worker dies, E408 if it cannot be started, and the errors that the
    worker itself reports (E405 to E409).
    """
    request.write(folder)
    status, output = run_command((*command, str(folder)), seconds)
    try:
        return read_result(folder)
    except (OSError, ValueError, LookupError, TypeError):
        raise _death(status, output) from None


def run_command(command: Sequence[str], seconds: float) -> tuple[int, str]:
    """The exit status and error output of a process. Raises ArgusError: E408 if it cannot start, E410 on timeout."""
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
        message = f"the kernel did not finish within {seconds:g} s, and was stopped{_kill(process)}"
        repair = "verify it: a deadlock is refuted with its cycle of waits; or allow more time (--seconds)"
        raise ArgusError(Diagnostic("E410", "error", message, help=repair)) from None
    except BaseException:
        _kill(process)
        raise
    return process.returncode, output


def _kill(process: subprocess.Popen[str]) -> str:
    """Kill a process; returns a remark if it does not end: a driver may block a process that waits for the GPU."""
    process.kill()
    try:
        process.communicate(timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        return f", though its process ({process.pid}) has not ended yet"
    return ""


def _death(status: int, output: str) -> ArgusError:
    ended = f"was ended by {signal.Signals(-status).name}" if _is_signal(status) else f"ended with status {status}"
    message = f"the process that ran the kernel {ended} and left no result"
    last = "\n".join(output.splitlines()[-_SHOWN_LINES:])
    facts = (("last words", last),) if last else ()
    repair = "run it under compute-sanitizer, or in the interpreter"
    return ArgusError(Diagnostic("E409", "error", message, facts=facts, help=repair))


def _is_signal(status: int) -> bool:
    return status < 0 and -status in {each.value for each in signal.Signals}
