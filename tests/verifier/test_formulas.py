"""Verdicts of kernels that claim formulas: right ones are not refuted, wrong ones only by the comparison of values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

from argus.core.query import Budget
from argus.core.verdict import Refuted, Unknown
from argus.interp.memory.cells import BoolArray
from argus.interp.values import formulas
from argus.interp.values.formulas import Exact
from argus.verifier.kernel import verify
from property_tests.programs import CORPUS, templates
from tests.claimed_kernels import with_formula
from tests.interp.test_right_formulas import LAYER_NORM, PRODUCT

RIGHT = sorted((CORPUS / "formulas").glob("*.py"))
WRONG = sorted((CORPUS / "refuted").glob("formula_*.py"))
BRIEF = evolve(Budget.about(0.5), runs=Budget().runs)


def named(path: Path) -> str:
    return path.stem


@pytest.mark.share(232, among="verifier: formulas")
@pytest.mark.parametrize("path", RIGHT, ids=named)
def test_a_right_kernel_has_the_verdict_that_its_first_line_names(path: Path) -> None:
    (template,) = templates(path)
    report = verify(template.trace(), budget=BRIEF)
    expected = path.read_text(encoding="utf-8").splitlines()[0]
    assert f"# verdict: {str(type(report.verdict).__name__).lower()}" == expected, report.diagnostics


def nothing_differs(found: Exact, _expected: Exact, _allowed: Exact) -> BoolArray:
    return np.zeros(found.shape, np.bool_)


@pytest.mark.share(232, among="verifier: formulas")
@pytest.mark.parametrize("path", WRONG, ids=named)
def test_only_the_comparison_refutes_a_wrong_twin(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (template,) = templates(path)
    assert isinstance(verify(template.trace(), budget=BRIEF).verdict, Refuted)
    monkeypatch.setattr(formulas, "differs", nothing_differs)
    assert isinstance(verify(template.trace(), budget=BRIEF).verdict, Unknown)


DIAGNOSED = {
    "first_k_skipped": ("C", PRODUCT, "I3"),
    "k_counted_twice": ("C", PRODUCT, "I3"),
    "layer_norm_mean_of_a_warp": ("Y", LAYER_NORM, "I25"),
}


@pytest.mark.share(232, among="verifier: formulas")
@pytest.mark.parametrize("name", DIAGNOSED)
def test_where_tags_tell_the_cause_they_are_the_diagnosis(name: str) -> None:
    """A wrong kernel whose tags disagree too is refuted by the tags, which say why."""
    output, formula, code = DIAGNOSED[name]
    verdict = verify(with_formula(CORPUS / "refuted" / f"{name}.py", output, formula), budget=BRIEF).verdict
    assert isinstance(verdict, Refuted)
    assert verdict.counterexample.code == code
