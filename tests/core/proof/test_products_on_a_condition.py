"""Products of a stage of which some are on a condition: as many groups of a use as there are in every tile."""

from __future__ import annotations

import pytest
from attrs import evolve

from argus.core.ir import Kernel
from argus.core.proof.sync.roles import extract_protocol
from argus.core.query import Budget
from argus.verifier.kernel import verify
from property_tests.programs import CORPUS, templates

COUNTED = CORPUS / "refuted" / "product_of_rows_that_there_are_counted.py"


def standing(kernel: Kernel, invariant: str) -> str:
    report = verify(kernel, solver="z3", budget=evolve(Budget(), runs=0))
    return next(each.standing for each in report.findings if each.invariant == invariant)


def always(*given: object) -> bool:
    del given
    return True


def test_counted_as_a_group_of_each_use_it_would_slip_past(monkeypatch: pytest.MonkeyPatch) -> None:
    (template,) = templates(COUNTED)
    kernel = template.trace()
    assert standing(kernel, "I5") != "proved"
    monkeypatch.setattr(extract_protocol, "_is_a_group_of_each_use", always)
    assert standing(kernel, "I5") == "proved"
