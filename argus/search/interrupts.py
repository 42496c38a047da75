"""Ctrl-C where it does no harm: while something is waited for, and never between a line of the journal and its end."""

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
"""Seconds in which a second interrupt is the same one: keys are pressed twice, and signals are sent to a group."""


@define
class Interrupts:
    """From `hold` to the end of the `with`, an interrupt waits for a place that may be left, and is raised there.

    Only the main thread gets signals, and one that somebody else handles or ignores is left alone; then nothing is
    held, and whatever interrupts is raised wherever it comes. ending: the program ends soon afterwards. Then to be told
    to end (SIGTERM) is an interrupt as well, and once one has come, no other spoils what the program says at its end.
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
        """Here an interrupt is raised as it comes, and one that has come before is raised now.

        Raises KeyboardInterrupt.
        """
        self._leaving = True
        try:
            self._raise()
            yield
        finally:
            self._leaving = False

    def _take(self, number: int, usual: Any) -> None:  # noqa: ANN401 reason: what `signal` gives and takes
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
