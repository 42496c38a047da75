"""Read the user's source files. Only this module does, so that rendering stays pure."""

from __future__ import annotations

import functools
import tokenize
from pathlib import Path


@functools.cache
def read_source(file: str) -> str | None:
    """The text of a Python file in its declared encoding, or None if it cannot be read.

    Each file is read once a process, so that a report shows the text that was traced even if the file changes.
    """
    try:
        with tokenize.open(file) as stream:
            return stream.read()
    except (OSError, SyntaxError, UnicodeDecodeError):
        return None


def current_directory() -> str:
    """The directory that paths in reports are relative to."""
    return str(Path.cwd())


def unreadable(problem: OSError | UnicodeDecodeError) -> str:
    """Why a file cannot be read, in words and without an error number."""
    return "it is not UTF-8" if isinstance(problem, UnicodeDecodeError) else (problem.strerror or str(problem)).lower()
