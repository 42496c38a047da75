"""The SARIF log of verifications: the properties that SARIF 2.1.0 requires, and where its results point."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from argus.cli.main import main
from argus.core.diagnostic import Diagnostic, Label
from argus.core.span import Frame, Span
from argus.core.verdict import Cost, Report, Unknown
from argus.report.sarif import sarif
from argus.verifier.kernel import verify
from property_tests.programs import CORPUS, templates

Data = dict[str, Any]
ROOT = CORPUS.parents[1]
FAULTS = ["transposed_b", "no_full_wait", "lds_over_budget", "swapped_output"]


def log_of(name: str) -> Data:
    (template,) = templates(CORPUS / "refuted" / f"{name}.py")
    log = sarif([verify(template, solver="z3")], version="1.2.3", root=str(ROOT), pages="https://example.org/argus/")
    return cast(Data, json.loads(json.dumps(log)))


def run_of(log: Data) -> Data:
    (run,) = log["runs"]
    return cast(Data, run)


@pytest.mark.share(4)
@pytest.mark.parametrize("name", FAULTS)
def test_a_log_has_what_the_standard_requires(name: str) -> None:
    log = log_of(name)
    run = run_of(log)
    driver = run["tool"]["driver"]

    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-schema-2.1.0.json")
    assert (driver["name"], driver["semanticVersion"]) == ("Argus", "1.2.3")
    assert all({"id", "shortDescription", "fullDescription", "help"} <= rule.keys() for rule in driver["rules"])
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
        assert result["level"] == "none" or result["kind"] == "fail"
        check_locations(run, [*result["locations"], *result.get("relatedLocations", [])])


def check_locations(run: Data, locations: list[Data]) -> None:
    bases = run["originalUriBaseIds"]
    for location in locations:
        physical = location["physicalLocation"]
        assert location["message"]["text"]
        assert (ROOT / physical["artifactLocation"]["uri"]).is_file()
        assert bases[physical["artifactLocation"]["uriBaseId"]]["uri"] == f"{ROOT.as_uri()}/"
        region = physical["region"]
        assert region["startLine"] >= 1
        assert 1 <= region["startColumn"] < region.get("endColumn", region["startColumn"] + 1)


@pytest.mark.share(3)
def test_regions_count_from_1_and_cover_the_statement() -> None:
    (result,) = run_of(log_of("transposed_b"))["results"]
    (location,) = result["locations"]
    region = location["physicalLocation"]["region"]
    text = (ROOT / location["physicalLocation"]["artifactLocation"]["uri"]).read_text(encoding="utf-8")
    line = text.splitlines()[region["startLine"] - 1]

    assert line[region["startColumn"] - 1 : region["endColumn"] - 1] == "mma(mm, acc, a, b, init=eq(k, 0))"
    assert location["logicalLocations"] == [{"name": "gemm", "fullyQualifiedName": "gemm (gfx942)", "kind": "function"}]


@pytest.mark.share(8, among="logs")
def test_rules_lead_to_their_pages() -> None:
    (rule,) = run_of(log_of("transposed_b"))["tool"]["driver"]["rules"]

    assert rule["helpUri"] == "https://example.org/argus/docs/invariants/I01.md"
    assert "docs/invariants/I01.md" in rule["help"]["text"]


@pytest.mark.share(3)
def test_the_way_of_the_data_is_a_code_flow() -> None:
    (result,) = run_of(log_of("transposed_b"))["results"]
    (flow,) = result["codeFlows"]
    (thread_flow,) = flow["threadFlows"]
    texts = [each["location"]["message"]["text"] for each in thread_flow["locations"]]

    assert texts[0] == "copy: `next_a`[0, 0] from `A`[0, 0], thread 0"
    assert texts[-1] == "copy: `b`[1, 0] from `lds_b`[0, 1, 0], thread 1, k = 0"
    assert len(result["relatedLocations"]) == len(texts)
    assert [each["id"] for each in result["relatedLocations"]] == list(range(len(texts)))


def test_a_race_has_two_places_and_no_flow() -> None:
    (result,) = run_of(log_of("no_full_wait"))["results"]

    assert len(result["relatedLocations"]) == 1
    assert "codeFlows" not in result


@pytest.mark.share(8, among="logs")
def test_fingerprints_are_of_the_fault_and_not_of_its_line() -> None:
    prints = {json.dumps(run_of(log_of(name))["results"][0]["partialFingerprints"]) for name in FAULTS}

    assert len(prints) == len(FAULTS)


def open_report(file: str) -> Report:
    place = Span((Frame(file, 3, 4, 2, "f"),))
    doubt = Diagnostic("I5", "unknown", "neither", Label(place, "here"), (Label(Span(), "nowhere"),), kernel="f")
    return Report("f", "gfx942", "z3", Unknown("r", "a"), (), (doubt,), Cost(0.1, 1, 1, 0, 0))


def test_an_open_question_is_no_failure_and_paths_are_escaped() -> None:
    (result,) = run_of(cast(Data, sarif([open_report("/src/my kernels/a#b.py")], version="0", root="/src")))["results"]
    physical = result["locations"][0]["physicalLocation"]

    assert (result["kind"], result["level"]) == ("open", "none")
    assert physical["artifactLocation"] == {"uri": "my%20kernels/a%23b.py", "uriBaseId": "SRCROOT"}
    assert physical["region"] == {"startLine": 3, "startColumn": 5}
    assert "relatedLocations" not in result


def test_a_file_elsewhere_has_its_whole_address() -> None:
    run = run_of(cast(Data, sarif([open_report("/lib/a b.py")], version="0", root="/src")))

    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "file:///lib/a%20b.py"}
    assert "helpUri" not in run["tool"]["driver"]["rules"][0]


def test_a_log_without_findings_has_an_empty_list_of_them(tmp_path: Path) -> None:
    path = tmp_path / "found.sarif"

    assert main(["verify", str(ROOT / "examples" / "01_prove.py"), "--no-cache", "--sarif", str(path)]) == 0
    assert run_of(json.loads(path.read_text(encoding="utf-8")))["results"] == []
