"""The ping-pong GEMM of gfx942 and the purpose of each of its parts: a table of single-edit mutants."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from argus.core.verdict import Proved, Refuted
from argus.interp.run import run
from argus.interp.search.schedule import DIRECTED, Order, Schedule, Style
from argus.verifier.kernel import verify
from tests.interp.skewed import pingpong

STYLES: tuple[Style, ...] = ("late", "early", "mixed")
ORDERS: tuple[Order, ...] = ("random", "round_robin")
SCHEDULES = (*DIRECTED, *(Schedule(s, seed, o) for s in STYLES for o in ORDERS for seed in range(1, 5)))
FEW = (*DIRECTED, *(Schedule("mixed", seed) for seed in range(1, 4)))
SIZES = {"M": 64, "N": 64, "K": 136}


def codes(edit: str, schedule: Schedule) -> set[str]:
    return {violation.code for violation in run(pingpong(edit), SIZES, None, schedule, values=False).violations}


def judged(edit: str) -> str:
    """The verifier's verdict: "proved", or the invariant refuted."""
    verdict = verify(pingpong(edit), solver="z3").verdict
    return verdict.counterexample.code if isinstance(verdict, Refuted) else type(verdict).__name__.lower()


@pytest.mark.share(64, among="interp: pingpong")
@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 64), (70, 65, 200), (1, 130, 128), (3, 2, 8)])
@pytest.mark.parametrize("schedule", [SCHEDULES[0], SCHEDULES[9], Schedule("mixed", 9)], ids=str)
def test_it_multiplies(m: int, n: int, k: int, schedule: Schedule) -> None:
    random = np.random.default_rng(3)
    a, b = (random.standard_normal((rows, k)).astype(ml_dtypes.bfloat16) for rows in (m, n))
    outcome = run(pingpong(), {"M": m, "N": n, "K": k}, {"A": a, "B": b}, schedule)
    assert outcome.violations == ()
    expected = a.astype(np.float64) @ b.astype(np.float64).T
    np.testing.assert_allclose(outcome.arrays["C"].astype(np.float64), expected, rtol=2**-8, atol=2**-10)


@pytest.mark.share(20, among="correct kernels in the interpreter")
def test_it_is_right_under_every_schedule_and_proved() -> None:
    assert len(SCHEDULES) >= 24
    assert all(codes("", schedule) == set() for schedule in SCHEDULES)
    assert judged("") == "proved"


@pytest.mark.share(64, among="interp: pingpong")
@pytest.mark.parametrize(
    ("edit", "code"),
    [
        ("vmem wait", "I31"),
        ("store wait", "I31"),
        ("operand wait 0 0", "I31"),
        ("operand wait 1 0", "I31"),
        ("operand wait 1 1", "I31"),
        ("late operand waits", "I30"),
        ("zeros", "I38"),
        ("first barrier", "I5"),
        ("barrier 4", "I36"),
        ("barrier 5", "I36"),
        ("barrier 6", "I5"),
        ("barrier 7", "I5"),
        ("skew", "I32"),
        ("unskew", "I32"),
        ("skew in the loop", "I32"),
    ],
)
def test_a_twin_is_caught_on_every_schedule_and_refuted(edit: str, code: str) -> None:
    assert all(code in codes(edit, schedule) for schedule in FEW)
    assert judged(edit) == code


@pytest.mark.share(64, among="interp: pingpong")
@pytest.mark.parametrize("edit", ["operand wait 0 1", *(f"barrier {number}" for number in range(4))])
def test_redundant_synchronisation_may_be_removed(edit: str) -> None:
    """A wait that the next one covers, and the barriers that are schedule and not safety."""
    assert all(codes(edit, schedule) == set() for schedule in FEW)
    assert judged(edit) == "proved"


def test_a_deadlock_report_names_the_waiting_waves() -> None:
    (found,) = run(pingpong("unskew"), SIZES, None, DIRECTED[0], values=False).violations
    assert found.code == "I32"
    assert found.message == "wave 4 waits at barrier 26, but wave 0 ended after 25"
    assert found.facts == (
        ("waves 0 to 3", "ended after 25 barriers"),
        ("waves 4 to 7", "at barrier 26, which the others never reach"),
    )


@pytest.mark.share(64, among="interp: pingpong")
@pytest.mark.parametrize("solver", ["cvc5", "portfolio", "all"])
def test_every_solver_proves_it(solver: str) -> None:
    report = verify(pingpong(), solver=solver)
    assert isinstance(report.verdict, Proved)
    assert {finding.standing for finding in report.findings} == {"proved", "not applicable"}
