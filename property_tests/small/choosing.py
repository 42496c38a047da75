"""How a small program is drawn: one generator, whether Hypothesis chooses or a seed does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Choose(Protocol):
    """One of several; the first is the simplest."""

    def __call__(self, options: Sequence[T], /) -> T: ...


def chance(choose: Choose) -> int:
    """How many mistakes: none in two of five programs."""
    return choose((0, 0, 1, 1, 2))
