"""Limits on code that is loaded in this process: its time, and exits that it asks for."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType, TracebackType
from typing import NoReturn

from argus.core.diagnostic import ArgusError, Diagnostic, Label
from argus.core.span import Frame, Span
from argus.verifier.stubborn import MOST_IGNORED, on_stubborn


def line_in(within: Span, trace: TracebackType | None) -> Span:
    """The innermost line of `within`'s file that the exception passed through, else `within`."""
    found, file = within, within.frames[0].file if within.frames else ""
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == file:
            found = Span((Frame(file, trace.tb_lineno, 0, 0, code.co_name),))
        trace = trace.tb_next
    return found


def top_of(file: str) -> Span:
    return Span((Frame(file, 1, 0, 0, "<module>"),))


# -- exits
# ----------------------------------------------------------------------------------------------------------------------


class HardExit(SystemExit):
    """`os._exit` in a file that is loaded in this process."""


@contextmanager
def exits_raised() -> Generator[None]:
    """Let `os._exit` raise in this process; processes that the file forks end as they ask."""
    here, end = os.getpid(), os._exit

    def raised(status: int) -> NoReturn:
        if os.getpid() != here:
            end(status)
        raise HardExit(status)

    os._exit = raised
    try:
        yield
    finally:
        os._exit = end


# -- the time limit
# ----------------------------------------------------------------------------------------------------------------------


class TooLongError(BaseException):
    """Not an Exception, so that `except Exception` in the file does not catch it."""


class _Elapsed:
    """A wall clock: over whenever it is asked, as it is asked after the limit only."""

    def over(self) -> bool:
        return True


class _Load:
    """Over after `seconds` of processor time, or of waiting: another process that has the processor costs nothing.

    A period in which the process had less than a twentieth of a processor counts as waiting, for a lock or the network.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds, self.worked, self.waited = seconds, 0.0, 0.0
        self.used, self.at = time.process_time(), time.monotonic()

    def over(self) -> bool:
        used, at = time.process_time(), time.monotonic()
        work, elapsed = used - self.used, at - self.at
        self.used, self.at = used, at
        if work < _WAITING * elapsed:
            self.waited += elapsed
        else:
            self.worked += min(work, elapsed)  # threads that work side by side do not count twice
        return max(self.worked, self.waited) >= self.seconds


_WAITING = 0.05
_Clock = _Elapsed | _Load


def time_limit(seconds: float, doing: str, span: Span) -> AbstractContextManager[None]:
    """Raise ArgusError E006 when the block takes longer. Without effect off the main thread or without POSIX timers."""
    return _limited(seconds, doing, span, _Elapsed())


def load_limit(seconds: float, doing: str, span: Span) -> AbstractContextManager[None]:
    """Like `time_limit`, but counts processor time and waiting, each by itself, so that a loaded machine stops nothing.

    An endless loop, or an endless wait, is stopped after `seconds` on a machine that has a processor free.
    """
    return _limited(seconds, doing, span, _Load(seconds))


@contextmanager
def _limited(seconds: float, doing: str, span: Span, clock: _Clock) -> Generator[None]:
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_signal: int, frame: FrameType | None) -> None:
        if clock.over():
            _stop(frame)

    previous = signal.signal(signal.SIGALRM, stop)
    # Repeated, for code that catches everything in a loop, for when `_stop` ignores a signal, and for `_Load`.
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.1)
    _ignored.clear()
    try:
        yield
    except TooLongError as stopped:
        message = f"{doing} took longer than {seconds:g} s"
        label = Label(line_in(span, stopped.__traceback__), "still running")
        raise ArgusError(Diagnostic("E006", "error", message, label, help=_TIME_HELP)) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)


_TIME_HELP = "keep work and endless loops out of the module level and of kernels, or allow more time (--load-seconds)"


def _stop(frame: FrameType | None) -> None:
    """Raises TooLongError, except inside Z3's constructors and finalisers.

    A half-constructed Z3 object raises when it is finalised, and Python discards what a finaliser raises.
    """
    while frame is not None:
        if frame.f_code.co_name in _FRAGILE and str(frame.f_globals.get("__name__")).startswith("z3."):
            return
        frame = frame.f_back
    _ignored.append(None)
    give_up = on_stubborn.get()
    if len(_ignored) > MOST_IGNORED and give_up is not None:
        give_up()
    raise TooLongError


_ignored: list[None] = []
_FRAGILE = ("__init__", "__del__")
