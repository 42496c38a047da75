"""The interface for drawing a small program, shared by Hypothesis and seeded generators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Choose(Protocol):
    """Choose one of several options; the first is the simplest."""

    def __call__(self, options: Sequence[T], /) -> T: ...


def number_of_mistakes(choose: Choose) -> int:
    """The number of mistakes in a program: 0 with probability 2/5."""
    return choose((0, 0, 1, 1, 2))
