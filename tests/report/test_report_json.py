"""The JSON report of a verification: its schema and its fields. test_corpus.py checks the corpus against the schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
from jsonschema import Draft202012Validator

from argus.cli.main import main
from argus.core.verdict import Refuted
from argus.report.json_document import report_json, schema
from argus.verifier.kernel import verify
from property_tests.programs import CORPUS, templates
from tests.documents import complaints, document

Data = dict[str, Any]


def found(name: str) -> Data:
    """The counterexample of a kernel of the corpus, as JSON gives it back."""
    (template,) = templates(CORPUS / "refuted" / f"{name}.py")
    report = verify(template, solver="z3")
    return cast(Data, json.loads(json.dumps(report_json(report)["counterexample"])))


def line_of(hop: Data) -> str:
    lines: list[str] = Path(hop["at"]["file"]).read_text(encoding="utf-8").splitlines()
    return lines[int(hop["at"]["line"]) - 1].strip()


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(schema())


def test_every_object_of_the_schema_says_what_must_be_there() -> None:
    definitions = cast("dict[str, Data]", schema()["$defs"])
    assert all(each["required"] for each in definitions.values() if each["type"] == "object")


@pytest.mark.parametrize(("arguments", "code"), [(["verify", "nosuch.py"], 3), (["verify"], 3)])
def test_what_is_refused_is_a_document_too(arguments: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments, "--json"]) == code
    assert complaints(json.loads(capsys.readouterr().out)) == []


def test_a_document_that_lacks_a_key_or_has_one_more_is_found() -> None:
    assert complaints(document([], 0)) == []
    assert complaints({"schema": "argus.report/1", "kernels": [], "exit_code": 0}) != []
    assert complaints(document([], 0) | {"more": 1}) != []


def test_a_race_names_both_threads_and_both_lines() -> None:
    race = found("no_full_wait")

    assert (race["thread"], race["other_thread"]) == (128, 0)
    assert line_of(race).startswith("mma(mm, acc, a[k % 2]")
    assert line_of({"at": race["other_at"]}).startswith("copy(A.tile((64, 16), (m, k)), a[k % 2], via=tma")
    assert (race["iteration"], race["other_iteration"]) == ({"k_2": 0}, {"k": 0})
    assert "`full`" in race["repair"]
    assert race["chain"] == []


@pytest.mark.share(3)
def test_a_mismatch_names_both_tags_and_both_ways() -> None:
    mismatch = found("transposed_b")

    assert [(each["of"], each["names"]) for each in mismatch["tags"]] == [
        ("tags of `a`", {"m": 0, "k": 0}),
        ("tags of `b`", {"k": 1, "n": 0}),
    ]
    assert [(each["buffer"], each["element"]) for each in mismatch["elements"]] == [("a", [0, 0]), ("b", [1, 0])]
    assert [hop["sources"][0]["space"] for hop in mismatch["chain"]] == ["global", "register", "shared"] * 2
    assert mismatch["chain"][-1]["target"] == mismatch["elements"][-1]


def test_a_wrong_result_tells_what_was_expected_and_which_others_are_wrong_too() -> None:
    wrong = found("halves_of_registers_swapped")

    assert {each["of"]: each["names"] for each in wrong["tags"]} == {
        "expected": {"m": 0, "k": 0},
        "found": {"m": 32, "k": 0},
    }
    assert wrong["alike"][0] == {"buffer": "C", "space": "global", "element": [0, 1]}
    assert wrong["elements"][0] not in wrong["alike"]


def test_a_fault_that_needs_no_run_says_so() -> None:
    (template,) = templates(CORPUS / "refuted" / "lds_over_budget.py")
    verdict = verify(template, solver="z3").verdict

    assert isinstance(verdict, Refuted)
    assert verdict.counterexample.replayed == "recomputed"
    assert verdict.counterexample.at.frame is not None
    assert verdict.counterexample.repair
