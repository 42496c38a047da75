"""A process of its own for what may hang or crash on a GPU: it is killed, and begun anew for what is next.

What runs there tells how far it is, one note after the other; the time that it may take is that to its next note.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from attrs import define, field

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.runtime.processes.spawned import bare, ended, settled

T = TypeVar("T")
Work = Generator[str, None, T]
_PATIENCE = 5.0
"""Seconds in which a process that is told to end does so."""


@define
class Watched:
    """Functions of importable modules, called in one process after the other while none of them fails.

    seconds: the longest time from a note to the next, or from a call to its first note. heard: the last note.
    """

    seconds: float
    heard: str = ""
    starts: int = 0
    _process: BaseProcess | None = field(default=None, init=False)
    _pipe: Connection | None = field(default=None, init=False)

    def call(self, work: Callable[..., Work[T]], *arguments: object) -> T:
        """What the function gives. It and its arguments must be fit for pickling.

        Raises ArgusError: E410 if it says nothing for too long, E409 if its process dies, and what it raises itself;
        after any of them the next call gets another process.
        """
        pipe = self._begun()
        self.heard = ""
        try:
            pipe.send((work, arguments))
            return cast("T", self._answer(pipe))
        except (EOFError, OSError):
            raise self._died() from None
        except BaseException:
            self.stop()
            raise

    def _answer(self, pipe: Connection) -> object:
        while pipe.poll(self.seconds):
            kind, value = pipe.recv()
            match kind:
                case "note":
                    self.heard = value
                case "done":
                    return value
                case _:
                    raise ArgusError(value)
        at = f" at {self.heard}" if self.heard else ""
        message = f"the GPU's process said nothing for {self.seconds:g} s{at}, and was stopped"
        repair = "leave out what it was at, verify that kernel, or allow more time"
        raise ArgusError(Diagnostic("E410", "error", message, help=repair))

    def _begun(self) -> Connection:
        """The way to a process that lives: each has no memory of others, nor of what this one has loaded."""
        if self._process is None or self._pipe is None or not self._process.is_alive():
            self.stop()
            context = get_context("spawn")
            self._pipe, theirs = context.Pipe()
            process = context.Process(target=serve, args=(theirs,), daemon=True)
            with bare():
                process.start()
            self._process = process
            theirs.close()
            self.starts += 1
        return self._pipe

    def _died(self) -> ArgusError:
        process = self._process
        if process is not None:
            process.join(_PATIENCE)
        status = None if process is None else process.exitcode
        at = f" at {self.heard}" if self.heard else ""
        self.stop()
        message = f"the process that uses the GPU ended{at} with status {status}"
        return ArgusError(Diagnostic("E409", "error", message, help="run that kernel under compute-sanitizer"))

    def stop(self) -> None:
        """End the process, whatever it is at."""
        process, pipe = self._process, self._pipe
        self._process = self._pipe = None
        if pipe is not None:
            pipe.close()
        if process is None:
            return
        ended(process)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def serve(pipe: Connection) -> None:
    """In the process: one call after the other, until nobody asks. What interrupts the asker does not end this one."""
    settled()
    with suppress(EOFError, ConnectionError):
        while True:
            work, arguments = pipe.recv()
            try:
                pipe.send(("done", _worked(pipe, work(*arguments))))
            except ArgusError as problem:
                pipe.send(("refused", problem.diagnostic))


def _worked(pipe: Connection, work: Work[Any]) -> Any:  # noqa: ANN401 reason: whatever it gives
    while True:
        try:
            note = next(work)
        except StopIteration as done:
            return done.value
        pipe.send(("note", note))
