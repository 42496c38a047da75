"""A lock that gives one process exclusive use of a GPU while it measures.

It locks a file named after the GPU in the folder for temporary files, which all users share. The operating system
releases the lock when the process ends, however it ends.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from pathlib import Path

from attrs import define, field

from argus.core.diagnostic import ArgusError, Diagnostic

_BETWEEN = 0.002
"""Seconds between attempts to lock."""
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW


@define
class GpuLock:
    """The lock of one GPU. gpu: its unique name on this machine. moment: how many seconds `acquire` waits."""

    gpu: str
    moment: float = 1.0
    folder: Path = field(factory=lambda: Path(tempfile.gettempdir()))
    _file: int | None = field(default=None, init=False)

    def acquire(self) -> bool:
        """Try to lock the GPU; returns whether it succeeded. Raises ArgusError (E302) if the file cannot be opened."""
        assert self._file is None
        number = self._open()
        until = time.monotonic() + self.moment
        while not _try_lock(number):
            if time.monotonic() >= until:
                os.close(number)
                return False
            time.sleep(_BETWEEN)
        self._file = number
        return True

    def release(self) -> None:
        """Release the lock, which must be held."""
        number, self._file = self._file, None
        assert number is not None
        os.close(number)

    @property
    def path(self) -> Path:
        return self.folder / f"argus-gpu-{''.join(each if each.isalnum() else '-' for each in self.gpu)}.lock"

    def _open(self) -> int:
        """Opens the file for reading first: another user's file can be locked but not created."""
        try:
            try:
                return os.open(self.path, _FLAGS)
            except FileNotFoundError:
                return os.open(self.path, _FLAGS | os.O_CREAT, 0o644)
        except OSError as problem:
            message = f"cannot lock {self.path}, which gives a process exclusive use of the GPU: {problem.strerror}"
            advice = "remove it, or set TMPDIR to another folder for temporary files"
            raise ArgusError(Diagnostic("E302", "error", message, help=advice)) from problem


def _try_lock(number: int) -> bool:
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
