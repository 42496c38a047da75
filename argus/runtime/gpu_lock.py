"""One GPU, many processes: each has it for itself for as long as it measures or is measured beside.

A lock on a file that is named after the GPU, in the folder for temporary files, which all users share. The system gives
it back when a process ends, however it ends.
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
"""Seconds from one look at the lock to the next."""
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW


@define
class Turn:
    """gpu: what names it on this machine. moment: seconds that `take` waits."""

    gpu: str
    moment: float = 1.0
    folder: Path = field(factory=lambda: Path(tempfile.gettempdir()))
    _file: int | None = field(default=None, init=False)

    def take(self) -> bool:
        """Whether the GPU is this process's until `give`. Raises ArgusError (E302) where there can be no lock."""
        assert self._file is None
        number = self._opened()
        until = time.monotonic() + self.moment
        while not _locked(number):
            if time.monotonic() >= until:
                os.close(number)
                return False
            time.sleep(_BETWEEN)
        self._file = number
        return True

    def give(self) -> None:
        """What was not taken cannot be given back."""
        number, self._file = self._file, None
        assert number is not None
        os.close(number)

    @property
    def path(self) -> Path:
        return self.folder / f"argus-gpu-{''.join(each if each.isalnum() else '-' for each in self.gpu)}.lock"

    def _opened(self) -> int:
        """Another user's file may be locked, and not be made."""
        try:
            try:
                return os.open(self.path, _FLAGS)
            except FileNotFoundError:
                return os.open(self.path, _FLAGS | os.O_CREAT, 0o644)
        except OSError as problem:
            message = f"cannot lock {self.path}, by which processes take turns on the GPU: {problem.strerror}"
            advice = "remove it, or name another folder for temporary files by TMPDIR"
            raise ArgusError(Diagnostic("E302", "error", message, help=advice)) from problem


def _locked(number: int) -> bool:
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
