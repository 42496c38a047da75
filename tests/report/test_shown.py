"""Reports, counterexamples, kernels and search results print as a person reads them."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

import argus
from argus.cli.screen import Screen
from argus.core.verdict import Counterexample, Refuted
from argus.report.svg import picture
from argus.search.evaluation.judgement import Judgement
from argus.search.problems.problem import problem_of
from argus.search.run import SearchResult
from property_tests.programs import CORPUS, templates


def test_a_report_prints_what_the_command_line_prints() -> None:
    (template,) = templates(CORPUS / "refuted" / "no_full_wait.py")
    kernel = template.trace()
    report = argus.verify(kernel, solver="z3")
    printed = StringIO()
    Screen(Console(file=printed, highlight=False, width=200)).report(report)

    assert f"{report}\n" == printed.getvalue()
    assert "34 |             mma(mm, acc" in str(report)
    assert repr(report) == "<Report gemm (sm_90a): refuted by I5, replayed in the interpreter>"
    shown = report._repr_html_()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType] reason: notebooks call it
    assert '<b style="color:#cf222e">gemm (sm_90a): refuted by I5' in shown
    assert isinstance(report.verdict, Refuted)
    _counterexample(report.verdict.counterexample)
    drawn = picture(kernel, report.verdict.counterexample)
    assert drawn is not None
    assert drawn.caption[0].startswith("gemm: I5, `a` is read by `math` while `load` writes it")
    assert ">gemm: I5, `a` is read by `math` while" in drawn.svg()
    assert 'style="max-width:100%;max-height:96vh"' in drawn.svg()
    assert drawn.txt().startswith("gemm: I5, ")


def _counterexample(found: Counterexample) -> None:
    lines = str(found).splitlines()

    assert lines[0] == f"I5: {found.message}"
    assert lines[1].startswith("  at M = 1, K = 8, N = 8, block (0, 0), thread 128")
    assert "  in no_full_wait.py:34" in lines
    assert lines[-1].startswith("  repair: wait for the phase of `full`")
    assert repr(found).startswith("<Counterexample I5, M=1, K=8, N=8: `a` is read")
    shown = found._repr_html_()  # pyright: ignore[reportPrivateUsage] reason: notebooks call it
    assert shown.startswith('<p><b style="color:#cf222e">I5: `a` is read by `math`')
    assert "<pre>  at M = 1, K = 8, N = 8, block (0, 0), thread 128" in shown


def test_a_kernel_shows_its_parameters_and_its_launch() -> None:
    (template,) = templates(CORPUS / "refuted" / "no_full_wait.py")

    assert repr(template) == "<kernel gemm for sm_90a; `.trace()` gives the traced kernel>"
    assert repr(template.trace()) == (
        "<Kernel gemm (sm_90a): A[M, K] bf16, B[N, K] bf16, C[M, N] bf16; "
        "256 threads, grid ((M + 63) // 64, (N + 15) // 16)>"
    )
    shown = template.trace()._repr_html_()  # pyright: ignore[reportPrivateUsage] reason: notebooks call it
    assert shown.startswith("<p><b>gemm</b> (sm_90a): 256 threads, grid ((M + 63) // 64, (N + 15) // 16)</p><table>")
    assert "<tr><td>B</td><td>[N, K]</td><td>bf16</td></tr>" in shown


@pytest.mark.parametrize(
    ("best", "text"),
    [
        (None, "no candidate passed; 0 of 1 candidates passed; trials spent; run 7 in runs.db"),
        (
            Judgement("tile_64", "timed", "timing", microseconds=12.34),
            "best tile_64, 12.3 us predicted; 1 of 1 candidates passed; trials spent; run 7 in runs.db",
        ),
    ],
)
def test_a_search_result_shows_the_best_and_why_it_ended(best: Judgement | None, text: str) -> None:
    judged = (best or Judgement("tile_32", "refuted", "invariants", "I5"),)
    found = SearchResult(
        problem_of("gemm:256x256x256:bf16", "sm_90a"), "7", Path("runs.db"), best, judged, "trials spent"
    )

    assert text in str(found)
    assert repr(found) == f"<SearchResult {found}>"
    row = "<td>timed</td><td>12.3 us predicted</td><td></td>" if best else "<td>refuted</td><td></td><td>I5</td>"
    assert f"<tr><td>{judged[0].name}</td>{row}</tr></table>" in found._repr_html_()  # pyright: ignore[reportPrivateUsage] reason: notebooks call it


def test_a_notebook_shows_the_fastest_candidates_first_and_says_how_many_are_left() -> None:
    judged = tuple(Judgement(f"<{at}>", "timed", "timing", microseconds=30.0 - at) for at in range(25))
    refused = Judgement("first", "refuted", "invariants", "I5")
    problem = problem_of("gemm:256x256x256:bf16", "sm_90a")
    shown = SearchResult(problem, "7", Path("r.db"), judged[-1], (refused, *judged), "trials spent")._repr_html_()  # pyright: ignore[reportPrivateUsage] reason: notebooks call it

    assert shown.index("&lt;24&gt;</td>") < shown.index("&lt;5&gt;</td>")
    assert "first" not in shown
    assert shown.endswith("<p>and 6 more</p>")
