"""Processes that begin with nothing of the program that starts them, and leave nothing behind when it ends.

A process that `multiprocessing` spawns runs the main file of its parent again, which may be a script without a guard:
it would begin the same work once more. None of ours needs that file.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from multiprocessing import connection, current_process, parent_process, resource_tracker
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Any, cast

_PATIENCE = 5.0
"""Seconds in which a process that is told to end does so; one that a driver holds does not."""


@contextmanager
def bare() -> Generator[None]:
    """What is spawned within does not run the main file, and hears of no Ctrl-C before it can say what that means.

    Daemons may spawn, too, such as workers of Dask: `multiprocessing` forbids it, as children would outlive them, which
    those that have settled do not.
    """
    with _ONE:
        resource_tracker.ensure_running()  # which lets Ctrl-C through when it begins
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        masked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        says = cast("dict[str, Any]", getattr(current_process(), "_config", {}))
        daemon = says.pop("daemon", None)
        try:
            yield
        finally:
            if daemon is not None:
                says["daemon"] = daemon
            signal.pthread_sigmask(signal.SIG_SETMASK, masked)
            sys.modules["__main__"] = main


_ONE = threading.RLock()
"""Of threads that spawn one does so at a time: what is put aside here is the process's."""


def settled() -> None:
    """In a process that was spawned: a group of its own, which ends with its parent, and is not interrupted."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.setsid()
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_ended_with, args=(parent.sentinel,), daemon=True).start()


def bounded(memory: int) -> None:
    """This process, and those that it starts, may write to so many bytes of memory at most."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (memory if hard < 0 else min(memory, hard), hard))


def _ended_with(parent: int) -> None:
    connection.wait([parent])
    os.killpg(os.getpgrp(), signal.SIGKILL)


def ended(process: BaseProcess) -> None:
    """End a process that has settled, with all of its group, or that has not come so far."""
    with suppress(ProcessLookupError):
        if process.pid is not None:
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join(_PATIENCE)
