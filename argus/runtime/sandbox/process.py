"""A contained program from its start to its end: what it is given, what is read of it, and when it is killed.

The file that starts what is contained; never through a shell.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic
from typing import IO, Literal

from attrs import define, field, frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.runtime.sandbox.request import Limits

Cause = Literal["by itself", "time", "output"]
_CHUNK = 1 << 16
_WORDS = 1 << 16
"""Bytes of what it says on its error stream that are kept; more than the limit of output is not read."""
_PATIENCE = 5.0
"""Seconds in which all that is killed has ended."""


@frozen
class Ended:
    """cause: whether it was killed, and why. status: its own, or minus a signal's number. output: its whole answer.

    said: the last words on its error stream. gone: whether nothing that it started holds its streams any more.
    """

    cause: Cause
    status: int
    output: bytes
    said: str
    seconds: float
    gone: bool


def ran(command: Sequence[str], given: bytes, limits: Limits) -> Ended:
    """Run a program until it ends, or has had its time or its output, and end all that it has started.

    given: what it reads on its standard input. Raises ArgusError: E408 if no process can be started.
    """
    start = monotonic()
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(
            list(command), stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True, env={}, cwd="/"
        )
    except OSError as problem:
        message = f"no process could be started for the kernel's text: {problem.strerror or problem}"
        raise ArgusError(Diagnostic("E408", "error", message, help="free memory, or end other programs")) from None
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    heard = _Streams(process.stdin, process.stdout, process.stderr, memoryview(given), limits.output_bytes)
    try:
        cause = heard.until(start + limits.wall_seconds)
        if cause == "by itself":
            _settled(process)
    finally:
        _killed(process)
        # The streams end when the last process that holds them has.
        heard.rest(monotonic() + _PATIENCE)
    return Ended(cause, process.returncode, heard.output(), heard.words(), monotonic() - start, heard.closed)


def _settled(process: subprocess.Popen[bytes]) -> None:
    """Its streams are closed: it ends, or is ended."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(_PATIENCE)


def _killed(process: subprocess.Popen[bytes]) -> None:
    """The program is killed; the first process of its namespace dies with it, and all others with that one."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@define
class _Streams:
    """What goes into a program, and what comes out of it, as much of that as is wanted.

    A pipe, and no file, is what it reads: a file could be written through the same number.
    """

    _question: IO[bytes]
    _answer: IO[bytes]
    _errors: IO[bytes]
    _left: memoryview
    _most: int
    _pieces: list[bytes] = field(factory=list[bytes], init=False)
    _size: int = field(default=0, init=False)
    _said: bytes = field(default=b"", init=False)
    _noise: int = field(default=0, init=False)
    closed: bool = field(default=False, init=False)
    _selector: selectors.BaseSelector = field(factory=selectors.DefaultSelector, init=False)

    def __attrs_post_init__(self) -> None:
        for stream in (self._question, self._answer, self._errors):
            os.set_blocking(stream.fileno(), False)
            way = selectors.EVENT_WRITE if stream is self._question else selectors.EVENT_READ
            self._selector.register(stream, way)

    def until(self, deadline: float) -> Cause:
        """Read until both streams end, or there is a reason to end the program."""
        while not self.closed:
            left = deadline - monotonic()
            if left <= 0:
                return "time"
            for key, _ in self._selector.select(left):
                self._take(key)
            if self._size > self._most or self._noise > self._most:
                return "output"
        return "by itself"

    def rest(self, deadline: float) -> None:
        """Wait for the ends of the streams, reading and dropping what is left in them."""
        self._asked()
        while not self.closed and monotonic() < deadline:
            for key, _ in self._selector.select(max(0.0, deadline - monotonic())):
                self._take(key)
        self._selector.close()
        self._answer.close()
        self._errors.close()

    def _take(self, key: selectors.SelectorKey) -> None:
        if key.fileobj is self._question:
            self._give()
            return
        piece = os.read(key.fd, _CHUNK)
        if not piece:
            self._selector.unregister(key.fileobj)
            self.closed = not {each.fileobj for each in self._selector.get_map().values()} - {self._question}
        elif key.fileobj is self._errors:
            self._said = (self._said + piece)[-_WORDS:]
            self._noise += len(piece)
        elif self._size <= self._most:
            self._pieces.append(piece)
            self._size += len(piece)

    def _give(self) -> None:
        with suppress(BlockingIOError):
            try:
                self._left = self._left[os.write(self._question.fileno(), self._left[:_CHUNK]) :]
            except BrokenPipeError:
                self._asked()
                return
        if not self._left:
            self._asked()

    def _asked(self) -> None:
        """Nothing more is given: the program reads the end of its input."""
        if not self._question.closed:
            self._selector.unregister(self._question)
            with suppress(BrokenPipeError):
                self._question.close()

    def output(self) -> bytes:
        return b"".join(self._pieces)[: self._most]

    def words(self) -> str:
        """Printable, and without sequences that would move a terminal's cursor."""
        text = self._said.decode("utf-8", "replace")
        return "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text)
