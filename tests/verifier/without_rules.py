"""Verification by the expressions of what tiles hold alone, without the rules for tags."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from attrs import evolve

from argus.core import algebra
from argus.core.ir import Kernel
from argus.core.proof import tile_claims
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.obligation import Obligation
from argus.core.query import Budget
from argus.core.verdict import Verdict
from argus.verifier.kernel import verify

WITHOUT_RUNS = evolve(Budget(), runs=0)


def without_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Switch off the rules."""
    monkeypatch.setattr(tile_claims, "_by_rules", _undecided)


def nothing(*_: object) -> str:
    """No reason why tags would not say what a value is."""
    return ""


def _undecided(flow: Flow, *_: object) -> Iterator[Obligation]:
    stmt = flow.timeline.kernel.body[0]
    yield Obligation("I4", "nothing is known", stmt, algebra.FALSE, unknown="no rules")


def verdict(kernel: Kernel) -> Verdict:
    """The verdict without a search for counterexamples."""
    return verify(kernel, budget=WITHOUT_RUNS).verdict
