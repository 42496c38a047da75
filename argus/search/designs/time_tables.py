"""Reads tables of recorded times: those under benchmarks/results, and other files of the same form."""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path

from attrs import frozen
from cattrs import BaseValidationError, Converter

from argus.core.diagnostic import ArgusError, Diagnostic

_READER = Converter()
_BRIEF = "duty-cycled"
_SCALE = 1000.0


@frozen
class _Row:
    """A row of a table, with its time in either unit. Of several regimes, only the duty-cycled one is used."""

    shape: tuple[int, int, int]
    name: str
    microseconds: float | None = None
    milliseconds: float | None = None
    regime: str = _BRIEF
    theirs: bool = False

    @property
    def time(self) -> float | None:
        """In microseconds; None if absent or invalid."""
        scaled = self.microseconds if self.milliseconds is None else self.milliseconds * _SCALE
        return scaled if scaled is not None and isfinite(scaled) and scaled > 0 else None


def table_rows(path: Path) -> list[tuple[str, str, float]]:
    """(shape, name, microseconds) of each row with a time, rows of peers left out.

    Raises ArgusError (E906) for a malformed file.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        found = _READER.structure(data["rows"], list[_Row])
    except (OSError, ValueError, KeyError, TypeError, BaseValidationError) as problem:
        message = f"`{path}` is not a table of times: {problem}"
        advice = "expected JSON with `rows`, each with `shape`, `name` and `microseconds`"
        raise ArgusError(Diagnostic("E906", "error", message, help=advice)) from problem
    meant = [each for each in found if each.regime == _BRIEF and not each.theirs]
    return [("x".join(map(str, each.shape)), each.name, each.time) for each in meant if each.time is not None]


def times_of_shape(path: Path, shape: str) -> dict[str, float]:
    """Microseconds by design name for one shape. Raises ArgusError (E906)."""
    return {name: time for at, name, time in table_rows(path) if at == shape}
