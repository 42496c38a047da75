"""Local worker processes for evaluation, each with a timeout; killed with their descendants, and with their parent."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Future, ProcessPoolExecutor
from concurrent.futures import TimeoutError as Late
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from typing import cast

from attrs import define, field

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.runtime.gpu.find import VISIBLE
from argus.runtime.processes.spawned import kill_group, limit_memory, set_up_child, without_main_module
from argus.search.evaluation.evaluators import MEMORY, Judge, internal_failure, lost_judgement
from argus.search.evaluation.judgement import Judgement


def _initialise_worker(device: str, begun: Event, memory: int) -> None:
    """Worker initialiser: ignore interrupts of the search, select one GPU, end with the parent.

    The worker leads its own process group, so that its compilers are killed together with it.
    """
    set_up_child()
    limit_memory(memory)
    if device:
        os.environ |= dict.fromkeys(VISIBLE.values(), device)
    begun.set()


@define
class _Worker:
    """One worker process. begun: set by the process once it is initialised. flying: candidates submitted."""

    pool: ProcessPoolExecutor
    begun: Event
    flying: int = 0

    def stop(self) -> None:
        """Kill the process and its descendants."""
        found = cast("dict[int, BaseProcess] | None", getattr(self.pool, "_processes", None))
        processes = list((found or {}).values())
        self.pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            kill_group(process)


@define
class WorkerProcesses:
    """Evaluates in local worker processes, isolated from each other: a hang or crash affects one candidate only.

    devices: GPUs, assigned round-robin; if empty, workers see the same as this process. seconds: timeout of one
    candidate. memory: limit of a worker in bytes. blas_threads: of a matrix product in a worker. `result` raises
    ArgusError (E905) if a worker dies before it is initialised.
    """

    judge: Judge
    workers: int
    seconds: float
    devices: Sequence[str] = ()
    memory: int = MEMORY
    blas_threads: int = 1
    _lanes: dict[int, _Worker] = field(factory=dict[int, _Worker], init=False)
    _places: dict[Future[Judgement], int] = field(factory=dict[Future[Judgement], int], init=False)

    def submit(self, name: str, text: str = "") -> Future[Judgement]:
        place = min(range(self.workers), key=self._flying)
        with without_main_module(self.blas_threads):
            try:
                future = self._lane(place).pool.submit(self.judge, name, text)
            except BrokenExecutor:  # it died while idle
                self._stop(place)
                future = self._lane(place).pool.submit(self.judge, name, text)
        self._lanes[place].flying += 1
        self._places[future] = place
        return future

    def result(self, name: str, future: Future[Judgement], left: float | None = None) -> Judgement | None:
        place = self._places[future]
        try:
            judgement = future.result(self.seconds if left is None else max(0.0, min(left, self.seconds)))
        except Late:
            if left is not None and left < self.seconds:
                return None
            judgement = lost_judgement(name, f"it took more than {self.seconds:g} s, and was stopped")
            self._stop(place)
        except (BrokenExecutor, CancelledError):
            if not self._lanes[place].begun.is_set():
                raise _worker_died_early() from None
            judgement = lost_judgement(name, "the worker process died")
            self._stop(place)
        except ArgusError:
            raise
        except Exception as problem:  # noqa: BLE001 reason: one candidate does not end what is left alone overnight
            judgement = internal_failure(name, problem)
        self._places.pop(future, None)
        if place in self._lanes:
            self._lanes[place].flying -= 1
        return judgement

    def _flying(self, place: int) -> int:
        return self._lanes[place].flying if place in self._lanes else 0

    def _lane(self, place: int) -> _Worker:
        if place not in self._lanes:
            context = get_context("spawn")
            begun = context.Event()
            device = self.devices[place % len(self.devices)] if self.devices else ""
            self._lanes[place] = _Worker(
                ProcessPoolExecutor(1, context, _initialise_worker, (device, begun, self.memory)), begun
            )
        return self._lanes[place]

    def _stop(self, place: int) -> None:
        self._lanes.pop(place).stop()

    def close(self) -> None:
        for place in list(self._lanes):
            self._stop(place)
        self._places.clear()


def _worker_died_early() -> ArgusError:
    message = "a worker process ended before it was initialised"
    advice = "check the memory and process limits of this machine, or use --workers 0"
    return ArgusError(Diagnostic("E905", "error", message, help=advice))
