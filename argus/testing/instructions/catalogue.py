"""The list of all instruction tests."""

from __future__ import annotations

from functools import cache

from argus.testing.instructions.arithmetic import arithmetic_trials
from argus.testing.instructions.moves import move_trials
from argus.testing.instructions.products import warp_trials, warpgroup_trials
from argus.testing.instructions.trial import Trial


@cache
def trials() -> tuple[Trial, ...]:
    """All instruction tests, by family."""
    return (*move_trials(), *arithmetic_trials(), *warp_trials(), *warpgroup_trials())
