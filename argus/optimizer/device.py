"""Candidates on this machine's GPU, in a process of their own: what hangs is stopped, what crashes is told."""

from __future__ import annotations

from attrs import define, field

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.emit.artifact import Artifact
from argus.optimizer.card import Job, results, times
from argus.optimizer.examination.verdict import Caught, Verdict
from argus.optimizer.problem import Gemm, Problem
from argus.runtime.device import found
from argus.runtime.watched import Watched

SECONDS = 60.0


def at_hand(target: str, *, required: bool = False) -> bool:
    """Whether there is a GPU here that runs code for the target. Raises ArgusError (E406, E407) if one is required."""
    try:
        found().check_runs(target)
    except ArgusError:
        if required:
            raise
        return False
    return True


@define
class Gpu:
    """The GPU at hand. Both methods raise ArgusError: E405 to E410, E903."""

    child: Watched = field(factory=lambda: Watched(SECONDS))

    def disagreement(self, problem: Problem, artifact: Artifact) -> Caught | None:
        return self.child.call(results, Job(_product(problem), str(artifact.description)))

    def time(self, problem: Problem, artifact: Artifact) -> Verdict:
        return self.child.call(times, Job(_product(problem), str(artifact.description)))


def _product(problem: Problem) -> Gemm:
    """Raises ArgusError (E903) for a user's file: arrays for it are made for the interpreter alone."""
    if isinstance(problem, Gemm):
        return problem
    message = f"`{problem}` cannot be timed on a GPU: products alone are"
    raise ArgusError(Diagnostic("E903", "error", message, help="take predicted times: --on model"))
