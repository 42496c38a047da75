"""Saves an internal error of Argus with everything needed to reproduce it."""

from __future__ import annotations

import platform
import shlex
import traceback
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from argus import __version__
from argus.report.sources import read_source
from argus.solvers.cache import default_folder


def save(problem: Exception, given: Sequence[str]) -> str:
    """Write traceback, command and input files to the user's cache; returns the path, or why nothing was saved."""
    trace = "".join(traceback.format_exception(problem))
    text = f"argus {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
    text += f"command: argus {shlex.join(given)}\n\n{trace}\n" + "".join(_sources(given))
    path = default_folder() / "internal-errors" / f"{sha256(text.encode()).hexdigest()[:16]}.txt"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as full:
        return f"(not saved: {path.parent}: {full.strerror})"
    return str(path)


def _sources(given: Sequence[str]) -> Iterator[str]:
    """The text of each file named on the command line."""
    for argument in given:
        for name in dict.fromkeys((argument, argument.rpartition(":")[0])):
            text = read_source(name) if name and Path(name).is_file() else None
            if text is not None:
                yield f"file: {Path(name).absolute()}\n\n{text}\n"
