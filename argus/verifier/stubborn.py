"""What a program does with loaded code that catches everything and never ends, however often it is stopped."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

MOST_IGNORED = 50
"""Stops, one each tenth of a second, that code may ignore."""
on_stubborn: ContextVar[Callable[[], None] | None] = ContextVar("on_stubborn", default=None)
"""Called when code has ignored MOST_IGNORED stops; None goes on stopping it. The command line ends the process."""
