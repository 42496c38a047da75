"""The gate: what a candidate goes through before its time counts, whoever proposed it.

Each stage costs more than the one before, and none is entered unless the ones before let the candidate by.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, cast

from attrs import define, evolve, frozen

from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.core.verdict import Proved, Refuted, Report
from argus.core.walk import show
from argus.emit.artifact import Artifact
from argus.emit.resources import compiled_from_report
from argus.interp.search.search import assumed, holds
from argus.policy.bounds import Bounds, Impossible, check_time
from argus.policy.planner import Outcome
from argus.report.json_document import report_json
from argus.search.bench_harness.verdict import Caught, Passed, Verdict
from argus.search.evaluation.judgement import Judgement, Stage
from argus.search.evaluation.numerics import disagreement
from argus.search.evaluation.reward import Predict, resources
from argus.search.problems.kernel_file import KernelFile
from argus.search.problems.llm_kernels import trace_text, unproved_part
from argus.search.problems.problem import Gemm, Problem

_BUDGETS = "I22"
"""The invariant that says that a kernel fits its machine."""
_DEVICE = ("E405", "E408", "E409", "E410")


class DeviceTools(Protocol):
    """A GPU."""

    def disagreement(self, problem: Problem, kernel: Kernel, artifact: Artifact) -> Caught | None:
        """Where its results differ from the float64 reference, or what it does beside. Raises ArgusError."""
        ...

    def time(self, problem: Problem, kernel: Kernel, artifact: Artifact) -> Verdict:
        """Microseconds of one call, or why they are none. Raises ArgusError."""
        ...


@frozen
class Tools:
    """What the gate uses, so that a test may stand in for any of it.

    verify: with counterexamples replayed. build: into a folder. device: a GPU at hand; without one times are what
    `predict` says. folder: for code; None for the user's cache.
    """

    verify: Callable[[Kernel], Report]
    build: Callable[[Kernel, Path | None], Artifact]
    predict: Predict
    device: DeviceTools | None = None
    folder: Path | None = None


@define
class _Rejected(Exception):  # noqa: N818 reason: no error, an answer
    outcome: Outcome
    why: str
    counterexample: Mapping[str, object] | None = None


@define
class _Progress:
    """A candidate on its way."""

    judgement: Judgement
    clock: Callable[[], float]

    @contextmanager
    def through(self, stage: Stage) -> Generator[None]:
        """The time of a stage counts, also of the one that stops the candidate."""
        before = self.clock()
        self.judgement = evolve(self.judgement, stage=stage)
        try:
            yield
        finally:
            taken = {**self.judgement.seconds, stage: self.clock() - before}
            self.judgement = evolve(self.judgement, seconds=taken)


def evaluate(
    problem: Problem, name: str, tools: Tools, text: str = "", clock: Callable[[], float] = time.perf_counter
) -> Judgement:
    """A design of a problem, as far through the gate as it comes. Diagnostics of the candidate become answers.

    text: of a kernel that somebody wrote; it is held to the problem and not only to its own claims.

    Raises ArgusError for what is no fault of the candidate: E303 without a compiler, E6xx without a solver.
    """
    passage = _Progress(Judgement(name, "timed", "parse"), clock)
    try:
        _run_stages(passage, problem, name, text, tools)
    except _Rejected as stopped:
        return evolve(
            passage.judgement, outcome=stopped.outcome, why=stopped.why, counterexample=stopped.counterexample
        )
    return passage.judgement


def _run_stages(passage: _Progress, problem: Problem, name: str, text: str, tools: Tools) -> None:
    with passage.through("parse"), _candidate_faults("ill-formed", "E0", "E1", "E2", "E5", "E903", "E907", "E94"):
        kernel = trace_text(text, problem) if text else problem.kernel(name)
        if not holds(kernel, assumed(kernel), problem.sizes):
            raise _Rejected("ill-formed", f"`{kernel.name}` is not for {problem}: it assumes {show(assumed(kernel))}")
    with passage.through("invariants"):
        passage.judgement = evolve(passage.judgement, notes=problem.notes)
        _check_report(tools.verify(kernel), kernel if text and isinstance(problem, Gemm) else None)
    with passage.through("interpreter"):
        found = disagreement(problem, kernel)
        if found:
            raise _Rejected("wrong", found)
    with passage.through("compile"), _candidate_faults("not compiled", "E304", "E5"):
        artifact = tools.build(kernel, tools.folder)
    passage.judgement = evolve(passage.judgement, resources=resources(artifact), place=str(artifact.description))
    if tools.device is None:
        with passage.through("timing"):
            found = tools.predict(kernel, problem.sizes, compiled_from_report(artifact.report))
        passage.judgement = evolve(
            passage.judgement, microseconds=found.microseconds, notes=(*problem.notes, *found.notes)
        )
        return
    with passage.through("device"), _candidate_faults("lost", *_DEVICE):
        wrong = tools.device.disagreement(problem, kernel, artifact)
        if wrong is not None:
            raise _Rejected(wrong.outcome, str(wrong))
    with passage.through("timing"), _candidate_faults("lost", *_DEVICE):
        measured = _check_plausible(tools.device.time(problem, kernel, artifact), problem, kernel)
        passage.judgement = evolve(passage.judgement, microseconds=measured, reward="measured")


def _check_report(report: Report, written: Kernel | None) -> None:
    """written: a kernel of somebody's text, whose claims may speak of less than the problem asks for."""
    match report.verdict:
        case Proved() as verdict if written is not None and unproved_part(verdict, written, written=True):
            raise _Rejected("unknown", unproved_part(verdict, written, written=True))
        case Proved() if not report.uncovered:
            return
        case Proved():
            raise _Rejected("unknown", f"no claim speaks of {', '.join(report.uncovered)}")
        case Refuted(counterexample):
            outcome: Outcome = "over limits" if counterexample.code == _BUDGETS else "refuted"
            raise _Rejected(outcome, f"{counterexample.code}: {counterexample.message}", _counterexample(report))
        case _:
            raise _Rejected("unknown", report.diagnostics[0].primary.text if report.diagnostics else "not decided")


def _counterexample(report: Report) -> Mapping[str, object] | None:
    found = report_json(report)["counterexample"]
    return cast("Mapping[str, object] | None", found)


def _check_plausible(verdict: Verdict, problem: Problem, kernel: Kernel) -> float:
    """A time that the machine can reach; a shorter one is no time of this work."""
    match verdict:
        case Caught():
            raise _Rejected(verdict.outcome, str(verdict))
        case Passed(microseconds):
            found = check_time(microseconds, _bounds(problem, kernel))
            if isinstance(found, Impossible):
                raise _Rejected("cheat", str(found))
            return microseconds


def _bounds(problem: Problem, kernel: Kernel) -> Bounds:
    """Of what this kernel does: a kernel of another text may do less than those of the user's file."""
    return problem.bounds_of(kernel) if isinstance(problem, KernelFile) else problem.bounds


@contextmanager
def _candidate_faults(outcome: Outcome, *codes: str) -> Generator[None]:
    """What the candidate is to blame for becomes its answer."""
    try:
        yield
    except ArgusError as problem:
        if problem.diagnostic.code.startswith(codes):
            raise _Rejected(outcome, f"{problem.diagnostic.code}: {problem.diagnostic.message}") from None
        raise
