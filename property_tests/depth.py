"""Number of examples per property: a fifth in the default tier, all in the nightly tier, many in `make fuzz`."""

from __future__ import annotations

from hypothesis import settings

_FULL = 100


def examples(full: int, search: int | None = None) -> int:
    """`full` in the nightly tier, a fraction of it in the default tier, `search` in `make fuzz`, with fresh seeds."""
    profile = settings.default
    if profile is not None and not profile.derandomize:
        return full if search is None else search
    share = _FULL if profile is None else profile.max_examples
    return -(-full * share // _FULL)
