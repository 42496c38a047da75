"""Property: a proved random small program fails in no run, and a refuted one fails in its counterexample's run.

Programs are copies through shared memory, matrix products, and roles around a ring; two in five are meant to be
correct, the others have one or two mistakes, some of them harmless. The verdict is compared with runs of the
interpreter: with tags under directed and random schedules, and with values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from argus.core.diagnostic import ArgusError
from argus.core.query import Budget
from argus.verifier.kernel import verify
from property_tests.depth import examples
from property_tests.small.program import Depth, Program, disagreement, draw

T = TypeVar("T")
COUNT = examples(200, 20_000)
FEW = Budget.about(0.2)


@st.composite
def programs(choosing: st.DrawFn) -> Program:
    def choose(options: Sequence[T]) -> T:
        return choosing(st.sampled_from(options))

    return draw(choose)


@pytest.mark.share(12, among="verdicts on edited kernels")
@settings(max_examples=COUNT, suppress_health_check=[HealthCheck.too_slow])
@given(program=programs())
def test_verdicts_on_small_programs(program: Program) -> None:
    try:
        kernel = program.kernel()
    except ArgusError as refused:
        event(f"rejected {refused.diagnostic.code}")
        return
    report = verify(kernel, solver="z3", budget=FEW)
    event(type(report.verdict).__name__)
    assert not disagreement(program, kernel, report, Depth(sizes=2))
