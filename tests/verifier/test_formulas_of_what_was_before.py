"""Formulas of outputs that a kernel adds to name what those held before: `before(Y)[r]`."""

from __future__ import annotations

import json

import pytest
from attrs import evolve

from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.core.ir.pretty import pretty
from argus.core.proof.outputs import programs
from argus.core.proof.values.held.facts import Known
from argus.core.query import Budget
from argus.core.serde import MalformedError, read, write
from argus.core.verdict import Proved, Refuted, Unknown
from argus.interp.run import run
from argus.interp.search.schedule import Schedule
from argus.verifier.kernel import verify
from tests.verifier.switched_off_checks import always, load_edited, no_obligations

WITHOUT_RUNS = evolve(Budget(), runs=0)
CLAIM = "assert_equals(Y, lambda i0: before(Y)[i0] + total(lambda j: X[i0, j], over=N))"
ALL_LANES = ("Y[r], by=first_lane, edge=0, combine=add", "Y[r], edge=0, combine=add")
TWINS = {
    "zeros before": ("before(Y)[r] + total", "0 * before(Y)[r] + total"),
    "twice what was before": ("before(Y)[r] + total", "2 * before(Y)[r] + total"),
    "the first part by all": ("span(p,", "span(0 * p,"),
    "another row": ("before(Y)[r] +", "before(Y)[0 * r] +"),
}


def edited(*edits: tuple[str, str]) -> Kernel:
    return load_edited("formula_rows_added_to", *edits).trace()


def test_a_claim_is_printed_and_read_as_written() -> None:
    kernel = edited()
    assert pretty(kernel).splitlines()[-1].strip() == CLAIM
    document = json.loads(json.dumps(write([kernel])))
    (again,) = read(document)
    assert isinstance(again, Kernel)
    assert pretty(again) == pretty(kernel)
    (row,) = (row for row in document["rows"] if row[0] == "Equals")
    row[-1] = ["X", "Z"]
    with pytest.raises(MalformedError):
        read(document)


@pytest.mark.share(6)
@pytest.mark.parametrize("name", TWINS)
def test_a_twin_is_not_proved(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = edited(TWINS[name])
    assert isinstance(verify(kernel, budget=WITHOUT_RUNS).verdict, Unknown)
    monkeypatch.setattr(Known, "equal", always)
    assert isinstance(verify(kernel, budget=WITHOUT_RUNS).verdict, Proved)


@pytest.mark.share(3)
def test_each_block_adds_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all lanes add their copy of a sum, the value of one lane would be taken for what a block adds."""
    kernel = edited(ALL_LANES, ("first_lane, ", ""))
    verdict = verify(kernel).verdict
    assert isinstance(verdict, Refuted)
    monkeypatch.setattr(programs, "_completeness_obligations", no_obligations)
    assert isinstance(verify(kernel, budget=WITHOUT_RUNS).verdict, Proved)


def test_without_naming_it_the_output_must_begin_with_zeros() -> None:
    kernel = edited(("before(Y)[r] + total", "total"))
    verdict = verify(kernel, budget=WITHOUT_RUNS).verdict
    assert isinstance(verdict, Unknown)
    assert "set to zero before" in verdict.reason


def test_an_output_by_its_plain_name_is_refused() -> None:
    with pytest.raises(ArgusError) as caught:
        edited(("before(Y)[r] + total", "Y[r] + total"))
    assert caught.value.diagnostic.code == "E112"
    assert "before(Y)[r, n]" in (caught.value.diagnostic.help or "")


@pytest.mark.parametrize("draw", range(3))
def test_a_run_compares_with_what_was_before(draw: int) -> None:
    schedule, sizes = Schedule("late", 0, "lowest", draw=draw), {"R": 3, "N": 520}
    assert run(edited(), sizes, None, schedule, values=False).violations == ()
    wrong = run(edited(TWINS["the first part by all"]), sizes, None, schedule, values=False)
    assert {each.code for each in wrong.violations} == {"I39"}
