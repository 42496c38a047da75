"""Values are followed from launch to launch: twins of programs whose formulas are proved, and each check by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from attrs import evolve

from argus.core.dsl.programs import ProgramTemplate
from argus.core.ir import Program
from argus.core.proof.obligation import Obligation
from argus.core.proof.outputs import programs
from argus.core.proof.values.held import between
from argus.core.proof.values.held.facts import Known
from argus.core.proof.values.held.outputs import Stored
from argus.core.query import Budget
from argus.core.values.expr import Expr
from argus.core.verdict import Proved, Refuted, Unknown, Verdict
from argus.interp.memory.cells import BoolArray
from argus.interp.programs import run_program
from argus.interp.search.schedule import Schedule
from argus.interp.values import formulas
from argus.verifier.program import verify_program
from property_tests.programs import CORPUS
from tests.verifier.switched_off_checks import always

WITHOUT_RUNS = evolve(Budget(), runs=0)
EDITS: dict[str, tuple[str, str, str]] = {
    "a constant for a size": (
        "group_norm",
        "load(first[b, g], replicated(32)) / N",
        "load(first[b, g], replicated(32)) / 256",
    ),
    "the other sum": ("group_norm", "copy(one.sum(0), first", "copy(two.sum(0), first"),
    "another group's sum": ("group_norm", "load(first[b, g]", "load(first[b, 0 * g]"),
    "parts weighed alike": ("softmax_in_parts", "w = exp(load(L[r, p], replicated(32)) - top)", "w = exp(top - top)"),
    "no logarithm of the sum": ("softmax_in_parts", "top + log(sums)", "top + sums"),
    "no merge of the first part": (
        "softmax_in_parts",
        "for p in loop(P):\n        w",
        "for p in loop(1, P):\n        w",
    ),
    "the first part by all": ("rows_added_in_parts", "span(p,", "span(0 * p,"),
    "roots before the sums": (
        "rows_added_in_parts",
        "    squares(X, sums)\n    roots(sums, Y)",
        "    roots(sums, Y)\n    squares(X, sums)",
    ),
    "added twice": ("rows_added_in_parts", "    squares(X, sums)\n", "    squares(X, sums)\n    squares(X, sums)\n"),
    "the other half": ("halves", "where(n % 128 < 64", "where(n % 128 >= 64"),
    "all doubled": ("halves", "where(n % 128 < 64, X[r, n],", "where(n % 128 < 64, 2 * X[r, n],"),
}


def edited(name: str, *edits: tuple[str, str]) -> Program:
    """A proved program with each text replaced by another; each must occur exactly once."""
    path = CORPUS / "programs" / "proved" / f"formula_{name}.py"
    text = path.read_text(encoding="utf-8")
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    found: dict[str, object] = {"__name__": path.stem}
    exec(compile(text, str(path), "exec"), found)  # noqa: S102 reason: a corpus file
    (program,) = (value for value in found.values() if isinstance(value, ProgramTemplate))
    return program.trace()


def verdict_of(program: Program, budget: Budget = WITHOUT_RUNS) -> Verdict:
    return verify_program(program, budget=budget).verdict


@pytest.mark.share(24, among="verifier: values between launches")
@pytest.mark.parametrize("name", EDITS)
def test_a_twin_is_not_proved(name: str) -> None:
    path, old, new = EDITS[name]
    verdict = verdict_of(edited(path, (old, new)))
    assert isinstance(verdict, Unknown), verdict


@pytest.mark.share(24, among="verifier: values between launches")
@pytest.mark.parametrize("name", EDITS)
def test_only_the_comparison_keeps_a_twin_from_being_proved(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, old, new = EDITS[name]
    program = edited(path, (old, new))
    if name == "roots before the sums":  # the sums that it adds up afterwards are for nobody
        program = evolve(program, launches=program.launches[:-1])
    monkeypatch.setattr(Known, "equal", always)
    assert isinstance(verdict_of(program), Proved)


def without_checks(*_: object, **__: object) -> Iterator[Obligation]:
    return iter(())


@pytest.mark.share(3)
def test_a_tail_that_no_launch_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a launch leaves is its value at every element only if it stores every element."""
    stores = "by = spread((64,), threads=32, vector=2)"
    program = edited("halves", (f"ceil_div(N, 128)))\n    {stores}", f"N // 128))\n    {stores}"))
    assert not isinstance(verdict_of(program), Proved)
    monkeypatch.setattr(programs, "_completeness_obligations", without_checks)
    assert isinstance(verdict_of(program), Proved)


def first_value(_: object, cases: Sequence[Stored], __: object) -> Expr:
    return cases[0].value


@pytest.mark.share(3)
def test_the_store_that_wrote_an_element_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the first of two stores were taken for both, a wrong formula would be proved."""
    program = edited("halves", ("where(n % 128 < 64, X[r, n], 2 * X[r, n])", "X[r, n]"))
    assert isinstance(verdict_of(program), Unknown)
    monkeypatch.setattr(between, "_joined", first_value)
    assert isinstance(verdict_of(program), Proved)


def test_what_is_added_to_begins_with_zeros() -> None:
    program = edited("rows_added_in_parts", ("    zero(sums)\n", ""))
    verdict = verdict_of(program, Budget())
    assert isinstance(verdict, Refuted)
    assert verdict.counterexample.code == "I34"


ADDED = (
    ("    roots(sums, Y)\n", ""),
    ("sums = workspace(f32, (R,))", "sums = Y"),
    ("sqrt(total(lambda j: X[r, j] * X[r, j], over=N))", "total(lambda j: X[r, j] * X[r, j], over=N)"),
)
"""The program without its last launch: it claims the sums that parts add up in the output."""


def nowhere(found: formulas.Exact, *_: formulas.Exact) -> BoolArray:
    return np.zeros(found.shape, np.bool_)


@pytest.mark.share(3)
def test_a_claim_of_what_is_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(verdict_of(edited("rows_added_in_parts", *ADDED)), Proved)
    wrong = edited("rows_added_in_parts", *ADDED, ("span(p,", "span(0 * p,"))
    assert isinstance(verdict_of(wrong), Unknown)
    sizes, schedule = {"R": 2, "N": 520}, Schedule("late", 0, "lowest", draw=2)
    assert [each.code for each in run_program(wrong, sizes, None, schedule, values=False).violations][:1] == ["I39"]
    monkeypatch.setattr(formulas, "differs", nowhere)
    assert run_program(wrong, sizes, None, schedule, values=False).violations == ()
