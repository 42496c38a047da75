"""Defers SIGINT to interruptible waits, so that Ctrl-C never splits a journal transaction."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

from attrs import define, field

ONE_PRESS = 1.0
"""Seconds within which a repeated interrupt counts as the same one (double key press, signal to a process group)."""


@define
class Interrupts:
    """From `hold` to the end of the `with`, defers an interrupt until the next `may_leave` block and raises it there.

    Only the main thread receives signals, and a handler that somebody else installed is left in place; in both cases
    nothing is deferred. ending: the program exits soon afterwards. Then SIGTERM counts as an interrupt as well, and
    after the first one further signals are ignored, so that the final report is complete.
    """

    ending: bool = False
    clock: Callable[[], float] = time.monotonic
    _waiting: bool = field(default=False, init=False)
    _leaving: bool = field(default=False, init=False)
    _last: float | None = field(default=None, init=False)
    _before: dict[int, Any] = field(factory=dict[int, Any], init=False)

    def __enter__(self) -> Self:
        return self

    def hold(self) -> None:
        """Install the handlers."""
        if threading.current_thread() is threading.main_thread():
            self._take(signal.SIGINT, signal.default_int_handler)
            if self.ending:
                self._take(signal.SIGTERM, signal.SIG_DFL)

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_IGN if self.ending and self._last is not None else handler)
        self._before.clear()

    @contextmanager
    def may_leave(self) -> Generator[None]:
        """An interruptible block: raises a deferred interrupt now, and any new one as it arrives.

        Raises KeyboardInterrupt.
        """
        self._leaving = True
        try:
            self._raise()
            yield
        finally:
            self._leaving = False

    def _take(self, number: int, usual: Any) -> None:  # noqa: ANN401 reason: a handler of the module `signal`
        if signal.getsignal(number) == usual:
            self._before[number] = signal.signal(number, self._came)

    def _came(self, _number: int, _frame: FrameType | None) -> None:
        before, self._last = self._last, self.clock()
        if before is None or self._last - before > ONE_PRESS:
            self._waiting = True
        if self._leaving:
            self._raise()

    def _raise(self) -> None:
        if self._waiting:
            self._waiting = False
            raise KeyboardInterrupt
