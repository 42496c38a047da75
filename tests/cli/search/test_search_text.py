"""Lines of a search: each candidate's time against the bounds, its techniques, and why it was rejected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest
from attrs import evolve

from argus.cli.search.text import SearchLog, change, counterexample_lines, outcome_lines
from argus.policy.llm.budget import Limits, Spent
from argus.report.json_document import report_json
from argus.search.evaluation.judgement import Judgement
from argus.search.events import Asked, Asks, Ended, Judged, Proposed, Resumed, Update
from argus.search.problems.llm_kernels import trace_candidate
from argus.search.problems.problem import problem_of
from argus.search.run import SearchResult
from argus.verifier.kernel import verify
from tests.search.certificates.deliveries import found
from tests.search.evaluation.test_gate import TEXT

BOUNDS = problem_of("gemm:4096x4096x4096", "sm_90a").bounds
MODEL = Limits(0.01, 1_000)


def lines(*events: Update) -> list[str]:
    teller = SearchLog(BOUNDS, 9, MODEL)
    return [line for event in events for line in teller.lines(event)]


def timed(name: str, microseconds: float) -> Judged:
    return Judged(Judgement(name, "timed", "timing", microseconds=microseconds))


def test_a_resumed_run_continues_the_count_and_the_best() -> None:
    assert lines(Resumed(4, 200.0), timed("slow", 300.0), timed("fast", 150.0)) == [
        "resumed after 4 candidates, best 200.0 us",
        (
            "   5/9 slow: proved, predicted 300.0 us, 46% of light (gap 2.16, headroom 43%, tensor), best 200.0 us,"
            " 0.0 s"
        ),
        (
            "   6/9 fast: proved, predicted 150.0 us, 93% of light (gap 1.08, headroom 0%, tensor), the best so far,"
            " 0.0 s"
        ),
    ]


def test_a_line_compares_its_time_with_the_bounds() -> None:
    (line,) = lines(timed("x", 2 * BOUNDS.reachable))

    gap = 2 * BOUNDS.reachable / BOUNDS.light
    assert f"{1 / gap:.0%} of light (gap {gap:.2f}, headroom 50%, tensor)" in line


def test_few_techniques_are_all_named() -> None:
    assert change(("swizzle (swizzle False -> True)", "pipelining (buffers 1 -> 2)"), ()) == (
        "+swizzle +pipelining (buffers 1 -> 2)"
    )


def test_a_kernel_that_was_written_is_not_named_twice() -> None:
    events = (
        Proposed("text-1", ("larger-bn (bn 64 -> 128)", "kernel-text (text-1)"), 0.5, "llm"),
        timed("text-1", 9e3),
    )

    assert lines(*events)[0].startswith("   1/9 text-1 [+larger-bn +kernel-text]: proved")


def test_many_techniques_are_shown_as_a_difference_to_the_best() -> None:
    best = tuple(f"t{n} (x {n} -> {n + 1})" for n in range(7))

    assert change((*best, "deep (stages 1 -> 2)"), best) == "the best +deep (stages 1 -> 2)"
    assert change(best[:-1], best) == "the best -t6"
    assert change((*best[:-1], "t6 (x 6 -> 9)"), best) == "the best +t6 (x 6 -> 9)"
    assert change(best, tuple(f"u{n}" for n in range(7))) == "7 techniques, +t6 (x 6 -> 7)"
    assert change(best, ()) == "7 techniques, +t6 (x 6 -> 7)"


def test_candidates_of_a_resumed_run_are_compared_with_its_best() -> None:
    steps = tuple(f"t{n}" for n in range(7))
    told = lines(Resumed(4, 200.0, steps), Proposed("a", (*steps, "deep"), 0.5, "bandit"), timed("a", 300.0))

    assert told[1].startswith("   5/9 a [the best +deep]: proved")


REFUTED: dict[str, object] = {
    "message": "two threads meet",
    "replayed": "interpreter",
    "block": [0, 0],
    "thread": 3,
    "other_thread": 7,
    "sizes": {"M": 1, "K": 12},
    "buffer": "a",
    "element": [4, 2],
    "iteration": {"k": 1},
    "other_iteration": {},
    "at": {"file": "/home/u/kernel.py", "line": 19},
    "other_at": {"file": "/home/u/kernel.py", "line": 23},
    "elements": [{"buffer": "a", "element": [4, 2]}, {"buffer": "b", "element": None}],
}


def test_a_rejection_is_shown_with_its_counterexample() -> None:
    refuted = Judgement("x", "refuted", "invariants", "I5: two threads meet", counterexample=REFUTED)
    static = Judgement("y", "over limits", "invariants", "I22: too large", counterexample={"message": "too large"})

    assert lines(Judged(refuted), Judged(static)) == [
        "   1/9 x: refuted, 0.0 s: I5: two threads meet",
        (
            "       at kernel.py:19, and kernel.py:23, block (0, 0), thread 3, other thread 7, iteration k=1,"
            " sizes M=1 K=12, element a[4, 2]; replayed in the interpreter"
        ),
        "   2/9 y: over limits, 0.0 s: I22: too large",
    ]


@pytest.mark.share(2)
def test_a_real_counterexample_has_its_thread_element_and_program_point() -> None:
    wrong = TEXT.replace("(n, k))", "(n, k + 1))", 1)
    data = report_json(verify(trace_candidate(wrong, problem_of("gemm:512x512x512", "gfx942"))))["counterexample"]

    (line,) = counterexample_lines(
        Judgement("x", "refuted", "invariants", "I1", counterexample=cast("Mapping[str, Any]", data))
    )

    for part in ("at kernel.py:", "block (0, 0)", "thread 0", "element a[0, 0]", "element b[0, 0]", "sizes M=1"):
        assert part in line
    assert line.endswith("; replayed in the interpreter")


def test_a_model_call_shows_its_cost_and_the_budget_left() -> None:
    reply: Mapping[str, Any] = {"kind": "reply", "proposals": [{}, {}]}
    trouble = {"kind": "trouble", "code": "E923", "message": "the endpoint did not answer"}

    assert lines(Resumed(0, None, (), 100, 0.001), Asks("m"), Asked("m", reply, 120, 0.002)) == [
        "resumed after 0 candidates",
        (
            "  asked m: 2 proposals; 120 tokens, $0.0020;"
            " spent 220 tokens, $0.0030, left $0.0070 of $0.01, left 780 of 1,000 tokens"
        ),
    ]
    (line,) = lines(Asked("m", trouble, 0, 0.0))
    assert "no answer, E923: the endpoint did not answer; continuing with the bandit; spent 0 tokens" in line


def test_the_cost_of_a_failed_call_is_shown_as_estimated() -> None:
    reply = {"kind": "trouble", "code": "E923", "message": "late", "spent": {"supposed": 300}}

    (line,) = lines(Asked("m", reply, 320, 0.005))

    assert "; 320 tokens (300 of them estimated), $0.0050; spent 320 tokens" in line


def asked(spent: Spent | None) -> SearchResult:
    return evolve(found("gfx942"), spent=spent)


@pytest.mark.share(48, among="searches on the command line")
def test_the_summary_says_what_the_model_cost() -> None:
    told = list(outcome_lines(asked(Spent(calls=3, input=400, output=100, dollars=0.0025)), MODEL))

    assert told[1] == ("the model: 3 calls, spent 500 tokens, $0.0025, left $0.0075 of $0.01, left 500 of 1,000 tokens")
    assert not any("the model:" in line for line in outcome_lines(asked(None), MODEL))


def test_a_search_that_ends_by_an_error_shows_its_best() -> None:
    teller = SearchLog(BOUNDS)
    assert list(teller.best_at_error()) == []

    list(teller.lines(timed("x", 200.0)))
    list(teller.lines(Ended("interrupted")))

    assert list(teller.best_at_error()) == ["best so far: x, 200.0 us; the journal has all results"]
