"""The gate for a problem as a function that worker processes can be sent."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import platformdirs
from attrs import evolve, frozen

from argus.core.ir import Kernel
from argus.core.verdict import ProgramReport, Report
from argus.emit.artifact import Artifact
from argus.emit.build_program import BuiltProgram, build_program
from argus.search.evaluation.checked_reports import Rejected
from argus.search.evaluation.gate import Tools, evaluate, prove_and_build
from argus.search.evaluation.gpu import Gpu
from argus.search.evaluation.gpu_bench import Job, job_of
from argus.search.evaluation.judgement import Judgement
from argus.search.evaluation.prediction import predict_built, predict_time
from argus.search.problems.problem import problem_of
from argus.search.problems.traced import Traced
from argus.solvers.cache import Cache
from argus.verifier.api import build, verify


@frozen
class GateTask:
    """The gate for a problem as a picklable function for workers. gpu: whether times are measured."""

    problem: str
    target: str
    gpu: bool = False
    folder: Path | None = None

    def __call__(self, name: str, text: str = "") -> Judgement:
        tools = evolve(_tools(), folder=self._folder(name))
        if self.gpu:
            # What is to be launched is proved here and now, without answers from disk.
            tools = evolve(tools, device=_gpu(), verify=verify)
        return evaluate(problem_of(self.problem, self.target), name, tools, text)

    def prepare(self, name: str, text: str) -> Job | str:
        """A candidate that is ready to be timed, proved and built here and now, or why it is rejected."""
        asked, tools = problem_of(self.problem, self.target), evolve(_tools(), verify=verify, folder=self._folder(name))
        try:
            kernel, artifact = prove_and_build(asked, name, tools, text)
        except Rejected as stopped:
            return stopped.why
        return job_of(asked, kernel, artifact.description)

    def _folder(self, name: str) -> Path | None:
        return None if self.folder is None else self.folder / name


@cache
def _tools() -> Tools:
    return Tools(
        _verified,
        _built,
        predict_time,
        predict_built=predict_built,
    )


def _verified(traced: Traced) -> Report | ProgramReport:
    return verify(traced, cache=Cache())


def _built(traced: Traced, folder: Path | None) -> Artifact | BuiltProgram:
    if isinstance(traced, Kernel):
        return build(traced, directory=folder)
    place = folder or platformdirs.user_cache_path("argus") / "programs" / traced.name
    return build_program(traced, place)


@cache
def _gpu() -> Gpu:
    return Gpu()
