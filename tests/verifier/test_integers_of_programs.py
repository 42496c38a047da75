"""Values between launches that depend on integers from memory: they are named by the program's tensors."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from argus.core.proof.outputs import program_claims
from argus.core.proof.values.held import between
from argus.core.query import Budget
from argus.core.verdict import Proved, Refuted, Unknown
from argus.verifier import program as verifier
from argus.verifier.loader import load
from argus.verifier.program import verify_program

CORPUS = Path(__file__).parent.parent / "corpus" / "programs"
WRONG = "refuted/formula_lengths_of_another_tensor.py"
NO_RUNS = evolve(Budget(), runs=0)


def verdict(file: str, budget: Budget | None = None) -> object:
    (program,) = {each.program for each in load(str(CORPUS / file))} - {None}
    assert program is not None
    return verify_program(program, solver="z3", budget=budget).verdict


def _nothing(*_: object) -> str:
    return ""


def _none(_: object) -> frozenset[str]:
    return frozenset()


@pytest.mark.share(3)
def test_sums_of_pages_are_followed_through_both_launches() -> None:
    found = verdict("proved/formula_pages_in_parts.py", NO_RUNS)

    assert isinstance(found, Proved)
    assert any(line.startswith("assert_equals(Y") for line in found.results)


@pytest.mark.share(8)
@pytest.mark.parametrize("file", ["formula_next_page_of_the_table.py", "formula_first_page_of_each_part_left_out.py"])
def test_other_pages_are_refuted(file: str) -> None:
    found = verdict(f"refuted/{file}")

    assert isinstance(found, Refuted)
    assert found.counterexample.code == "I39"


@pytest.mark.share(3)
def test_lengths_of_another_tensor_would_be_taken_for_those_of_the_same_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(verdict(WRONG, NO_RUNS), Unknown)

    for module in (between, program_claims):
        monkeypatch.setattr(module, "renamed_integers", _nothing)
    monkeypatch.setattr(verifier, "_renamed", _none)
    assert isinstance(verdict(WRONG, NO_RUNS), Proved)
