"""What a command of the command line hands to `main`."""

from __future__ import annotations

from attrs import frozen


@frozen
class Outcome:
    """document: what `--json` prints, without the exit code."""

    code: int
    document: dict[str, object]
