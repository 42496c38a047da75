"""Starts the sandboxed program, feeds its input, reads its output up to a limit, and kills it on timeout.

The only module that starts sandboxed processes; never through a shell.
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
"""How many bytes of the error stream to keep; no more than the output limit is read."""
_PATIENCE = 5.0
"""Seconds to wait for killed processes to end."""


@frozen
class ProcessResult:
    """cause: why it ended: by itself, or killed for time or output. status: its exit status, or minus a signal's
    number.

    output: its standard output. said: the end of its error stream. gone: whether all its streams are closed, so that no
    process that it started is left.
    """

    cause: Cause
    status: int
    output: bytes
    said: str
    seconds: float
    gone: bool


def run_process(command: Sequence[str], given: bytes, limits: Limits) -> ProcessResult:
    """Run a program until it ends or exceeds its time or output limit, then kill all processes that it has started.

    given: its standard input. Raises ArgusError: E408 if no process can be started.
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
    streams = _Streams(process.stdin, process.stdout, process.stderr, memoryview(given), limits.output_bytes)
    try:
        cause = streams.until(start + limits.wall_seconds)
        if cause == "by itself":
            _wait(process)
    finally:
        _kill(process)
        # The streams reach their end only when the last process that holds them has ended.
        streams.rest(monotonic() + _PATIENCE)
    return ProcessResult(
        cause, process.returncode, streams.output(), streams.words(), monotonic() - start, streams.closed
    )


def _wait(process: subprocess.Popen[bytes]) -> None:
    """Wait a while for a process whose streams are closed; the caller kills it afterwards."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(_PATIENCE)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the program; process 1 of its namespace dies with it, and all others there with that one."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@define
class _Streams:
    """A program's input, output and error streams; keeps a bounded part of the latter two.

    The input is a pipe and not a file, since a program could write to a file through its input descriptor.
    """

    _input: IO[bytes]
    _output: IO[bytes]
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
        for stream in (self._input, self._output, self._errors):
            os.set_blocking(stream.fileno(), False)
            way = selectors.EVENT_WRITE if stream is self._input else selectors.EVENT_READ
            self._selector.register(stream, way)

    def until(self, deadline: float) -> Cause:
        """Read until both streams end, the deadline passes, or there is too much output; returns which."""
        while not self.closed:
            left = deadline - monotonic()
            if left <= 0:
                return "time"
            for key, _ in self._selector.select(left):
                self._transfer(key)
            if self._size > self._most or self._noise > self._most:
                return "output"
        return "by itself"

    def rest(self, deadline: float) -> None:
        """Read and discard until both streams end or the deadline passes, then close them."""
        self._close_input()
        while not self.closed and monotonic() < deadline:
            for key, _ in self._selector.select(max(0.0, deadline - monotonic())):
                self._transfer(key)
        self._selector.close()
        self._output.close()
        self._errors.close()

    def _transfer(self, key: selectors.SelectorKey) -> None:
        if key.fileobj is self._input:
            self._feed()
            return
        piece = os.read(key.fd, _CHUNK)
        if not piece:
            self._selector.unregister(key.fileobj)
            self.closed = not {each.fileobj for each in self._selector.get_map().values()} - {self._input}
        elif key.fileobj is self._errors:
            self._said = (self._said + piece)[-_WORDS:]
            self._noise += len(piece)
        elif self._size <= self._most:
            self._pieces.append(piece)
            self._size += len(piece)

    def _feed(self) -> None:
        with suppress(BlockingIOError):
            try:
                self._left = self._left[os.write(self._input.fileno(), self._left[:_CHUNK]) :]
            except BrokenPipeError:
                self._close_input()
                return
        if not self._left:
            self._close_input()

    def _close_input(self) -> None:
        """Close the program's input."""
        if not self._input.closed:
            self._selector.unregister(self._input)
            with suppress(BrokenPipeError):
                self._input.close()

    def output(self) -> bytes:
        return b"".join(self._pieces)[: self._most]

    def words(self) -> str:
        """The error output, with non-printable characters, such as terminal escapes, replaced."""
        text = self._said.decode("utf-8", "replace")
        return "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text)
