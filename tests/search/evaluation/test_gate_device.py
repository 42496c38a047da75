"""Cheating kernels in the gate: all are rejected, and each check is needed to reject one."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from attrs import frozen

from argus.core.cost.predict import predict
from argus.core.ir import Kernel
from argus.core.verdict import Report
from argus.emit.artifact import Artifact
from argus.emit.build_program import BuiltProgram
from argus.search.bench_harness.examine import check_results, measure, run_to_end
from argus.search.bench_harness.session import session
from argus.search.bench_harness.verdict import Caught, Check, Plan, Verdict
from argus.search.evaluation.gate import Tools, evaluate
from argus.search.evaluation.judgement import Judgement
from argus.search.problems.problem import Problem, gemm_of
from argus.search.problems.traced import Traced
from argus.solvers.cache import Cache
from argus.testing.simulated import Simulated, SimulatedBench
from argus.verifier.api import build, verify
from tests.search.bench_harness.candidates import HONEST, SHAPE, Candidate
from tests.search.bench_harness.test_cheats import CAUGHT_BY, LET_BY, PROBLEM

DESIGN = "cdna3"
THROUGH: tuple[Check, ...] = ("poison", "guards", "addresses", "timed", "clocks", "physics")
"""Some cheats of each stage; `test_cheats` has all."""
ASKED = gemm_of("gemm:{}x{}x{}:bf16".format(*SHAPE), "gfx942")


@frozen
class Card:
    """A simulated GPU that runs a cheat instead of the built kernel; restarted for each call."""

    kind: type[Candidate]
    plan: Plan

    def disagreement(self, problem: Problem, kernel: Traced, artifact: Artifact | BuiltProgram) -> Caught | None:
        assert isinstance(artifact, Artifact)
        assert (problem, kernel.target.name, artifact.target) == (ASKED, "gfx942", "gfx942")
        candidate = self.kind(Simulated(), HONEST)
        with session(SimulatedBench(candidate.device), self.plan, PROBLEM) as opened:
            return run_to_end(check_results(opened, candidate))

    def time(self, problem: Problem, kernel: Traced, artifact: Artifact | BuiltProgram) -> Verdict:
        assert isinstance(artifact, Artifact)
        assert (problem, kernel.target.name, artifact.target) == (ASKED, "gfx942", "gfx942")
        candidate = self.kind(Simulated(), HONEST)
        with session(SimulatedBench(candidate.device), self.plan, PROBLEM) as opened:
            return run_to_end(measure(opened, candidate))


@cache
def proved() -> Report:
    return verify(ASKED.kernel(DESIGN), cache=Cache())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    return build(ASKED.kernel(DESIGN), directory=tmp_path_factory.mktemp("code"))


def through(kind: type[Candidate], artifact: Artifact, *without: Check) -> Judgement:
    def made(kernel: Kernel, folder: Path | None) -> Artifact:
        del kernel, folder
        return artifact

    plan = Plan(8_128, without, seeds=2, rounds=3, most_calls=4)
    return evaluate(ASKED, DESIGN, Tools(lambda _: proved(), made, predict, Card(kind, plan)))


@pytest.mark.share(3)
def test_an_honest_kernel_has_a_measured_time(built: Artifact) -> None:
    found = through(Candidate, built)

    assert (found.outcome, found.stage, found.reward, found.why) == ("timed", "timing", "measured", "")
    assert found.microseconds == pytest.approx(HONEST * SimulatedBench(Simulated()).least(PROBLEM), rel=0.01)
    # The static model explains the measured time; its own prediction is another one.
    assert found.limiting
    assert "memory" in found.breakdown
    assert max(found.breakdown.values()) != found.microseconds


@pytest.mark.share(48)
@pytest.mark.parametrize("check", THROUGH)
def test_a_cheat_has_a_time_only_where_its_check_is_left_out(check: Check, built: Artifact) -> None:
    kind = LET_BY[check]
    found, let = through(kind, built), through(kind, built, check)

    assert found.microseconds is None
    assert found.outcome in ("wrong", "cheat")
    assert found.stage in ("device", "timing")
    assert found.why.partition(":")[0] in CAUGHT_BY[kind]
    assert (let.outcome, let.reward) == ("timed", "measured"), let.why
    assert let.microseconds is not None
