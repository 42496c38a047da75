"""How many examples of a claim are tried: a fifth in the default tier, all in the nightly one, many in `make fuzz`."""

from __future__ import annotations

from hypothesis import settings

_FULL = 100


def examples(full: int, search: int | None = None) -> int:
    """`full` in the nightly tier, its share in the default tier, `search` under `make fuzz`, whose seeds are fresh."""
    profile = settings.default
    if profile is not None and not profile.derandomize:
        return full if search is None else search
    share = _FULL if profile is None else profile.max_examples
    return -(-full * share // _FULL)
