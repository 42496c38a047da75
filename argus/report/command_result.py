"""The result that a CLI command returns to `main`."""

from __future__ import annotations

from attrs import frozen


@frozen
class Outcome:
    """code: the exit code. document: the JSON of `--json`, without the exit code."""

    code: int
    document: dict[str, object]
