"""Where candidates are judged: in this process, in processes of this machine, or on a Dask cluster.

Each is a `concurrent.futures` executor behind one small class, which adds what they lack: a time after which a
candidate is given up together with the process that it holds. Processes of this machine are in `processes`.
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
from argus.runtime.processes.spawned import bounded
from argus.runtime.processes.watchdog import Watched
from argus.search.evaluation.judgement import Judgement

Judge = Callable[[str, str], Judgement]
"""Of a candidate's name, and of its text where it is one; fit for pickling where it goes to another process."""
MEMORY = 16 << 30
"""Bytes of a process that judges, at most."""
_MOST_MESSAGE = 300
"""Characters of a fault of ours."""
_SLACK = 30.0
"""Seconds beyond its longest time in which a worker tells that a candidate was stopped."""
_CLOSING = 1.0
"""Seconds in which a cluster is told that nothing more is wanted of it."""


class Evaluator(Protocol):
    """workers: how many candidates it takes at once."""

    @property
    def workers(self) -> int: ...

    def submit(self, name: str, text: str = "") -> Future[Judgement]: ...

    def result(self, name: str, future: Future[Judgement], left: float | None = None) -> Judgement | None:
        """The answer; of a candidate whose process hangs or dies, that it is lost.

        left: seconds that the search still has; None where they are over before there is an answer.
        """
        ...

    def close(self) -> None:
        """Give up what is under way."""
        ...


def lost_judgement(name: str, why: str) -> Judgement:
    return Judgement(name, "lost", "parse", why)


def internal_failure(name: str, problem: Exception) -> Judgement:
    """What stopped the gate itself: nothing is concluded from it, and the search goes on."""
    return lost_judgement(
        name, f"what judges it failed, a fault of Argus: {type(problem).__name__}: {problem}"[:_MOST_MESSAGE]
    )


@define
class InProcess:
    """In this process, one after the other: for what is quick and cannot hang, as nothing here can be stopped."""

    judge: Judge
    workers: int = 1
    _texts: dict[Future[Judgement], str] = field(factory=dict[Future[Judgement], str], init=False)

    def submit(self, name: str, text: str = "") -> Future[Judgement]:
        """It is judged when its answer is wanted."""
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
"""Of each thread of a worker its process."""


def judge_with_timeout(judge: Judge, seconds: float, name: str, text: str) -> Judgement:
    """On a worker: judge in a process that is stopped, with all that it has started, when its time is over.

    Raises ArgusError for what is no fault of the candidate.
    """
    child = cast("Watched | None", getattr(_WORKER, "child", None))
    if child is None or child.seconds != seconds:
        if child is not None:
            child.stop()
        child = _WORKER.child = Watched(seconds)
    try:
        return child.call(_judge_in_child, judge, name, text)
    except ArgusError as problem:
        match problem.diagnostic.code:
            case "E410":
                return lost_judgement(name, f"it took more than {seconds:g} s, and was stopped")
            case "E409":
                return lost_judgement(name, "the process that judged it died")
            case _:
                raise


def _judge_in_child(judge: Judge, name: str, text: str) -> Generator[str, None, Judgement]:
    bounded(MEMORY)
    yield name
    try:
        return judge(name, text)
    except ArgusError:
        raise
    except Exception as problem:  # noqa: BLE001 reason: one candidate does not end what is left alone overnight
        return internal_failure(name, problem)


@define
class DaskCluster:
    """Workers of a Dask cluster, by the address of its scheduler; each thread of a worker judges in its own process."""

    judge: Judge
    address: str
    seconds: float
    _client: Any = field(default=None, init=False)
    _executor: Executor | None = field(default=None, init=False)
    _died: type[Exception] = field(default=Exception, init=False)

    def __attrs_post_init__(self) -> None:
        try:
            module = import_module("distributed")
        except ImportError as problem:
            message = f"`{self.address}` needs the package `distributed`, which is not installed"
            raise ArgusError(Diagnostic("E905", "error", message, help="pip install 'argus[dask]'")) from problem
        self._died = module.KilledWorker
        try:
            self._client = module.Client(self.address, timeout=10)
        except (OSError, ValueError) as problem:
            message = f"no scheduler answers at `{self.address}`: {problem}"
            advice = "start one with `dask scheduler`, and name its address"
            raise ArgusError(Diagnostic("E905", "error", message, help=advice)) from problem
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
            return lost_judgement(name, f"no worker told of it within {longest:g} s, and it was given up")
        except self._died:
            return lost_judgement(name, "the worker that judged it died")
        except (OSError, CancelledError):
            raise self._gone() from None
        except ArgusError:
            raise
        except Exception as problem:  # noqa: BLE001 reason: as in this process
            return internal_failure(name, problem)

    def _gone(self) -> ArgusError:
        message = f"the scheduler at `{self.address}` has gone"
        return ArgusError(Diagnostic("E905", "error", message, help="start it again, and go on with --resume"))

    def close(self) -> None:
        self._client.close(timeout=_CLOSING)
