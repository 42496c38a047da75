"""Cheats are caught; each check catches a cheat that no other check does; honest candidates pass."""

from __future__ import annotations

import pytest

from argus.search.bench_harness.examine import examine
from argus.search.bench_harness.products import Product
from argus.search.bench_harness.verdict import CHECKS, Caught, Check, Passed, Plan, Verdict
from argus.search.problems.problem import Gemm
from argus.testing.simulated import Simulated, SimulatedBench
from tests.search.bench_harness import cheats
from tests.search.bench_harness.cheats import HONEST, SHAPE, Candidate

PROBLEM = Product(Gemm(*SHAPE, "bf16", "sm_90a"))
PLAN = Plan(seed=8_128, seeds=2, rounds=3, most_calls=4)
SEEDS = (8_128, 496, 28)

CAUGHT_BY: dict[type[Candidate], set[Check]] = {
    cheats.Stale: {"poison"},
    cheats.LastRowsSkipped: {"shapes"},
    cheats.TailOfKSkipped: {"shapes"},
    cheats.ZerosDetected: {"adversarial"},
    cheats.NormalNumbersExpected: {"adversarial"},
    cheats.Fp8: {"numbers", "precision"},
    cheats.SumsInHalfPrecision: {"numbers", "precision"},
    cheats.Truncated: {"precision"},
    cheats.RememberedByPointer: {"contents"},
    cheats.RememberedByShape: {"contents"},
    cheats.FirstAddresses: {"addresses"},
    cheats.OtherStream: {"clocks"},
    cheats.Deferred: {"numbers"},
    cheats.UntilItIsRead: {"instruments"},
    cheats.PatchedEvents: {"clocks", "instruments"},
    cheats.PatchedClocks: {"instruments"},
    cheats.KnownSeed: {"numbers"},
    cheats.ReferenceFound: {"numbers"},
    cheats.OutsideOfItsOutput: {"guards"},
    cheats.ScratchInItsInput: {"intact"},
    cheats.OnlyCheckedShapes: {"numbers"},
    cheats.IdleUnderTiming: {"timed"},
    cheats.PoisonReturned: {"numbers"},
    cheats.CornerEstimated: {"numbers"},
    cheats.FirstOfABurst: {"linear"},
    cheats.FasterThanPhysics: {"physics"},
    cheats.AllButTheLastDropped: {"timed"},
    cheats.CoarseUnderTiming: {"timed"},
    cheats.WorkedWhenBound: {"timed"},
    cheats.EachFifthLeftOut: {"numbers", "shapes", "adversarial"},
    cheats.PatchedHostClock: {"instruments"},
}
LET_BY: dict[Check, type[Candidate]] = {
    "numbers": cheats.CornerEstimated,
    "precision": cheats.Truncated,
    "poison": cheats.Stale,
    "guards": cheats.OutsideOfItsOutput,
    "intact": cheats.ScratchInItsInput,
    "contents": cheats.RememberedByPointer,
    "addresses": cheats.FirstAddresses,
    "shapes": cheats.LastRowsSkipped,
    "secret": cheats.KnownSeed,
    "adversarial": cheats.NormalNumbersExpected,
    "reference": cheats.ReferenceFound,
    "timed": cheats.IdleUnderTiming,
    "whole device": cheats.OtherStream,
    "clocks": cheats.OtherStream,
    "linear": cheats.FirstOfABurst,
    "physics": cheats.FasterThanPhysics,
    "instruments": cheats.UntilItIsRead,
}
"""For each check, a cheat that passes without it."""


def judged(kind: type[Candidate], plan: Plan, pace: float = HONEST, noise: float = 0.0) -> Verdict:
    device = Simulated(noise=noise)
    return examine(kind(device, pace), PROBLEM, SimulatedBench(device), plan)


@pytest.mark.share(2)
@pytest.mark.parametrize("kind", CAUGHT_BY, ids=lambda kind: kind.__name__)
def test_a_cheat_is_caught_by_the_check_that_names_it(kind: type[Candidate]) -> None:
    found = judged(kind, PLAN)
    assert isinstance(found, Caught)
    assert found.check in CAUGHT_BY[kind]
    assert found.why


@pytest.mark.share(8)
@pytest.mark.parametrize("check", CHECKS)
def test_without_a_check_a_cheat_passes(check: Check) -> None:
    found = judged(LET_BY[check], Plan(PLAN.seed, {check}, seeds=2, rounds=3, most_calls=4))
    assert isinstance(found, Passed), str(found)


@pytest.mark.share(4)
@pytest.mark.parametrize(("pace", "noise"), [(1.05, 0.0), (HONEST, 0.0), (40.0, 0.0), (HONEST, 0.05)])
def test_an_honest_candidate_passes(pace: float, noise: float) -> None:
    least = SimulatedBench(Simulated()).least(PROBLEM)
    for seed in SEEDS:
        found = judged(Candidate, Plan(seed, seeds=2, rounds=5, most_calls=4), pace, noise)
        assert isinstance(found, Passed), str(found)
        assert found.microseconds == pytest.approx(pace * least, rel=0.001 + 2 * noise)
