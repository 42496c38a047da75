"""Sums of what all executions of an addition add to an element: each check is needed."""

from __future__ import annotations

import pytest
from attrs import evolve

from argus.core.index import Cond
from argus.core.proof.values.held import additions
from argus.core.proof.values.held.facts import Known
from argus.core.query import Budget
from argus.core.values.expr import Expr
from argus.core.verdict import Proved, Unknown
from argus.kernels.attention_backward import FAMILIES
from argus.language import bf16
from argus.verifier.kernel import verify
from argus.verifier.program import verify_program
from tests.verifier.switched_off_checks import always, load_edited

BRIEF = evolve(Budget(), runs=0)
NAME = "formula_parts_added_in_a_loop"
TWICE = "gather((256,), lambda j: (i % count * 128 + j % 128,))"
HALF_TWICE = (
    ("count = ceil_div(N, COLUMNS)", "count = ceil_div(N, 128)"),
    ("R * ceil_div(N, COLUMNS)", "R * ceil_div(N, 128)"),
    ("X[p, i // count].tile((COLUMNS,), (i % count,))", f"X[p, i // count].{TWICE}"),
    ("Y[i // count].tile((COLUMNS,), (i % count,))", f"Y[i // count].{TWICE}"),
)
FIRST_ROW_NOT = (
    ("spread, total", "spread, total, when"),
    ("        copy(part", "        with when(i // count > 0):\n            copy(part"),
)
TWINS = {
    "a row less": (("loop(R * count)", "loop((R - 1) * count)"),),
    "not the first row": FIRST_ROW_NOT,
    "a part less": (("loop(R * count)", "loop(R * count - 1)"),),
    "a row further": (("X[p, i // count]", "X[p, (i // count + 1) % R]"),),
    "rows by turns": (
        ("i // count].tile((COLUMNS,), (i % count,)), edge", "i % R].tile((COLUMNS,), (i // R,)), edge"),
    ),
    "every other row": (("Y[i // count]", "Y[i // count // 2 * 2]"),),
    "two tiles in one place": HALF_TWICE,
}


def everywhere(_known: Known, _cond: Cond, value: Expr) -> Expr:
    return value


def no_digits(*_: object) -> None:
    return None


@pytest.mark.share(6)
@pytest.mark.parametrize("name", TWINS)
def test_a_twin_is_not_proved(name: str) -> None:
    verdict = verify(load_edited(NAME, *TWINS[name]), solver="z3", budget=BRIEF).verdict
    assert isinstance(verdict, Unknown), verdict


def test_what_is_added_is_added_where_there_is_such_an_execution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(additions, "_where", everywhere)
    assert isinstance(verify(load_edited(NAME, *FIRST_ROW_NOT), solver="z3", budget=BRIEF).verdict, Proved)


def test_each_element_of_a_tile_is_added_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(additions, "_is_box", always)
    assert isinstance(verify(load_edited(NAME, *HALF_TWICE), solver="z3", budget=BRIEF).verdict, Proved)


@pytest.mark.nightly
def test_a_row_and_a_part_are_found_from_the_digits_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(additions, "digits_of", no_digits)
    program = FAMILIES[bf16][64].trace("full_added")
    assert isinstance(verify_program(program, solver="z3", budget=BRIEF).verdict, Unknown)
