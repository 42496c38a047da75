"""Counters of uses stay below 2^32 where the number of slots is not a power of two."""

from __future__ import annotations

import pytest
from attrs import evolve

from argus.core.proof.sync.roles import obligations
from argus.core.query import Budget
from argus.core.verdict import Proved, Unknown
from argus.verifier.kernel import verify
from property_tests.programs import CORPUS, templates


def nothing(*_: object) -> tuple[()]:
    return ()


def test_a_counter_that_may_wrap_is_reported_with_the_missing_assumption() -> None:
    (template,) = templates(CORPUS / "unknown" / "three_slots_of_a_counter_that_wraps.py")
    verdict = verify(template, solver="z3", budget=evolve(Budget(), runs=8)).verdict
    assert isinstance(verdict, Unknown)
    assert "3 stages lose their order" in verdict.reason
    assert "`assume` that L*((N + 15) // 16)*((M + 63) // 64)*((K + 15) // 16) is below 2^32" in verdict.reason


def test_a_counter_that_wraps_slips_past_without_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    (template,) = templates(CORPUS / "unknown" / "three_slots_of_a_counter_that_wraps.py")
    monkeypatch.setattr(obligations, "counter_bound_obligations", nothing)
    assert isinstance(verify(template, solver="z3").verdict, Proved)


def test_uses_that_are_few_enough_are_proved_to_be() -> None:
    (template,) = templates(CORPUS / "proved" / "three_slots_over_many_tiles.py")
    report = verify(template, solver="z3")
    assert isinstance(report.verdict, Proved)
    assert next(each.standing for each in report.findings if each.invariant == "I28") == "proved"
