"""Rows that integers in memory end: the check of their ends (I25) is needed, as a sum of real numbers shows no NaN."""

from __future__ import annotations

import pytest
from attrs import evolve

from argus.core.ir import Copy
from argus.core.proof.outputs import claims
from argus.core.query import Budget
from argus.core.verdict import Unknown
from argus.verifier.kernel import verify
from tests.verifier.switched_off_checks import assert_proved, load_edited

NO_RUNS = evolve(Budget(), runs=0)
ENDS = "X.rows(first, end), W.rows(first, end)"
OTHERS = {
    "rows have no end": "X.rows(first), W.rows(first, end)",
    "weights have no end": "X.rows(first, end), W.rows(first)",
    "rows end one later": "X.rows(first, end + 1), W.rows(first, end)",
    "weights end with the sequence after": "X.rows(first, end), W.rows(first, scalar(starts[minimum(e + 2, E)]))",
}
"""Ends of which one is that of the sequence: the sum over the real numbers is right."""
NAMED = (" load, loop,", " load, loop, minimum,"), ("    (e,) =", "    E = Y.shape[0]\n    (e,) =")


def no_copies(_: object) -> tuple[Copy, ...]:
    return ()


@pytest.mark.share(128, among="verifier: checks of values")
@pytest.mark.parametrize("ends", OTHERS.values(), ids=OTHERS)
def test_rows_of_others_slip_past_without_the_check_of_ends(ends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = load_edited("weighted_rows_of_sequences", (ENDS, ends), *NAMED)
    verdict = verify(kernel, solver="z3", budget=NO_RUNS).verdict
    assert isinstance(verdict, Unknown), verdict
    assert "which is not 0 if it holds NaN" in str(verdict.reason)

    monkeypatch.setattr(claims, "unended_rows", no_copies)
    monkeypatch.setattr(claims, "unlike_ends", no_copies)

    assert_proved(kernel)
