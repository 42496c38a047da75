"""The last round on one GPU, here or of a cluster: the best are proved and built again, then timed interleaved."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from concurrent.futures import CancelledError
from functools import partial

from attrs import frozen

from argus.core.diagnostic import ArgusError
from argus.policy.last_round import Batch, Standing, run_last_round
from argus.runtime.processes.spawned import limit_memory
from argus.runtime.processes.watchdog import WatchedProcess
from argus.search.evaluation.evaluators import CANDIDATE_SECONDS, CLOSING, MEMORY, connect_cluster
from argus.search.evaluation.gpu_bench import Job, time_jobs
from argus.search.events import LastRound

SECONDS = 120.0
"""Timeout of a step of the timing."""
Prepare = Callable[[str, str], Job | str]
Timing = Callable[[Mapping[str, Job], tuple[str, ...]], Batch]


@frozen
class FinalsTask:
    """prepare: picklable: a candidate's job by name and text, or why it is rejected."""

    prepare: Prepare

    def __call__(self, texts: Mapping[str, str]) -> LastRound:
        """The last round of these candidates, by name; a failure of the GPU is reported in the result."""
        try:
            with WatchedProcess(CANDIDATE_SECONDS) as preparing, WatchedProcess(SECONDS) as timing:
                prepared = {name: preparing.call(_prepared, self.prepare, name, text) for name, text in texts.items()}
                return held(prepared, partial(timing.call, time_jobs))
        except ArgusError as problem:
            return _missing(problem)


@frozen
class ClusterFinals:
    """The last round on one worker of a Dask cluster, whichever is free first: times of two GPUs are not compared.

    finals: picklable: times candidates where it is called. address: of the scheduler. seconds: timeout of all together.
    """

    finals: Callable[[Mapping[str, str]], LastRound]
    address: str
    seconds: float = 3600.0

    def __call__(self, texts: Mapping[str, str]) -> LastRound:
        """The last round of these candidates; a failure of the cluster is reported in the result."""
        try:
            client, died = connect_cluster(self.address)
        except ArgusError as problem:
            return _missing(problem)
        try:
            return client.submit(self.finals, texts, pure=False, retries=0).result(self.seconds)
        except TimeoutError:
            return LastRound((), missing=f"no worker finished it within {self.seconds:g} s")
        except died:
            return LastRound((), missing="the worker process died")
        except (OSError, CancelledError):
            return LastRound((), missing=f"the connection to the scheduler at `{self.address}` is lost")
        finally:
            client.close(timeout=CLOSING)


def _missing(problem: ArgusError) -> LastRound:
    return LastRound((), missing=f"{problem.diagnostic.code}: {problem.diagnostic.message}")


def held(prepared: Mapping[str, Job | str], timing: Timing) -> LastRound:
    """Time those candidates that are ready, until told apart or called equal. Raises ArgusError of the timing."""
    jobs = {name: each for name, each in prepared.items() if isinstance(each, Job)}
    rejected = tuple(Standing(name, "wrong", why=each) for name, each in prepared.items() if isinstance(each, str))
    if not jobs:
        return LastRound(rejected)
    result = run_last_round(tuple(jobs), partial(timing, jobs))
    return LastRound((*result.standings, *rejected), result.rounds)


def _prepared(prepare: Prepare, name: str, text: str) -> Generator[str, None, Job | str]:
    limit_memory(MEMORY)
    yield name
    return prepare(name, text)
