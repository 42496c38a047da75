"""Recorded times: the tables under benchmarks/results, and tables of the same form that others have measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from cattrs import BaseValidationError, Converter

from argus.core.diagnostic import ArgusError, Diagnostic

_READER = Converter()
_BRIEF = "duty-cycled"


def rows(path: Path) -> list[tuple[str, str, float]]:
    """Shape, name and microseconds of each row that has a time; of several regimes the one that pauses between calls.

    Raises ArgusError (E906) for a file that is no table.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        found = [_row(each) for each in _READER.structure(data["rows"], list[dict[str, object]])]
        return [each for each in found if each is not None]
    except (OSError, ValueError, KeyError, TypeError, BaseValidationError) as problem:
        message = f"`{path}` is no table of times: {problem}"
        advice = "expected JSON with `rows`, each with `shape`, `name` and `microseconds`"
        raise ArgusError(Diagnostic("E906", "error", message, help=advice)) from problem


def _row(row: Mapping[str, object]) -> tuple[str, str, float] | None:
    if row.get("regime", _BRIEF) != _BRIEF or row.get("theirs"):
        return None
    micro, milli = row.get("microseconds"), row.get("milliseconds")
    if micro is None and milli is None:
        return None
    time = _READER.structure(micro, float) if milli is None else _READER.structure(milli, float) * 1000
    shape = _READER.structure(row["shape"], tuple[int, int, int])
    return "x".join(map(str, shape)), _READER.structure(row["name"], str), time


def timed(path: Path, shape: str) -> dict[str, float]:
    """Microseconds by name, of one shape. Raises ArgusError (E906)."""
    return {name: time for at, name, time in rows(path) if at == shape}
