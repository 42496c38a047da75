"""Cheats are caught; each check catches a cheat that no other check does; honest candidates pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import chain, repeat

import numpy as np
import pytest
from attrs import evolve

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.search.bench_harness.bench import Call, Operand
from argus.search.bench_harness.examine import examine, measure, run_to_end
from argus.search.bench_harness.products import Product
from argus.search.bench_harness.session import session
from argus.search.bench_harness.verdict import CHECKS, Caught, Check, Passed, Plan, Verdict
from argus.search.problems.problem import Gemm
from argus.testing.simulated import Simulated, SimulatedBench
from tests.search.bench_harness import memory_cheats, numeric_cheats, timing_cheats
from tests.search.bench_harness.candidates import HONEST, SHAPE, Candidate

PROBLEM = Product(Gemm(*SHAPE, "bf16", "sm_90a"))
SMALL = Product(Gemm(32, 32, 256, "bf16", "sm_90a"))
PLAN = Plan(seed=8_128, seeds=2, rounds=3, most_calls=4)
SEEDS = (8_128, 496, 28)

CAUGHT_BY: dict[type[Candidate], set[Check]] = {
    memory_cheats.Stale: {"poison"},
    numeric_cheats.LastRowsSkipped: {"shapes"},
    numeric_cheats.TailOfKSkipped: {"shapes"},
    numeric_cheats.ZerosDetected: {"adversarial"},
    numeric_cheats.NormalNumbersExpected: {"adversarial"},
    numeric_cheats.Fp8: {"numbers", "precision"},
    numeric_cheats.SumsInHalfPrecision: {"numbers", "precision"},
    numeric_cheats.Truncated: {"precision"},
    memory_cheats.RememberedByPointer: {"contents"},
    memory_cheats.RememberedByShape: {"contents"},
    memory_cheats.FirstAddresses: {"addresses"},
    timing_cheats.OtherStream: {"clocks"},
    timing_cheats.Deferred: {"numbers"},
    timing_cheats.UntilItIsRead: {"instruments"},
    timing_cheats.PatchedEvents: {"clocks", "instruments"},
    timing_cheats.PatchedClocks: {"instruments"},
    memory_cheats.KnownSeed: {"numbers"},
    memory_cheats.ReferenceFound: {"numbers"},
    memory_cheats.OutsideOfItsOutput: {"guards"},
    memory_cheats.ScratchInItsInput: {"intact"},
    numeric_cheats.OnlyCheckedShapes: {"numbers"},
    timing_cheats.IdleUnderTiming: {"timed"},
    numeric_cheats.PoisonReturned: {"numbers"},
    numeric_cheats.CornerEstimated: {"numbers"},
    timing_cheats.FirstOfABurst: {"linear"},
    timing_cheats.FasterThanPhysics: {"physics"},
    timing_cheats.AllButTheLastDropped: {"timed"},
    timing_cheats.CoarseUnderTiming: {"timed"},
    memory_cheats.WorkedWhenBound: {"timed"},
    numeric_cheats.EachFifthLeftOut: {"numbers", "shapes", "adversarial"},
    timing_cheats.PatchedHostClock: {"instruments"},
}
LET_BY: dict[Check, type[Candidate]] = {
    "numbers": numeric_cheats.CornerEstimated,
    "precision": numeric_cheats.Truncated,
    "poison": memory_cheats.Stale,
    "guards": memory_cheats.OutsideOfItsOutput,
    "intact": memory_cheats.ScratchInItsInput,
    "contents": memory_cheats.RememberedByPointer,
    "addresses": memory_cheats.FirstAddresses,
    "shapes": numeric_cheats.LastRowsSkipped,
    "secret": memory_cheats.KnownSeed,
    "adversarial": numeric_cheats.NormalNumbersExpected,
    "reference": memory_cheats.ReferenceFound,
    "timed": timing_cheats.IdleUnderTiming,
    "whole device": timing_cheats.OtherStream,
    "clocks": timing_cheats.OtherStream,
    "linear": timing_cheats.FirstOfABurst,
    "physics": timing_cheats.FasterThanPhysics,
    "instruments": timing_cheats.UntilItIsRead,
}
"""For each check, a cheat that passes without it."""


def judged(kind: type[Candidate], plan: Plan, pace: float = HONEST, noise: float = 0.0) -> Verdict:
    device = Simulated(noise=noise)
    return examine(kind(device, pace), PROBLEM, SimulatedBench(device), plan)


def timed(kind: type[Candidate], waits: Callable[[], float], plan: Plan, problem: Product = PROBLEM) -> Verdict:
    device = Simulated(waits=waits)
    with session(SimulatedBench(device), plan, problem) as opened:
        return run_to_end(measure(opened, kind(device, HONEST)))


def busy_host(share: float) -> Callable[[], float]:
    """A host that waits 2 ms for a processor before this share of its readings, drawn with a fixed seed."""
    draws = np.random.default_rng(495)
    return lambda: 2000.0 if draws.random() < share else 0.0


@pytest.mark.share(64, among="search: bench harness: cheats")
@pytest.mark.parametrize("kind", CAUGHT_BY, ids=lambda kind: kind.__name__)
def test_a_cheat_is_caught_by_the_check_that_names_it(kind: type[Candidate]) -> None:
    found = judged(kind, PLAN)
    assert isinstance(found, Caught)
    assert found.check in CAUGHT_BY[kind]
    assert found.why


@pytest.mark.share(64, among="search: bench harness: cheats")
@pytest.mark.parametrize("check", CHECKS)
def test_without_a_check_a_cheat_passes(check: Check) -> None:
    found = judged(LET_BY[check], Plan(PLAN.seed, {check}, seeds=2, rounds=3, most_calls=4))
    assert isinstance(found, Passed), str(found)


@pytest.mark.nightly
@pytest.mark.parametrize(("pace", "noise"), [(1.05, 0.0), (HONEST, 0.0), (40.0, 0.0), (HONEST, 0.05)])
def test_an_honest_candidate_passes(pace: float, noise: float) -> None:
    least = SimulatedBench(Simulated()).least(PROBLEM)
    for seed in SEEDS:
        found = judged(Candidate, Plan(seed, seeds=2, rounds=5, most_calls=4), pace, noise)
        assert isinstance(found, Passed), str(found)
        assert found.microseconds == pytest.approx(pace * least, rel=0.001 + 2 * noise)


class OnlyOwnSizes(Candidate):
    """Declines all sizes but the problem's."""

    def __call__(self, a: Operand, b: Operand, c: Operand) -> Call:
        if (*a.shape, b.shape[0]) != (32, 256, 32):
            raise ArgusError(Diagnostic("E405", "error", "other sizes"))
        return super().__call__(a, b, c)


class OnlyOwnSizesAndNormalNumbers(OnlyOwnSizes, numeric_cheats.NormalNumbersExpected):
    """The same, with right results for normal numbers only."""


def test_a_candidate_that_declines_other_sizes_is_examined_at_its_own() -> None:
    found: list[Verdict] = []
    for kind in (OnlyOwnSizes, OnlyOwnSizesAndNormalNumbers):
        device = Simulated()
        found.append(examine(kind(device, HONEST), SMALL, SimulatedBench(device), PLAN))

    assert isinstance(found[0], Passed), str(found[0])
    assert isinstance(found[1], Caught)
    assert found[1].check == "adversarial"


LEAST = SimulatedBench(Simulated()).least(PROBLEM)


@pytest.mark.share(64, among="search: bench harness: cheats")
def test_an_honest_candidate_passes_beside_other_processes() -> None:
    found = timed(Candidate, busy_host(0.5), PLAN)

    assert isinstance(found, Passed), str(found)
    assert found.microseconds == pytest.approx(HONEST * LEAST, rel=0.001)


def test_inconsistent_times_are_measured_again() -> None:
    """In the first try, each wait is longer than the one before."""

    def waits() -> Callable[[], float]:
        return partial(next, chain((1000.0 * number for number in range(24)), repeat(0.0)))

    once = timed(Candidate, waits(), evolve(PLAN, tries=1), SMALL)
    assert isinstance(once, Caught)
    assert once.check == "clocks"
    assert isinstance(timed(Candidate, waits(), PLAN, SMALL), Passed)


def timed_beside_stalls(stalls: Callable[[], float], plan: Plan) -> Verdict:
    """A small candidate near the lower bound, whose launches are late."""
    device = Simulated(stalls=stalls)
    with session(SimulatedBench(device), plan, SMALL) as opened:
        return run_to_end(measure(opened, Candidate(device, 1.05)))


def test_a_time_that_a_late_launch_shortens_is_measured_again() -> None:
    """In the first try, the second launch of each short burst is late: twice the calls seem to take little more."""

    def stalls() -> Callable[[], float]:
        late = (92.0 if number % 12 == 1 else 0.0 for number in range(48))
        return partial(next, chain(late, repeat(0.0)))

    once = timed_beside_stalls(stalls(), evolve(PLAN, tries=1))
    assert isinstance(once, Caught)
    assert once.check == "physics"
    found = timed_beside_stalls(stalls(), PLAN)
    assert isinstance(found, Passed), str(found)
    assert found.microseconds == pytest.approx(1.05 * SimulatedBench(Simulated()).least(SMALL), rel=0.001)


def test_a_time_that_late_launches_lengthen_is_measured_again() -> None:
    """In the first try, a launch of the long bursts of two rounds is late."""

    def stalls() -> Callable[[], float]:
        late = (900.0 if number in (17, 29) else 0.0 for number in range(48))
        return partial(next, chain(late, repeat(0.0)))

    least = SimulatedBench(Simulated()).least(SMALL)
    once = timed_beside_stalls(stalls(), evolve(PLAN, tries=1))
    assert isinstance(once, Passed), str(once)
    assert once.microseconds > 2 * least
    found = timed_beside_stalls(stalls(), PLAN)
    assert isinstance(found, Passed), str(found)
    assert found.microseconds == pytest.approx(1.05 * least, rel=0.001)


@pytest.mark.share(64, among="search: bench harness: cheats")
def test_a_cheat_is_caught_beside_other_processes() -> None:
    found = timed(timing_cheats.OtherStream, busy_host(0.5), PLAN)

    assert isinstance(found, Caught)
    assert found.check == "clocks"
