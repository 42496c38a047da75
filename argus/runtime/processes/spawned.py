"""Spawns child processes that do not rerun the parent's main file and that end with their parent.

A process that `multiprocessing` spawns runs its parent's main file again; if that is a script without a `__main__`
guard, it would start the same work again. None of our children needs that file.
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
"""Seconds to wait for a killed process to end; one that is blocked in a driver may not."""


_BLAS = "OPENBLAS_NUM_THREADS"
"""Read by NumPy's BLAS when it is loaded."""


@contextmanager
def without_main_module(blas_threads: int | None = None) -> Generator[None]:
    """Processes spawned within the block do not run the main file, and start with SIGINT blocked.

    blas_threads: most threads of one of their matrix products, unless the environment says; None: as in this process.
    Threads wait for each other in a loop, which takes more processor time than the products of an instruction's tile.

    Daemonic processes, such as Dask workers, may spawn here too. `multiprocessing` forbids it since their children
    could outlive them; children that call `set_up_child` do not.
    """
    with _SPAWNING:
        resource_tracker.ensure_running()  # starting it would unblock SIGINT
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        masked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        config = cast("dict[str, Any]", getattr(current_process(), "_config", {}))
        daemon = config.pop("daemon", None)
        limited = blas_threads is not None and _BLAS not in os.environ
        if limited:
            os.environ[_BLAS] = str(blas_threads)
        try:
            yield
        finally:
            if limited:
                os.environ.pop(_BLAS, None)
            if daemon is not None:
                config["daemon"] = daemon
            signal.pthread_sigmask(signal.SIG_SETMASK, masked)
            sys.modules["__main__"] = main


_SPAWNING = threading.RLock()
"""Held while spawning: the block changes state of the whole process."""


def set_up_child() -> None:
    """Called in a spawned process: start a process group that ignores SIGINT and is killed when the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.setsid()
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def limit_memory(memory: int) -> None:
    """Limit the data memory of this process, and of those that it starts, to this many bytes each (RLIMIT_DATA)."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (memory if hard < 0 else min(memory, hard), hard))


def _end_with(parent: int) -> None:
    connection.wait([parent])
    os.killpg(os.getpgrp(), signal.SIGKILL)


def kill_group(process: BaseProcess) -> None:
    """Kill a process with its group; also works before the process has called `set_up_child`."""
    with suppress(ProcessLookupError):
        if process.pid is not None:
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join(_PATIENCE)
