"""The tuning database: the fastest configuration found for each product shape, as readable JSON, per GPU model.

Each GPU model and version of Argus has a file `tuning/GPU-DIGEST.json` in the cache folder. A file that is damaged, or
that another version wrote, counts as absent: a choice affects only speed, and every kernel must be proved regardless.
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
    """A product: its shape (M, N, K), and the names of element type and target."""

    shape: Shape
    dtype: str = "bf16"
    target: str = "sm_90a"


@frozen
class TunedConfig:
    """The best configuration that a search found.

    config: its name. microseconds: its median times by regime. tried: how many configurations were timed. finished:
    whether the search timed all of its candidates.
    """

    config: str
    microseconds: Mapping[str, float]
    tried: int
    finished: bool = True


def file_of(device: str, folder: Path | None = None) -> Path:
    """The file with choices for GPUs of this name, for this version of Argus."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", device).strip("-") or "unnamed"
    root = default_folder() if folder is None else folder
    return root / "tuning" / f"{plain}-{sources_digest()[:_DIGITS]}.json"


def load_choices(device: str, folder: Path | None = None) -> dict[Key, TunedConfig]:
    """All stored choices for a GPU model; empty where the file is absent, damaged, or for another model."""
    try:
        data = json.loads(file_of(device, folder).read_text(encoding="utf-8"))
        if (data["schema"], data["device"], data["argus"]) != (SCHEMA, device, sources_digest()):
            return {}
        return dict(_read(each) for each in data["choices"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _read(each: Mapping[str, Any]) -> tuple[Key, TunedConfig]:
    """Raises KeyError, TypeError or ValueError for an entry that `store_choices` did not write."""
    m, n, k = map(int, each["shape"])
    times = {str(regime): float(took) for regime, took in each["microseconds"].items()}
    key = Key((m, n, k), str(each["dtype"]), str(each["target"]))
    return key, TunedConfig(str(each["config"]), times, int(each["tried"]), bool(each["finished"]))


def store_choices(device: str, found: Mapping[Key, TunedConfig], folder: Path | None = None) -> Path:
    """Store choices, replacing older ones for the same products; returns the file.

    Raises ArgusError (E302) if it cannot be written.
    """
    path = file_of(device, folder)
    every = load_choices(device, folder) | dict(found)
    choices = [{**asdict(key), **asdict(each)} for key, each in sorted(every.items(), key=lambda pair: _order(pair[0]))]
    head: dict[str, object] = {"schema": SCHEMA, "device": device, "argus": sources_digest()}
    text = json.dumps({**head, "choices": choices}, indent=1) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, text)
    except OSError as problem:
        message = f"cannot write {path}: {problem.strerror or problem}"
        advice = "set ARGUS_CACHE_DIR to another folder, or make room and allow writing there"
        raise ArgusError(Diagnostic("E302", "error", message, help=advice)) from problem
    clear_cache()
    return path


def _replace(path: Path, text: str) -> None:
    """Writes to a temporary file and renames it, so that a reader finds the old file or the new one."""
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
def _known(device: str, folder: Path) -> Mapping[Key, TunedConfig]:
    return load_choices(device, folder)


def best_config(device: str, key: Key) -> str | None:
    """The stored configuration name for a product on a GPU, or None; a process reads each file once."""
    found = _known(device, default_folder()).get(key)
    return None if found is None else found.config


def clear_cache() -> None:
    """Make later calls read the files again."""
    _known.cache_clear()
