"""The console script: handles Ctrl-C while `argus.cli.main` is being imported and after it has returned."""

from __future__ import annotations

import os
import signal
import sys

_INTERRUPTED = 130


def _stop(_signal: int, _frame: object) -> None:
    """Print one line instead of a traceback, and exit: no command is running."""
    os.write(2, b"argus: interrupted\n")
    os._exit(_INTERRUPTED)


def main() -> int:
    """Run the command of `sys.argv` and return its exit code."""
    signal.signal(signal.SIGINT, _stop)
    from argus.cli.main import main as run  # noqa: PLC0415 reason: an interrupt while this imports is caught by now

    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code = run()
    except KeyboardInterrupt:  # while `run` itself was reporting an interrupt
        code = _INTERRUPTED
    signal.signal(signal.SIGINT, _stop)
    if code == _INTERRUPTED:
        sys.stderr.write("argus: interrupted\n")
    return code
