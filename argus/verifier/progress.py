"""What the verifier is doing, told to whoever waits: the command line shows it, other callers hear nothing."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("listener", default=None)


def tell(doing: str) -> None:
    """Pass on what is being tried, such as `I5: 12 obligations of 40`."""
    listener = _listener.get()
    if listener is not None:
        listener(doing)


@contextmanager
def told_to(listener: Callable[[str], None]) -> Generator[None]:
    """Tell the listener within the block."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)
