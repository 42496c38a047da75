"""Checks and times candidates on the local GPU in a child process with a watchdog."""

from __future__ import annotations

from attrs import define, field

from argus.core.diagnostic import ArgusError
from argus.emit.artifact import Artifact
from argus.emit.build_program import BuiltProgram
from argus.runtime.gpu.find import find_gpu
from argus.runtime.processes.watchdog import WatchedProcess
from argus.search.bench_harness.verdict import Caught, Verdict
from argus.search.evaluation.gpu_bench import check_job, job_of, time_job
from argus.search.problems.problem import Problem
from argus.search.problems.traced import Traced

SECONDS = 60.0


def gpu_available(target: str, *, required: bool = False) -> bool:
    """Whether a local GPU runs code for the target. Raises ArgusError (E406, E407) if required and absent."""
    try:
        find_gpu().check_runs(target)
    except ArgusError:
        if required:
            raise
        return False
    return True


@define
class Gpu:
    """The local GPU as `DeviceTools`. Both methods raise ArgusError: E405 to E410, E903."""

    child: WatchedProcess = field(factory=lambda: WatchedProcess(SECONDS))

    def disagreement(self, problem: Problem, kernel: Traced, artifact: Artifact | BuiltProgram) -> Caught | None:
        return self.child.call(check_job, job_of(problem, kernel, artifact.description))

    def time(self, problem: Problem, kernel: Traced, artifact: Artifact | BuiltProgram) -> Verdict:
        return self.child.call(time_job, job_of(problem, kernel, artifact.description))
