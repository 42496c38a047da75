"""Formulas claimed of some elements only: `assert_equals(Y, ..., where=...)`."""

from __future__ import annotations

import json

import numpy as np
import pytest
from attrs import evolve

from argus.core import algebra
from argus.core.ir import Assert, Equals, Kernel, walk
from argus.core.ir.pretty import pretty
from argus.core.proof.outputs import writes
from argus.core.proof.values.held.facts import Known
from argus.core.query import Budget
from argus.core.serde import MalformedError, read, write
from argus.core.verdict import Proved, Refuted, Unknown
from argus.interp.run import run as interpret
from argus.interp.search.schedule import Schedule
from argus.runtime.run import run
from argus.verifier.kernel import verify
from tests.verifier.switched_off_checks import always, load_edited, no_obligations

WITHOUT_RUNS = evolve(Budget(), runs=0)
NAME = "formula_lower_triangle"
CLAIM = "assert_equals(Y, lambda i0, i1: X[i0, i1] / 2, where=lambda i0, i1: (i1 <= i0))"
DOUBLED_ABOVE = (
    "        copy(v * 0.5,",
    "        i, j = v.index\n        copy(where(n * TILE + j <= m * TILE + i, v * 0.5, v * 2.0),",
)
NAMES = ("spread, when", "spread, when, where")


def edited(*edits: tuple[str, str]) -> Kernel:
    return load_edited(NAME, *edits).trace()


def claim_of(kernel: Kernel) -> Equals:
    (found,) = (s.claim for s in walk(kernel.body) if isinstance(s, Assert) and isinstance(s.claim, Equals))
    return found


def test_a_restriction_is_printed_and_read_as_written() -> None:
    kernel = edited()
    assert pretty(kernel).splitlines()[-1].strip() == CLAIM
    (again,) = read(json.loads(json.dumps(write([kernel]))))
    assert isinstance(again, Kernel)
    assert pretty(again) == pretty(kernel)
    assert claim_of(again).where is claim_of(kernel).where is not algebra.TRUE


def test_a_restriction_to_an_axis_that_is_not_there_is_malformed() -> None:
    kernel = edited()
    claim = claim_of(kernel)
    stmts = tuple(
        evolve(s, claim=evolve(claim, where=algebra.le(algebra.coord(2), 0)))
        if isinstance(s, Assert) and s.claim is claim
        else s
        for s in kernel.prologue
    )
    with pytest.raises(MalformedError):
        read(json.loads(json.dumps(write([evolve(kernel, prologue=stmts)]))))


@pytest.mark.share(3)
def test_other_elements_may_hold_anything() -> None:
    kernel = edited(DOUBLED_ABOVE, NAMES)
    assert isinstance(verify(kernel, budget=WITHOUT_RUNS).verdict, Proved)
    everywhere = edited(DOUBLED_ABOVE, NAMES, (", where=lambda r, c: c <= r)", ")"), ("when(n <= m)", "when(n <= n)"))
    assert isinstance(verify(everywhere).verdict, Refuted)


TWINS = {
    "another value": ("copy(v * 0.5,", "copy(v * 0.25,"),
    "the diagonal doubled": ("copy(v * 0.5,", "copy(v * 2.0,"),
}


@pytest.mark.share(6)
@pytest.mark.parametrize("name", TWINS)
def test_a_claimed_element_has_the_value(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = edited(TWINS[name])
    assert isinstance(verify(kernel, budget=WITHOUT_RUNS).verdict, Unknown)
    monkeypatch.setattr(Known, "equal", always)
    assert isinstance(verify(kernel, budget=WITHOUT_RUNS).verdict, Proved)


@pytest.mark.share(3)
def test_a_claimed_element_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = edited(("when(n <= m)", "when(n < m)"))
    assert isinstance(verify(kernel, budget=WITHOUT_RUNS).verdict, Unknown)
    monkeypatch.setattr(writes, "coverage_obligations", no_obligations)
    assert isinstance(verify(kernel, budget=WITHOUT_RUNS).verdict, Proved)


@pytest.mark.parametrize("draw", range(3))
def test_a_run_compares_what_is_claimed(draw: int) -> None:
    schedule = Schedule("late", 0, "lowest", draw=draw)
    right = interpret(edited(DOUBLED_ABOVE, NAMES), {"N": 68}, None, schedule, values=False)
    assert right.violations == ()
    wrong = interpret(edited(("c <= r", "c <= r + 1")), {"N": 68}, None, schedule, values=False)
    assert [(each.code, each.element) for each in wrong.violations] == [("I39", (31, 32))]


def test_a_run_on_arrays_compares_what_is_claimed() -> None:
    ran = run(edited(DOUBLED_ABOVE, NAMES), {"N": 40}, on="interpreter")
    assert ran.comparison is not None
    assert ran.comparison.right
    held = ran.arrays["Y"]
    assert not np.array_equal(held, np.tril(held))
    wrong = run(edited(("copy(v * 0.5,", "copy(v * 2.0,")), {"N": 40}, on="interpreter")
    assert wrong.comparison is not None
    assert not wrong.comparison.right
