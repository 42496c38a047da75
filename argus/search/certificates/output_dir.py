"""A folder that a user named for what a search ends with: never half of it, and nobody else's files lost."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.search.certificates import certificate
from argus.search.certificates.claims import IR, LOADER
from argus.search.certificates.file_claims import PROBLEM

REPORT = "report.html"
GENERATOR = '<meta name="generator" content="argus optimize">'
"""What tells a report of ours from another page."""


def check_place(folder: Path) -> None:
    """Raises ArgusError (E302) now, and not after a night, where files cannot be written there or are another's."""
    with _blamed(folder), tempfile.TemporaryDirectory(prefix=".argus-", dir=_made(folder)):
        pass
    _check_ours(folder, (certificate.NAME, IR, LOADER, PROBLEM, REPORT))


@contextmanager
def placed(folder: Path) -> Generator[Path]:
    """A folder to write into, whose files are moved into this one at the end; at an exception it stays as it was.

    Those of the same name there are replaced, the certificate last: while it is not there, nothing is claimed.
    Raises ArgusError (E302).
    """
    with _blamed(folder), tempfile.TemporaryDirectory(prefix=".argus-", dir=_made(folder)) as name:
        made = Path(name)
        yield made
        names = sorted((each.name for each in made.iterdir()), key=lambda each: each == certificate.NAME)
        _check_ours(folder, names)
        if certificate.NAME in names:
            (folder / certificate.NAME).unlink(missing_ok=True)
        for each in names:
            (made / each).replace(folder / each)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _check_ours(folder: Path, names: Iterable[str]) -> None:
    if _delivered(folder):
        return
    there = [name for name in names if (folder / name).exists() and not _is_report(folder / name)]
    if there:
        message = f"`{folder}` has {', '.join(f'`{name}`' for name in there)}, which no search has written there"
        raise ArgusError(Diagnostic("E302", "error", message, help="name another folder, or move these elsewhere"))


def _delivered(folder: Path) -> bool:
    """Whether the folder is one of ours: its certificate says so."""
    with suppress(OSError, ValueError):
        found: object = json.loads((folder / certificate.NAME).read_bytes())
        return isinstance(found, dict) and cast("dict[str, object]", found).get("schema") == certificate.SCHEMA
    return False


def _is_report(path: Path) -> bool:
    with suppress(OSError):
        return path.name == REPORT and GENERATOR.encode() in path.read_bytes()
    return False


@contextmanager
def _blamed(folder: Path) -> Generator[None]:
    try:
        yield
    except OSError as problem:
        message = f"cannot write to {folder}: {problem.strerror or problem}"
        advice = "name another folder, or make room and allow writing there"
        raise ArgusError(Diagnostic("E302", "error", message, help=advice)) from problem
