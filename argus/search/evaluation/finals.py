"""The last round on the local GPU: the best candidates are proved and built again, then timed interleaved."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from functools import partial

from attrs import frozen

from argus.core.diagnostic import ArgusError
from argus.policy.last_round import Batch, Standing, run_last_round
from argus.runtime.processes.spawned import limit_memory
from argus.runtime.processes.watchdog import WatchedProcess
from argus.search.evaluation.evaluators import CANDIDATE_SECONDS, MEMORY
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
