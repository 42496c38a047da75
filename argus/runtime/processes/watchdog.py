"""A watchdog for work that may hang or crash on a GPU: it runs in a child process that is killed and restarted.

The work reports its progress in notes; the time limit applies from each note to the next.
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
from argus.runtime.processes.spawned import kill_group, set_up_child, without_main_module

T = TypeVar("T")
Work = Generator[str, None, T]
_PATIENCE = 5.0
"""Seconds to wait for a dying process to end."""


@define
class WatchedProcess:
    """Calls functions of importable modules in a child process, which is replaced after a failure.

    seconds: the time limit from a call to its first note, and from each note to the next. last_note: the last note.
    starts: how many processes have been started.
    """

    seconds: float
    last_note: str = ""
    starts: int = 0
    _process: BaseProcess | None = field(default=None, init=False)
    _pipe: Connection | None = field(default=None, init=False)

    def call(self, work: Callable[..., Work[T]], *arguments: object) -> T:
        """The function's result. The function and its arguments must be picklable.

        Raises ArgusError: E410 on timeout, E409 if the process dies, and any ArgusError that the function raises; after
        E410, E409 or an interrupt, the next call starts a new process.
        """
        pipe = self._live_pipe()
        self.last_note = ""
        try:
            pipe.send((work, arguments))
            return cast("T", self._answer(pipe))
        except (EOFError, OSError):
            raise self._death() from None
        except BaseException:
            self.stop()
            raise

    def _answer(self, pipe: Connection) -> object:
        while pipe.poll(self.seconds):
            kind, value = pipe.recv()
            match kind:
                case "note":
                    self.last_note = value
                case "done":
                    return value
                case _:
                    raise ArgusError(value)
        at = f" at {self.last_note}" if self.last_note else ""
        message = f"the GPU process reported no progress for {self.seconds:g} s{at}, and was stopped"
        repair = "leave out that kernel, verify it, or allow more time"
        raise ArgusError(Diagnostic("E410", "error", message, help=repair))

    def _live_pipe(self) -> Connection:
        """The pipe to a live process, started anew if necessary; a new process shares no state with earlier ones."""
        if self._process is None or self._pipe is None or not self._process.is_alive():
            self.stop()
            context = get_context("spawn")
            self._pipe, theirs = context.Pipe()
            process = context.Process(target=serve, args=(theirs,), daemon=True)
            with without_main_module():
                process.start()
            self._process = process
            theirs.close()
            self.starts += 1
        return self._pipe

    def _death(self) -> ArgusError:
        process = self._process
        if process is not None:
            process.join(_PATIENCE)
        status = None if process is None else process.exitcode
        at = f" at {self.last_note}" if self.last_note else ""
        self.stop()
        message = f"the process that uses the GPU ended{at} with status {status}"
        return ArgusError(Diagnostic("E409", "error", message, help="run that kernel under compute-sanitizer"))

    def stop(self) -> None:
        """Kill the process, if there is one."""
        process, pipe = self._process, self._pipe
        self._process = self._pipe = None
        if pipe is not None:
            pipe.close()
        if process is None:
            return
        kill_group(process)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def serve(pipe: Connection) -> None:
    """The child's main loop: serves calls until the pipe closes. An interrupt of the parent does not end it."""
    set_up_child()
    with suppress(EOFError, ConnectionError):
        while True:
            work, arguments = pipe.recv()
            try:
                pipe.send(("done", _run_to_end(pipe, work(*arguments))))
            except ArgusError as problem:
                pipe.send(("refused", problem.diagnostic))


def _run_to_end(pipe: Connection, work: Work[Any]) -> Any:  # noqa: ANN401 reason: whatever it gives
    while True:
        try:
            note = next(work)
        except StopIteration as done:
            return done.value
        pipe.send(("note", note))
