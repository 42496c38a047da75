"""Candidates on this machine's GPU, in a process of their own: what hangs is stopped, what crashes is told."""

from __future__ import annotations

from attrs import define, field

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.emit.artifact import Artifact
from argus.optimizer.problem import Gemm, Problem
from argus.runtime.device import found
from argus.runtime.watched import Watched
from argus.tuning.measure import BRIEF, Job, brief

SECONDS = 60.0
_ROUNDS = 5
SHAPES = ((1, 8, 8), (129, 264, 136), (517, 1032, 72))
"""Extents that nobody tunes for, beside the problem's own."""


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
    """The GPU at hand. Both methods raise ArgusError: E405 to E410."""

    child: Watched = field(factory=lambda: Watched(SECONDS))

    def disagreement(self, problem: Problem, artifact: Artifact) -> str:
        _check(problem)
        for shape in SHAPES:
            timed = self.child.call(brief, Job(shape, {artifact.name: str(artifact.description)}, 1))
            if timed.wrong:
                return f"rows of C differ from what is expected at {'x'.join(map(str, shape))}, on the GPU"
        return ""

    def time(self, problem: Problem, artifact: Artifact) -> float:
        problem = _check(problem)
        shape = (problem.m, problem.n, problem.k)
        timed = self.child.call(brief, Job(shape, {artifact.name: str(artifact.description)}, _ROUNDS))
        return timed.medians[BRIEF.name][artifact.name]


def _check(problem: Problem) -> Gemm:
    """Raises ArgusError (E903) for a user's file: arrays for it are made for the interpreter alone."""
    if isinstance(problem, Gemm):
        return problem
    message = f"`{problem}` cannot be timed on a GPU: products alone are"
    raise ArgusError(Diagnostic("E903", "error", message, help="take predicted times: --on model"))
