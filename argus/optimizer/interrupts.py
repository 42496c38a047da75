"""Ctrl-C, heard where nothing is half done: in the middle of a candidate at once, elsewhere at the next step."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

from attrs import define


@define
class Interrupts:
    """asked: whether somebody wants an end. A second wish is not put off."""

    asked: bool = False
    _waiting: bool = False

    @contextmanager
    def heard(self) -> Generator[None]:
        """Until the end of this, Ctrl-C is kept for `waiting`.

        Only on the main thread, and only where Ctrl-C raises KeyboardInterrupt: who handles it otherwise goes on to.
        """
        usual = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or usual is not signal.default_int_handler:
            yield
            return
        signal.signal(signal.SIGINT, self._ask)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, usual)

    @contextmanager
    def waiting(self) -> Generator[None]:
        """What may take long and leaves nothing behind: it is left by KeyboardInterrupt."""
        try:
            self._waiting = True
            if self.asked:
                raise KeyboardInterrupt
            yield
        finally:
            self._waiting = False

    def _ask(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        again, self.asked = self.asked, True
        if again or self._waiting:
            raise KeyboardInterrupt
