"""Executors for candidate evaluation: in this process, or on a Dask cluster; local workers are in `processes`.

Each wraps a `concurrent.futures` executor and adds a timeout that kills the candidate's process.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import CancelledError, Executor, Future
from concurrent.futures import TimeoutError as Late
from importlib import import_module
from threading import local
from typing import Any, Protocol, cast

from attrs import define, field

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.runtime.processes.spawned import limit_memory
from argus.runtime.processes.watchdog import WatchedProcess
from argus.search.evaluation.judgement import Judgement

Judge = Callable[[str, str], Judgement]
"""Evaluates a candidate, given its name and source text (or an empty text); picklable for other processes."""
CANDIDATE_SECONDS = 300.0
"""Timeout of one candidate's evaluation in seconds."""
MEMORY = 16 << 30
"""Memory limit of a worker process in bytes."""
_MOST_MESSAGE = 300
"""Most characters of an internal failure's message."""
_SLACK = 30.0
"""Seconds after the timeout within which a worker must report that it killed a candidate."""
CLOSING = 1.0
"""Timeout in seconds for closing the connection to a cluster."""


class Evaluator(Protocol):
    """An executor of candidate evaluations."""

    @property
    def workers(self) -> int:
        """Number of candidates evaluated concurrently."""
        ...

    def submit(self, name: str, text: str = "") -> Future[Judgement]:
        """Start the evaluation of a candidate."""
        ...

    def result(self, name: str, future: Future[Judgement], left: float | None = None) -> Judgement | None:
        """Wait for a judgement; outcome `lost` if the candidate's process hangs or dies.

        left: remaining seconds of the search. Returns None if they run out first.
        """
        ...

    def close(self) -> None:
        """Cancel all pending evaluations."""
        ...


def lost_judgement(name: str, why: str) -> Judgement:
    return Judgement(name, "lost", "parse", why)


def internal_failure(name: str, problem: Exception) -> Judgement:
    """The judgement after an exception in the gate itself; it implies nothing about the candidate."""
    return lost_judgement(
        name, f"the gate failed, an error in Argus: {type(problem).__name__}: {problem}"[:_MOST_MESSAGE]
    )


@define
class InProcess:
    """Evaluates in this process, sequentially and without a timeout: for trusted candidates that cannot hang."""

    judge: Judge
    workers: int = 1
    _texts: dict[Future[Judgement], str] = field(factory=dict[Future[Judgement], str], init=False)

    def submit(self, name: str, text: str = "") -> Future[Judgement]:
        """Defer the evaluation until `result`."""
        del name
        future: Future[Judgement] = Future()
        self._texts[future] = text
        return future

    def result(self, name: str, future: Future[Judgement], left: float | None = None) -> Judgement | None:
        del left
        try:
            return self.judge(name, self._texts.pop(future))
        except ArgusError:
            raise
        except Exception as problem:  # noqa: BLE001 reason: one candidate does not end what is left alone overnight
            return internal_failure(name, problem)

    def close(self) -> None:
        self._texts.clear()


_WORKER = local()
"""Thread-local: the child process of each worker thread."""


def judge_with_timeout(judge: Judge, seconds: float, name: str, text: str) -> Judgement:
    """On a worker: evaluate in a child process, which is killed with its descendants on timeout.

    Raises ArgusError for errors that are not the candidate's.
    """
    child = cast("WatchedProcess | None", getattr(_WORKER, "child", None))
    if child is None or child.seconds != seconds:
        if child is not None:
            child.stop()
        child = _WORKER.child = WatchedProcess(seconds)
    try:
        return child.call(_judge_in_child, judge, name, text)
    except ArgusError as problem:
        match problem.diagnostic.code:
            case "E410":
                return lost_judgement(name, f"it took more than {seconds:g} s, and was stopped")
            case "E409":
                return lost_judgement(name, "the worker process died")
            case _:
                raise


def _judge_in_child(judge: Judge, name: str, text: str) -> Generator[str, None, Judgement]:
    limit_memory(MEMORY)
    yield name
    try:
        return judge(name, text)
    except ArgusError:
        raise
    except Exception as problem:  # noqa: BLE001 reason: one candidate does not end what is left alone overnight
        return internal_failure(name, problem)


def connect_cluster(address: str) -> tuple[Any, type[Exception]]:
    """A client of the scheduler at this address, and the type of the error of a task whose worker died.

    Raises ArgusError (E905).
    """
    try:
        module = import_module("distributed")
    except ImportError as problem:
        message = f"`{address}` needs the package `distributed`, which is not installed"
        raise ArgusError(Diagnostic("E905", "error", message, help="pip install 'argus[dask]'")) from problem
    try:
        return module.Client(address, timeout=10), module.KilledWorker
    except (OSError, ValueError) as problem:
        message = f"no scheduler answers at `{address}`: {problem}"
        advice = "start one with `dask scheduler`, and name its address"
        raise ArgusError(Diagnostic("E905", "error", message, help=advice)) from problem


@define
class DaskCluster:
    """Evaluates on a Dask cluster. address: of its scheduler. Each worker thread evaluates in its own child process."""

    judge: Judge
    address: str
    seconds: float
    _client: Any = field(default=None, init=False)
    _executor: Executor | None = field(default=None, init=False)
    _died: type[Exception] = field(default=Exception, init=False)

    def __attrs_post_init__(self) -> None:
        self._client, self._died = connect_cluster(self.address)
        self._executor = cast("Executor", self._client.get_executor(pure=False, retries=0))

    @property
    def workers(self) -> int:
        try:
            return max(1, sum(self._client.nthreads().values()))
        except (OSError, CancelledError):
            raise self._gone() from None

    def submit(self, name: str, text: str = "") -> Future[Judgement]:
        assert self._executor is not None
        return self._executor.submit(judge_with_timeout, self.judge, self.seconds, name, text)

    def result(self, name: str, future: Future[Judgement], left: float | None = None) -> Judgement | None:
        longest = self.seconds + _SLACK
        try:
            return future.result(longest if left is None else max(0.0, min(left, longest)))
        except Late:
            if left is not None and left < longest:
                return None
            future.cancel()
            return lost_judgement(name, f"no worker reported a result within {longest:g} s")
        except self._died:
            return lost_judgement(name, "the worker process died")
        except (OSError, CancelledError):
            raise self._gone() from None
        except ArgusError:
            raise
        except Exception as problem:  # noqa: BLE001 reason: as in this process
            return internal_failure(name, problem)

    def _gone(self) -> ArgusError:
        message = f"the connection to the scheduler at `{self.address}` is lost"
        return ArgusError(Diagnostic("E905", "error", message, help="restart it and continue with --resume"))

    def close(self) -> None:
        self._client.close(timeout=CLOSING)
