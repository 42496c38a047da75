"""How many examples of a dear claim are tried: few in a test run, which draws the same ones, many in `make fuzz`."""

from __future__ import annotations

from hypothesis import settings


def examples(run: int, search: int) -> int:
    """`run` under the profile `ci`, `search` where seeds are fresh."""
    profile = settings.default
    return run if profile is None or profile.derandomize else search
