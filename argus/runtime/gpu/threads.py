"""What each thread does once: it has no context of a GPU until it makes one current."""

from __future__ import annotations

from collections.abc import Callable
from threading import local


class OncePerThread(local):
    """A function that the first call in each thread calls: a new thread may have the number of one that ended."""

    def __init__(self, first: Callable[[], None]) -> None:
        self._first: Callable[[], None] | None = first

    def __call__(self) -> None:
        if self._first is not None:
            self._first()
            self._first = None
