"""What searches have found: the fastest configuration of each shape, by GPU, in files that people may read.

One file a GPU and version of Argus, `tuning/GPU-DIGEST.json` in the folder of caches. A file that is damaged, foreign
or written by another Argus counts as absent: what it says is a hint for speed, and every kernel is proved all the same.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from attrs import asdict, frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.runtime.kernel_cache import sources_digest
from argus.solvers.cache import default_folder

SCHEMA = "argus.tuning/1"
Shape = tuple[int, int, int]
_DIGITS = 16


@frozen
class Key:
    """M, N and K; the names of the element type and of the target."""

    shape: Shape
    dtype: str = "bf16"
    target: str = "sm_90a"


@frozen
class Found:
    """The best of a search.

    config: its name. microseconds: its medians, by regime. tried: configurations that were timed. finished: whether
    all that were to be timed have been.
    """

    config: str
    microseconds: Mapping[str, float]
    tried: int
    finished: bool = True


def file_of(device: str, folder: Path | None = None) -> Path:
    """Where choices for a GPU of this name are kept by this Argus."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", device).strip("-") or "unnamed"
    root = default_folder() if folder is None else folder
    return root / "tuning" / f"{plain}-{sources_digest()[:_DIGITS]}.json"


def kept(device: str, folder: Path | None = None) -> dict[Key, Found]:
    """All that is known of a GPU; nothing where the file is absent, damaged, or not about it."""
    try:
        data = json.loads(file_of(device, folder).read_text(encoding="utf-8"))
        if (data["schema"], data["device"], data["argus"]) != (SCHEMA, device, sources_digest()):
            return {}
        return dict(_read(each) for each in data["choices"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _read(each: Mapping[str, Any]) -> tuple[Key, Found]:
    """Raises KeyError, TypeError or ValueError for what `keep` has not written."""
    m, n, k = map(int, each["shape"])
    times = {str(regime): float(took) for regime, took in each["microseconds"].items()}
    key = Key((m, n, k), str(each["dtype"]), str(each["target"]))
    return key, Found(str(each["config"]), times, int(each["tried"]), bool(each["finished"]))


def keep(device: str, found: Mapping[Key, Found], folder: Path | None = None) -> Path:
    """Add to what is known, in place of older choices for the same products; the file.

    Raises ArgusError (E302) if it cannot be written.
    """
    path = file_of(device, folder)
    every = kept(device, folder) | dict(found)
    choices = [{**asdict(key), **asdict(each)} for key, each in sorted(every.items(), key=lambda pair: _order(pair[0]))]
    head: dict[str, object] = {"schema": SCHEMA, "device": device, "argus": sources_digest()}
    text = json.dumps({**head, "choices": choices}, indent=1) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replaced(path, text)
    except OSError as problem:
        message = f"cannot write {path}: {problem.strerror or problem}"
        advice = "name another folder by ARGUS_CACHE_DIR, or make room and allow writing there"
        raise ArgusError(Diagnostic("E302", "error", message, help=advice)) from problem
    forget()
    return path


def _replaced(path: Path, text: str) -> None:
    """Written aside first, so that a reader finds the old file or the new one."""
    handle, aside = tempfile.mkstemp(dir=path.parent, suffix=".new")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(aside).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(aside).unlink()
        raise


def _order(key: Key) -> tuple[str, str, Shape]:
    return key.target, key.dtype, key.shape


@lru_cache(maxsize=64)
def _known(device: str, folder: Path) -> Mapping[Key, Found]:
    return kept(device, folder)


def choice(device: str, key: Key) -> str | None:
    """The name that is kept for a product on a GPU, None if none is; a file is read once a process."""
    found = _known(device, default_folder()).get(key)
    return None if found is None else found.config


def forget() -> None:
    """Read files again."""
    _known.cache_clear()
