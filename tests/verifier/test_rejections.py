import json
from pathlib import Path

import pytest

import argus
from argus.core.diagnostic import Diagnostic
from argus.verifier.loader import load
from argus.verifier.rejections import rejection

REFUTED = Path(__file__).parents[1] / "corpus" / "refuted"


@pytest.mark.share(3)
def test_a_refuted_candidate_is_shown_by_its_counterexample() -> None:
    (found,) = load(str(next(iter(sorted(REFUTED.glob("*.py"))))))
    report = argus.verify(found.trace())
    assert isinstance(report.verdict, argus.Refuted)
    counterexample = report.verdict.counterexample
    shown = rejection("d001", "refuted", report)
    data = json.loads(shown.report)

    assert (shown.name, shown.outcome) == ("d001", "refuted")
    assert data["verdict"] == "refuted"
    assert data["counterexample"]["code"] == counterexample.code
    assert data["counterexample"]["message"] == counterexample.message
    assert data["counterexample"]["sizes"] == dict(counterexample.sizes)
    assert data["counterexample"]["at"]["line"] > 0
    assert "place" not in data["counterexample"]
    assert str(REFUTED) not in shown.report


def test_a_diagnostic_alone_is_shown_with_its_repair() -> None:
    found = Diagnostic("E109", "error", "tile does not divide", help="use a tile of 64", facts=(("tile", "63"),))
    data = json.loads(rejection("d001", "ill-formed", found).report)

    assert data == {
        "diagnostics": [
            {
                "code": "E109",
                "severity": "error",
                "message": "tile does not divide",
                "facts": [{"name": "tile", "value": "63"}],
                "help": "use a tile of 64",
            }
        ]
    }


def test_data_is_shown_without_what_is_empty() -> None:
    counterexample: dict[str, object] = {"code": "I5", "thread": 0, "alike": [1], "sizes": {}}
    found = {"stage": "invariants", "why": "", "counterexample": counterexample}
    data = json.loads(rejection("d001", "refuted", found).report)

    assert data == {"stage": "invariants", "counterexample": {"code": "I5", "thread": 0}}
