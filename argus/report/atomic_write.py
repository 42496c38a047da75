"""Write output files atomically: a reader sees the old file or the complete new one."""

from __future__ import annotations

import tempfile
from pathlib import Path

from argus.core.diagnostic import ArgusError, Diagnostic


def write_whole(path: Path, data: bytes) -> None:
    """Create or replace a file. Raises ArgusError (E302) if it cannot be written."""
    try:
        with tempfile.TemporaryDirectory(prefix=f".{path.stem}-", dir=path.parent) as scratch:
            whole = Path(scratch) / path.name
            whole.write_bytes(data)
            whole.replace(path)
    except (OSError, ValueError) as error:
        reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        raise ArgusError(
            Diagnostic(
                "E302",
                "error",
                f"cannot write {path}: {reason}",
                help="name another file, or make room and allow writing there",
            )
        ) from error


def write_text(path: Path, text: str) -> str:
    """Write a file, create its folder, and return its path. Raises ArgusError (E302) if it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        message = f"cannot write {path}: {problem.strerror or problem}"
        advice = "name another folder, or make room and allow writing there"
        raise ArgusError(Diagnostic("E302", "error", message, help=advice)) from problem
    write_whole(path, text.encode())
    return str(path)
