"""Candidates on this machine's GPU, in a process of their own: what hangs is stopped, what crashes is told."""

from __future__ import annotations

from attrs import define, field

from argus.emit.artifact import Artifact
from argus.optimizer.card import Job, results, times
from argus.optimizer.examination.verdict import Caught, Verdict
from argus.optimizer.problem import Problem
from argus.runtime.watched import Watched

SECONDS = 60.0


@define
class Gpu:
    """The GPU at hand. Both methods raise ArgusError: E405 to E410."""

    child: Watched = field(factory=lambda: Watched(SECONDS))

    def disagreement(self, problem: Problem, artifact: Artifact) -> Caught | None:
        return self.child.call(results, Job(problem, str(artifact.description)))

    def time(self, problem: Problem, artifact: Artifact) -> Verdict:
        return self.child.call(times, Job(problem, str(artifact.description)))
