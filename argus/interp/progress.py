"""How many blocks of a launch have run, told to whoever waits: `argus run` shows it, other callers hear nothing."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Group = TypeVar("Group")
Listener = Callable[[int, int], None]
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def counted(groups: Iterator[Group], total: int) -> Iterator[Group]:
    """Yield the groups of blocks to run, of which there are at most `total`, and tell before each how many have run."""
    listener = _listener.get()
    if listener is None:
        yield from groups
        return
    for done, group in enumerate(groups):
        listener(done, total)
        yield group
    listener(total, total)


@contextmanager
def counted_by(listener: Listener) -> Generator[None]:
    """Tell the listener, within the block, how many groups of a launch's blocks have run, and how many there are."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)
