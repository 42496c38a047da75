from __future__ import annotations

from argus.optimize_text import Teller
from argus.optimizer.events import Event, Judged, Resumed
from argus.optimizer.judgement import Judgement
from argus.optimizer.problem import problem_of

BOUNDS = problem_of("gemm:4096x4096x4096", "sm_90a").bounds


def lines(*events: Event) -> list[str]:
    teller = Teller(BOUNDS, 9)
    return [line for event in events for line in teller.lines(event)]


def test_a_resumed_run_counts_on_and_knows_its_best() -> None:
    slow = Judgement("slow", "timed", "timing", microseconds=300.0)
    fast = Judgement("fast", "timed", "timing", microseconds=150.0)

    assert lines(Resumed(4, 200.0), Judged(slow), Judged(fast)) == [
        "resumed after 4 candidates",
        "   5/9 slow: proved, predicted 300.0 us, 46% of light, best 200.0 us, 0.0 s",
        "   6/9 fast: proved, predicted 150.0 us, 93% of light, the best so far, 0.0 s",
    ]


def test_a_counterexample_is_told_where_there_is_more_than_its_message() -> None:
    told: dict[str, object] = {
        "message": "two threads meet",
        "block": [0, 0],
        "thread": 3,
        "sizes": {},
        "element": None,
    }
    refuted = Judgement("x", "refuted", "invariants", "I5: two threads meet", counterexample=told)
    static = Judgement("y", "over limits", "invariants", "I22: too large", counterexample={"message": "too large"})

    assert lines(Judged(refuted), Judged(static)) == [
        "   1/9 x: refuted, 0.0 s: I5: two threads meet",
        "       two threads meet: block [0, 0], thread 3",
        "   2/9 y: over limits, 0.0 s: I22: too large",
    ]
