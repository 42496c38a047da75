"""The documents of each tool, without a server and without running kernel texts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from argus.cli.mcp_server import Tools
from argus.core.diagnostic import Diagnostic, InternalError
from argus.policy.technique import Effect, Technique
from argus.report.diagnostic_text import to_json
from argus.runtime.sandbox import (
    Answer,
    Array,
    Built,
    CheckedKernel,
    Compared,
    Failed,
    Interpreted,
    Refused,
    Request,
    Verified,
)
from argus.runtime.sandbox.request import LARGEST_TEXT, Result
from argus.search.evaluation.judgement import Judgement
from argus.search.loop import Limits as Until
from argus.search.problems.problem import problem_of
from argus.search.run import SearchResult, Settings
from tests.documents import complaints

NO_KERNEL: Mapping[str, Any] = {}


def answering(*results: Result) -> Tools:
    """Tools whose texts all hold one kernel for each of these results."""

    def ask(_: Request) -> Answer:
        return Answer(
            tuple(CheckedKernel(f"k{n}", "gfx942", ("M",), (r,), NO_KERNEL) for n, r in enumerate(results)), "", 1.0
        )

    return Tools(ask=ask)


def test_exit_codes_are_those_of_the_worst_kernel() -> None:
    verdicts = [Verified("proved", 0, (), {"name": "a"}, ""), Verified("unknown", 2, (), {"name": "b"}, "u")]
    assert answering(*verdicts).verify("", "", "z3", 1.0)["exit_code"] == 2
    found = answering(*verdicts, Verified("refuted", 1, (), {"name": "c"}, "r")).verify("", "", "z3", 1.0)
    assert found["exit_code"] == 1
    assert [each["name"] for each in found["kernels"]] == ["a", "b", "c"]
    assert found["shown"] == "u\n\nr"


def test_a_refusal_is_a_document_of_the_schema() -> None:
    why = Diagnostic("E941", "error", "no isolation", help="install bwrap")
    refusing = Tools(ask=lambda _: Refused(why, to_json(why), "error[E941]: no isolation", "", 0.0))
    found = refusing.verify("", "", "z3", 1.0)
    assert found["exit_code"] == 3
    assert complaints({key: value for key, value in found.items() if key != "shown"}) == []


def test_failures_and_successes_are_both_reported() -> None:
    why = to_json(Diagnostic("E501", "error", "not built yet", help="wait"))
    found = answering(Failed("E501", "not built yet", why, "text"), Built("gfx942", {"k.hip": b"x"}, {}, ("spills",)))
    document = found.build("", "", "", with_code=False)
    assert document["exit_code"] == 3
    assert document["diagnostics"][0]["code"] == "E501"
    assert document["kernels"][0]["warnings"] == ["spills"]
    assert "code" not in document["kernels"][0]


def test_outputs_are_summarised() -> None:
    values = np.array([1.0, np.nan, -np.inf, 4.0], np.float32)
    for compared, code in ((None, 2), (Compared("c", 4, 0.0, 1.0, 0.0, 0), 0), (Compared("c", 4, 2.0, 1.0, 2.0, 1), 1)):
        found = answering(Interpreted({"Y": Array.of(values)}, compared, 0.1)).interpret("", "", {}, 0)
        assert found["exit_code"] == code
        summary = found["kernels"][0]["outputs"]["Y"]
        assert summary == {
            "dtype": "f32",
            "shape": [4],
            "first": [1.0, "nan", "-inf", 4.0],
            "least": 1.0,
            "greatest": 4.0,
            "not_finite": 2,
        }


def test_an_internal_error_is_reported_as_one() -> None:
    def ask(_: Request) -> Answer:
        raise InternalError("judging failed")

    found = Tools(ask=ask).verify("", "", "z3", 1.0)
    assert (found["exit_code"], found["internal_error"]["message"]) == (4, "judging failed")


@pytest.mark.parametrize("seed", [-1, 1 << 40])
def test_arguments_out_of_bounds_are_usage(seed: int) -> None:
    found = answering().interpret("", "", {}, seed)
    assert (found["exit_code"], found["diagnostics"][0]["code"]) == (3, "E701")


def test_techniques_are_found_by_words() -> None:
    effect = Effect(0.9, 1.1, 1.3, "time")
    known = [
        Technique(n, n, i, "local", t, "any", (), "none", effect, "r", "s", ())
        for n, i, t in (("swizzle", "no bank conflicts", ("sm_90a",)), ("unroll", "fewer branches", ("gfx942",)))
    ]
    tools = Tools(knowledge=lambda: known)
    assert [each["name"] for each in tools.search_knowledge("bank conflicts", "", 5)["techniques"]] == ["swizzle"]
    assert tools.search_knowledge("bank conflicts", "gfx942", 5)["techniques"] == []
    assert tools.search_knowledge("branches conflicts", "", 1)["techniques"][0]["effect"]["likely"] == 1.1


def test_a_search_answers_with_its_best_and_what_was_judged(tmp_path: Path) -> None:
    best = Judgement("cdna3", "timed", "timing", microseconds=347.0)
    asked: list[tuple[str, str, Settings]] = []

    def search(problem: str, target: str, settings: Settings) -> SearchResult:
        asked.append((problem, target, settings))
        known = problem_of(problem, target)
        return SearchResult(known, "run-0001", tmp_path / "runs.db", best, (best,), "trials spent", 0)

    document = Tools(search=search, longest=30.0).optimise("gemm:64x64x64", "gfx942", 600.0, 3)

    assert document["exit_code"] == 0
    assert document["best"]["name"] == "cdna3"
    assert asked[0][2].limits == Until(30.0, 3)
    assert Tools().optimise("gemm:64x64", "gfx942", 1.0, 1)["diagnostics"][0]["code"] == "E903"


@pytest.mark.parametrize("problem", ["{file}", "{file}:doubled", "file:0123456789abcdef:M=4:{file}", "this"])
def test_an_agent_cannot_search_a_file(problem: str, tmp_path: Path) -> None:
    """It would run in the server's own process."""
    file, ran = tmp_path / "kernel.py", tmp_path / "ran"
    file.write_text(f"open({str(ran)!r}, 'w')\n", encoding="utf-8")
    found = Tools().optimise(problem.format(file=file), "gfx942", 10.0, 1)

    assert (found["exit_code"], found["diagnostics"][0]["code"]) == (3, "E903")
    assert not ran.exists()


@pytest.mark.parametrize(("seconds", "trials"), [(float("nan"), 5), (float("inf"), 5), (-1.0, 5), (10.0, 0)])
def test_a_search_without_limits_is_refused(seconds: float, trials: int) -> None:
    found = Tools().optimise("gemm:64x64x64", "gfx942", seconds, trials)

    assert (found["exit_code"], found["diagnostics"][0]["code"]) == (3, "E701")


def test_a_bad_reference_gets_a_document() -> None:
    def fails(_: Request) -> Answer:
        raise InternalError("no answer")

    giant = Tools(ask=fails).interpret("x", "", {}, 0, "x" * (LARGEST_TEXT + 1))
    assert (giant["exit_code"], giant["diagnostics"][0]["code"]) == (3, "E701")
    failed = Tools(ask=fails).interpret("x", "", {}, 0, "x")
    assert (failed["exit_code"], failed["internal_error"]["message"]) == (4, "no answer")
