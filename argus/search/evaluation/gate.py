"""The gate: the sequence of checks that every candidate passes before its time counts.

Stages are ordered by cost, and a candidate enters a stage only after passing all earlier ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from typing import Any, Protocol

from attrs import define, evolve, frozen

from argus.core.cost.addressing import NotModelledError
from argus.core.cost.predict import Prediction
from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.core.verdict import ProgramReport, Report
from argus.emit.artifact import Artifact
from argus.emit.build_program import BuiltProgram
from argus.emit.resources import compiled_from_report
from argus.policy.bounds import Bounds, Impossible, check_time
from argus.policy.planner import Outcome
from argus.search.bench_harness.verdict import Caught, Passed, Verdict
from argus.search.evaluation.checked_reports import Rejected, check_report, check_written
from argus.search.evaluation.judgement import Judgement, Stage
from argus.search.evaluation.numerics import disagreement, too_large
from argus.search.evaluation.reward import Predict, resources_of
from argus.search.problems.kernel_file import KernelFile
from argus.search.problems.llm_kernels import trace_candidate
from argus.search.problems.problem import Problem, display_name, sizes_of
from argus.search.problems.traced import Traced, admits, assumptions_text, kernels_of
from argus.verifier.rejections import rendered

_MOST_DIAGNOSTICS = 4
_DEVICE = ("E405", "E408", "E409", "E410")


class DeviceTools(Protocol):
    """Checks and timing on a GPU."""

    def disagreement(self, problem: Problem, kernel: Traced, artifact: Artifact | BuiltProgram) -> Caught | None:
        """A difference from the float64 reference or a forbidden side effect; None if correct. Raises ArgusError."""
        ...

    def time(self, problem: Problem, kernel: Traced, artifact: Artifact | BuiltProgram) -> Verdict:
        """The time of one call, or why the measurement is rejected. Raises ArgusError."""
        ...


@frozen
class Tools:
    """Dependencies of the gate, replaceable in tests.

    verify: of a kernel or program, with replay of counterexamples. build: into a folder. device: the GPU; without one,
    `predict` gives the times, or `predict_built` of the code that was built. folder: for code; None for the user's
    cache.
    """

    verify: Callable[[Traced], Report | ProgramReport]
    build: Callable[[Any, Path | None], Artifact | BuiltProgram]
    predict: Predict
    device: DeviceTools | None = None
    folder: Path | None = None
    predict_built: Callable[[Kernel, Mapping[str, int], Artifact], Prediction] | None = None


@define
class _Progress:
    """The judgement of a candidate while it passes the gate."""

    judgement: Judgement
    clock: Callable[[], float]

    @contextmanager
    def through(self, stage: Stage) -> Generator[None]:
        """Enter a stage and record its time, also if it rejects the candidate."""
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
    """Run a candidate through the gate. The candidate's own diagnostics become its judgement.

    text: source of a written kernel; it must satisfy the problem's specification, not only its own claims.

    Raises ArgusError for errors that are not the candidate's: E303 without a compiler, E6xx without a solver.
    """
    passage = _Progress(Judgement(name, "timed", "parse"), clock)
    try:
        _run_stages(passage, problem, name, text, tools)
    except Rejected as stopped:
        return evolve(
            passage.judgement,
            outcome=stopped.outcome,
            why=stopped.why,
            counterexample=stopped.counterexample,
            diagnostics=tuple(rendered(each, text) for each in stopped.diagnostics[:_MOST_DIAGNOSTICS]),
        )
    return passage.judgement


def prove_and_build(
    problem: Problem, name: str, tools: Tools, text: str = ""
) -> tuple[Traced, Artifact | BuiltProgram]:
    """The kernel of a candidate and its code, after all stages that need no GPU. Raises Rejected, and as `evaluate`."""
    return _proved_and_built(
        _Progress(Judgement(name, "timed", "parse"), time.perf_counter), problem, name, text, tools
    )


def _proved_and_built(
    passage: _Progress, problem: Problem, name: str, text: str, tools: Tools
) -> tuple[Traced, Artifact | BuiltProgram]:
    with passage.through("parse"), _candidate_faults("ill-formed", "E0", "E1", "E2", "E5", "E903", "E907", "E94"):
        kernel = trace_candidate(text, problem) if text else problem.kernel(name)
        if not admits(kernel, sizes_of(problem, kernel)):
            told = f"`{kernel.name}` is not for {display_name(str(problem))}: it assumes {assumptions_text(kernel)}"
            raise Rejected("ill-formed", told)
    with passage.through("invariants"):
        passage.judgement = evolve(passage.judgement, notes=problem.notes)
        if text and isinstance(kernel, Kernel):
            notes = check_written(problem, kernel, tools.verify)
            passage.judgement = evolve(passage.judgement, notes=(*problem.notes, *notes))
        else:
            check_report(tools.verify(kernel))
    with passage.through("interpreter"), _candidate_faults("wrong", "E402"):
        if not too_large(problem, kernel):
            found = disagreement(problem, kernel)
            if found:
                raise Rejected("wrong", found)
        elif tools.device is None:
            raise Rejected("unknown", "no sizes that it admits are small enough for the interpreter: it needs a GPU")
    with passage.through("compile"), _candidate_faults("not compiled", "E304", "E307", "E5"):
        return kernel, tools.build(kernel, tools.folder)


def _run_stages(passage: _Progress, problem: Problem, name: str, text: str, tools: Tools) -> None:
    kernel, artifact = _proved_and_built(passage, problem, name, text, tools)
    passage.judgement = evolve(passage.judgement, resources=resources_of(artifact), place=str(artifact.description))
    if tools.device is None:
        with passage.through("timing"):
            found = _predicted(kernel, artifact, problem, tools)
        passage.judgement = evolve(
            _explained(passage.judgement, max(found, key=lambda each: each.microseconds)),
            microseconds=sum(each.microseconds for each in found),
            notes=(*passage.judgement.notes, *dict.fromkeys(note for each in found for note in each.notes)),
        )
        return
    with passage.through("device"), _candidate_faults("lost", *_DEVICE):
        wrong = tools.device.disagreement(problem, kernel, artifact)
        if wrong is not None:
            raise Rejected(wrong.outcome, str(wrong))
    with passage.through("timing"), _candidate_faults("lost", *_DEVICE):
        measured = _check_plausible(tools.device.time(problem, kernel, artifact), problem, kernel)
        passage.judgement = evolve(passage.judgement, microseconds=measured, reward="measured")
    # The static model explains a measured time, too, where it can.
    with suppress(ArgusError, NotModelledError):
        launches = _predicted(kernel, artifact, problem, evolve(tools, predict_built=None))
        passage.judgement = _explained(passage.judgement, max(launches, key=lambda each: each.microseconds))


def _explained(judgement: Judgement, found: Prediction) -> Judgement:
    """With the static model's breakdown of the time, and what limits it."""
    held = found.occupancy
    parts = [f"{found.bottleneck}; {held.blocks} blocks of {held.waves} waves a processor, limited by {held.limit}"]
    for stall in found.exposed[:1]:
        frame = stall.stmt.span.frame
        line = "" if frame is None else f" at line {frame.line} of {PurePath(frame.file).name}"
        parts.append(f"the longest stall is {stall.microseconds:.4g} us of `{stall.group}`{line}")
    return evolve(judgement, breakdown=dict(found.parts), limiting="; ".join(parts))


def _predicted(kernel: Traced, artifact: Artifact | BuiltProgram, problem: Problem, tools: Tools) -> list[Prediction]:
    """The prediction of each launch; one follows the other."""
    built = artifact.kernels if isinstance(artifact, BuiltProgram) else (artifact,)
    pairs, sizes = zip(kernels_of(kernel), built, strict=True), sizes_of(problem, kernel)
    if tools.predict_built is not None:
        return [tools.predict_built(each, sizes, made) for each, made in pairs]
    return [tools.predict(each, sizes, compiled_from_report(made.report)) for each, made in pairs]


def _check_plausible(verdict: Verdict, problem: Problem, kernel: Traced) -> float:
    """The measured time in microseconds. Raises Rejected if it is below the machine's lower bound."""
    match verdict:
        case Caught():
            raise Rejected(verdict.outcome, str(verdict))
        case Passed(microseconds):
            found = check_time(microseconds, _bounds(problem, kernel))
            if isinstance(found, Impossible):
                raise Rejected("cheat", str(found))
            return microseconds


def _bounds(problem: Problem, kernel: Traced) -> Bounds:
    """Bounds of this kernel's own work, which may be less than that of the other kernels of the user's file."""
    if isinstance(problem, KernelFile) and isinstance(kernel, Kernel):
        return problem.bounds_of(kernel)
    return problem.bounds


@contextmanager
def _candidate_faults(outcome: Outcome, *codes: str) -> Generator[None]:
    """Turn diagnostics with these code prefixes, which the candidate causes, into its rejection."""
    try:
        yield
    except ArgusError as problem:
        if problem.diagnostic.code.startswith(codes):
            why = f"{problem.diagnostic.code}: {problem.diagnostic.message}"
            raise Rejected(outcome, why, diagnostics=(problem.diagnostic,)) from None
        raise
