"""Writes to the user's output folder: all files or none, and without overwriting files of other origin."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.search.certificates import certificate
from argus.search.certificates.claims import IR, LOADER
from argus.search.certificates.file_claims import PROBLEM

REPORT, EVENTS = "report.html", "run.jsonl"
"""The page of a run, and the events from which it is rendered."""
KERNELS, MADE = "kernels.py", '"""Kernels that `argus optimize` found of'
"""The file of a delivery without a certificate, of a torch module, and how it begins."""
GENERATOR = '<meta name="generator" content="argus optimize">'
"""Marks a page as our report."""


def check_writable(folder: Path) -> None:
    """Raises ArgusError (E302) before a search if the folder is not writable or contains foreign files."""
    with _as_diagnostics(folder), tempfile.TemporaryDirectory(prefix=".argus-", dir=_ensure_folder(folder)):
        pass
    _check_not_foreign(folder, (certificate.NAME, IR, LOADER, PROBLEM, REPORT, EVENTS, KERNELS))


@contextmanager
def staged_output(folder: Path) -> Generator[Path]:
    """Yield a temporary folder whose files are moved to `folder` at the end; after an exception nothing is moved.

    Replaces files of the same names, the certificate last: without it there are no claims. Raises ArgusError (E302).
    """
    with _as_diagnostics(folder), tempfile.TemporaryDirectory(prefix=".argus-", dir=_ensure_folder(folder)) as name:
        made = Path(name)
        yield made
        names = sorted((each.name for each in made.iterdir()), key=lambda each: each == certificate.NAME)
        _check_not_foreign(folder, names)
        if {certificate.NAME, KERNELS} & set(names):
            (folder / certificate.NAME).unlink(missing_ok=True)
        for each in names:
            if (folder / each).is_dir():  # a launch of an earlier delivery
                shutil.rmtree(folder / each)
            (made / each).replace(folder / each)


def _ensure_folder(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _check_not_foreign(folder: Path, names: Iterable[str]) -> None:
    if _delivered(folder):
        return
    there = [name for name in names if (folder / name).exists() and not _is_report(folder / name)]
    if there:
        message = f"`{folder}` has {', '.join(f'`{name}`' for name in there)}, which were not written by a search"
        raise ArgusError(Diagnostic("E302", "error", message, help="name another folder, or move these elsewhere"))


def _delivered(folder: Path) -> bool:
    """Whether the folder contains a certificate of ours, or the kernels of a torch module."""
    with suppress(OSError):
        if (folder / KERNELS).read_bytes().startswith(MADE.encode()):
            return True
    with suppress(OSError, ValueError):
        found: object = json.loads((folder / certificate.NAME).read_bytes())
        return isinstance(found, dict) and cast("dict[str, object]", found).get("schema") == certificate.SCHEMA
    return False


def _is_report(path: Path) -> bool:
    with suppress(OSError):
        return path.name == REPORT and GENERATOR.encode() in path.read_bytes()
    return False


@contextmanager
def _as_diagnostics(folder: Path) -> Generator[None]:
    try:
        yield
    except OSError as problem:
        message = f"cannot write to {folder}: {problem.strerror or problem}"
        advice = "name another folder, or free disk space and allow writing there"
        raise ArgusError(Diagnostic("E302", "error", message, help=advice)) from problem
