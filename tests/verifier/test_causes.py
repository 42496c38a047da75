"""The cause of a fault is reported before its symptoms, also where the smallest sizes show a symptom alone."""

from __future__ import annotations

import pytest

from argus.core.query import Budget
from argus.interp.compiled_kernel import Prepared
from argus.interp.search.budget import RunBudget
from argus.interp.search.runs import Runs
from argus.interp.search.search import sizes_in_order
from argus.verifier import refute, run_search
from tests.verifier.switched_off_checks import load

pytestmark = pytest.mark.share(3, among="verifier: causes")


def code_of(name: str, wanted: str) -> str:
    """The violation that is reported of a kernel if one of an invariant is looked for."""
    kernel = load(name).trace()
    found = refute.search(
        Prepared(kernel, Runs()), list(sizes_in_order(kernel)), frozenset((wanted,)), RunBudget.of(Budget())
    )
    assert found is not None
    return found.violation.code


def test_unlike_tags_are_the_cause_of_padding_that_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    assert code_of("wrong_swizzle", "I4") == "I1"
    monkeypatch.setattr(run_search, "_SOON", 1)
    assert code_of("wrong_swizzle", "I4") == "I4"


def test_a_run_that_shows_the_cause_is_the_last() -> None:
    assert code_of("swapped_k_order", "I3") == "I1"
