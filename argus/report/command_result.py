"""The result that a CLI command returns to `main`."""

from __future__ import annotations

from types import MappingProxyType

from attrs import frozen

EXIT_CODES = MappingProxyType(
    {
        0: "proved, or correct",
        1: "refuted, or wrong",
        2: "unknown, vacuous, or an output without an assertion",
        3: "usage error, bad input or an ill-formed program",
        4: "a bug in Argus",
        130: "interrupted",
        141: "broken pipe",
    }
)
"""What each exit code means."""


@frozen
class Outcome:
    """code: the exit code. document: the JSON of `--json`, without the exit code."""

    code: int
    document: dict[str, object]
