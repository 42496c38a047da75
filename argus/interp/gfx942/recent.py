"""The instructions that a wave has executed last."""

from __future__ import annotations

from collections import deque
from typing import Any

from attrs import define, field

LONGEST = 19
"""The most wait states that any rule asks for."""
_JUMPS = 8


@define
class Recent:
    """steps: the last ones, the oldest first. jumps: the addresses of the last jumps."""

    steps: deque[Any] = field(factory=lambda: deque[Any](maxlen=LONGEST + 1))
    jumps: tuple[int, ...] = ()
    seen: set[int] = field(factory=set[int])
    """Addresses at which wait states have been counted after these jumps."""

    def jumped(self, source: int) -> None:
        self.jumps = (*self.jumps[1 - _JUMPS :], source)

    def copied(self) -> Recent:
        return Recent(self.steps.copy(), self.jumps, self.seen)
