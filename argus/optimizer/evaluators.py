"""Where candidates are judged: in this process, in processes of this machine, or on a Dask cluster.

Each is a `concurrent.futures` executor behind one small class, which adds what they lack: a time after which a
candidate is given up together with the process that it holds.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from concurrent.futures import TimeoutError as Late
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from typing import Any, Protocol, cast

from attrs import define, field

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.optimizer.judgement import Judgement
from argus.runtime.spawned import bare, ended, settled

Judge = Callable[[str, str], Judgement]
"""Of a candidate's name, and of its text where it is one; fit for pickling where it goes to another process."""

_TOLD = 300
"""Characters of a fault of ours."""


class Evaluator(Protocol):
    """workers: how many candidates it takes at once."""

    @property
    def workers(self) -> int: ...

    def submit(self, name: str, text: str = "") -> Future[Judgement]: ...

    def result(self, name: str, future: Future[Judgement]) -> Judgement:
        """The answer; of a candidate whose process hangs or dies, that it is lost."""
        ...

    def close(self) -> None:
        """Give up what is under way."""
        ...


def lost(name: str, why: str) -> Judgement:
    return Judgement(name, "lost", "parse", why)


def stumbled(name: str, problem: Exception) -> Judgement:
    """What stopped the gate itself: nothing is concluded from it, and the search goes on."""
    return lost(name, f"what judges it failed, a fault of Argus: {type(problem).__name__}: {problem}"[:_TOLD])


@define
class Here:
    """In this process, one after the other: for what is quick and cannot hang."""

    judge: Judge
    workers: int = 1

    def submit(self, name: str, text: str = "") -> Future[Judgement]:
        future: Future[Judgement] = Future()
        try:
            future.set_result(self.judge(name, text))
        except Exception as problem:  # noqa: BLE001 reason: told by `result`
            future.set_exception(problem)
        return future

    def result(self, name: str, future: Future[Judgement]) -> Judgement:
        return _told(name, future)

    def close(self) -> None: ...


def _told(name: str, future: Future[Judgement], seconds: float | None = None) -> Judgement:
    try:
        return future.result(seconds)
    except (ArgusError, Late, BrokenExecutor, CancelledError):
        raise
    except Exception as problem:  # noqa: BLE001 reason: one candidate does not end what is left alone overnight
        return stumbled(name, problem)


def _begin(queue: Any, memory: int) -> None:  # noqa: ANN401 reason: a queue of a context
    """In a worker: it has a limit of memory, and one GPU of the host of its own."""
    settled()
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (memory if hard < 0 else min(memory, hard), hard))
    device = queue.get()
    if device:
        os.environ["CUDA_VISIBLE_DEVICES"] = device


@define
class Processes:
    """Processes of this machine. devices: GPUs, one worker each; without any, `workers` share the processors.

    seconds, memory: the longest time of one candidate, and the most bytes of a process that judges.
    """

    judge: Judge
    workers: int
    seconds: float
    devices: Sequence[str] = ()
    memory: int = 16 << 30
    _pool: ProcessPoolExecutor | None = field(default=None, init=False)
    _texts: dict[Future[Judgement], str] = field(factory=dict[Future[Judgement], str], init=False)

    def submit(self, name: str, text: str = "") -> Future[Judgement]:
        with bare():
            future = self._opened().submit(self.judge, name, text)
        self._texts[future] = text
        return future

    def result(self, name: str, future: Future[Judgement]) -> Judgement:
        """A candidate that was stopped with another, or with a worker that died, is judged once more by itself."""
        text = self._texts.pop(future, "")
        try:
            return self._waited(name, future)
        except (BrokenExecutor, CancelledError):
            self.close()
        again = self.submit(name, text)
        self._texts.pop(again)
        try:
            return self._waited(name, again)
        except (BrokenExecutor, CancelledError):
            self.close()
            return lost(name, "the process that judged it died, and so did another one")

    def _waited(self, name: str, future: Future[Judgement]) -> Judgement:
        try:
            return _told(name, future, self.seconds)
        except Late:
            self.close()
            return lost(name, f"it took more than {self.seconds:g} s, and was stopped")

    def _opened(self) -> ProcessPoolExecutor:
        if self._pool is None:
            context = get_context("spawn")
            queue = context.SimpleQueue()
            for place in range(self.workers):
                queue.put(self.devices[place] if self.devices else "")
            self._pool = ProcessPoolExecutor(self.workers, context, _begin, (queue, self.memory))
        return self._pool

    def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is None:
            return
        processes = cast("dict[int, BaseProcess]", getattr(pool, "_processes", None) or {})
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes.values():
            ended(process)


@define
class Cluster:
    """Workers of a Dask cluster, by the address of its scheduler."""

    judge: Judge
    address: str
    seconds: float
    _client: Any = field(default=None, init=False)
    _executor: Executor | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        try:
            client = import_module("distributed").Client
        except ImportError as problem:
            message = f"`{self.address}` needs the package `distributed`, which is not installed"
            raise ArgusError(Diagnostic("E905", "error", message, help="pip install 'argus[dask]'")) from problem
        try:
            self._client = client(self.address, timeout=10)
        except (OSError, ValueError) as problem:
            message = f"no scheduler answers at `{self.address}`: {problem}"
            advice = "start one with `dask scheduler`, and name its address"
            raise ArgusError(Diagnostic("E905", "error", message, help=advice)) from problem
        self._executor = cast("Executor", self._client.get_executor(pure=False, retries=0))

    @property
    def workers(self) -> int:
        return max(1, sum(self._client.nthreads().values()))

    def submit(self, name: str, text: str = "") -> Future[Judgement]:
        assert self._executor is not None
        return self._executor.submit(self.judge, name, text)

    def result(self, name: str, future: Future[Judgement]) -> Judgement:
        try:
            return _told(name, future, self.seconds)
        except Late:
            future.cancel()
            return lost(name, f"it took more than {self.seconds:g} s, and was given up")

    def close(self) -> None:
        self._client.close()
