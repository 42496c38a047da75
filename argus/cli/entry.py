"""The console script: handles Ctrl-C while `argus.cli.main` is being imported and after it has returned."""

from __future__ import annotations

import os
import signal
import sys

from argus.verifier.stubborn import on_stubborn

_end_process = os._exit
"""Kept, since `os._exit` raises while a file is loaded."""
_BAD_INPUT, _INTERRUPTED = 3, 130


def _stop(_signal: int, _frame: object) -> None:
    """Print one line instead of a traceback, and exit: no command is running."""
    os.write(2, b"argus: interrupted\n")
    os._exit(_INTERRUPTED)


def _give_up() -> None:
    """End: the file that is being loaded catches whatever would stop it."""
    os.write(2, b"argus: the file goes on beyond its time limit and catches every exception; ended\n")
    _end_process(_BAD_INPUT)


def main() -> int:
    """Run the command of `sys.argv` and return its exit code."""
    signal.signal(signal.SIGINT, _stop)
    from argus.cli.main import main as run  # noqa: PLC0415 reason: an interrupt while this imports is caught by now

    signal.signal(signal.SIGINT, signal.default_int_handler)
    on_stubborn.set(_give_up)
    try:
        code = run()
    except KeyboardInterrupt:  # while `run` itself was reporting an interrupt
        code = _INTERRUPTED
    signal.signal(signal.SIGINT, _stop)
    if code == _INTERRUPTED:
        sys.stderr.write("argus: interrupted\n")
    return code
