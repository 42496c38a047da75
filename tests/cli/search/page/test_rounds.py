"""The page shows what a model was asked and answered, and how the best kernel differs from its parent."""

from __future__ import annotations

from argus.cli.search.page.best_text import best_text
from argus.cli.search.page.rounds import rounds
from argus.cli.search.page.story import story_of
from argus.policy.llm.record import to_data
from argus.policy.llm.reply import Kernel, Knobs, Option, Proposal, Reply, Trouble, Use, Write
from argus.search.evaluation.judgement import Judgement
from argus.search.events import Asked, Event, Judged, Proposed, Started
from tests.cli.search.page.test_page import read

STARTED = Started("gemm:4096x4096x4096:bf16", "sm_90a", "llm", 5, 139.0, "tensor", 25, {"argus": "0.1.0"})
FIRST = Kernel("stages = 2\nfor k in loop(K):\n    wait(0)\n")
MENDED = Kernel("stages = 2\nfor k in loop(K):\n    wait(stages - 1)\n", repairs=FIRST.name)
NEXT = Kernel("stages = 3  # <script>\nfor k in loop(K):\n    wait(stages - 1)\n")


def asked(answer: Reply | Trouble) -> Asked:
    return Asked("model", to_data(answer), 1200, 0.02)


def judged(name: str, microseconds: float | None) -> tuple[Event, Event]:
    passed = ("timed", "timing", "") if microseconds else ("refuted", "invariants", "I7: too early")
    return Proposed(name, (), 0.5, "llm"), Judged(Judgement(name, *passed, microseconds))


EVENTS: tuple[Event, ...] = (
    STARTED,
    asked(
        Reply((Proposal(FIRST, 0.5, "two stages"),), lessons=("waits count stages",), dropped=("x: no such option",))
    ),
    *judged(FIRST.name, None),
    asked(Reply((Proposal(MENDED, 0.75, "one stage may be under way"),), task="repair", about=FIRST.name)),
    *judged(MENDED.name, 200.0),
    asked(Trouble("E920", "no answer", "try again", lasting=False)),
)


def test_a_round_has_its_proposals_its_lessons_and_what_was_not_taken() -> None:
    first, repair, failed = rounds(EVENTS)

    assert first.proposals == (f"{FIRST.name}: two stages (50% sure)",)
    assert (first.task, first.lessons, first.refused) == ("plan", ("waits count stages",), ("x: no such option",))
    assert repair.proposals == (f"{MENDED.name}, a repair of {FIRST.name}: one stage may be under way (75% sure)",)
    assert (repair.task, repair.about, repair.tokens) == ("repair", FIRST.name, 1200)
    assert (failed.proposals, failed.refused) == ((), ("E920: no answer",))


def test_each_kind_of_proposal_is_named() -> None:
    targets = (Option("deep"), Use("split-k"), Knobs((("stages", 3), ("skew", True))), Write("swap the loops"))
    (found,) = rounds([asked(Reply(tuple(Proposal(each, 1.0) for each in targets)))])
    assert found.proposals == (
        "deep (100% sure)",
        "an option with split-k (100% sure)",
        "an option with stages = 3, skew = True (100% sure)",
        f"{targets[-1].name}, swap the loops (100% sure)",
    )


def test_an_answer_of_another_version_is_said_to_be_unreadable() -> None:
    (found,) = rounds([Asked("model", {"kind": "reply"}, 7, 0.5)])
    assert (found.proposals, found.refused, found.cost) == ((), ("the answer cannot be read",), 0.5)


def test_a_repair_is_compared_with_the_refused_kernel() -> None:
    found = best_text(story_of("run-0001", EVENTS))

    assert found is not None
    assert (found.name, found.parent, found.text) == (MENDED.name, FIRST.name, MENDED.text)
    assert [line for line in found.changes if line[0] in "+-"][2:] == ["-    wait(0)", "+    wait(stages - 1)"]


def test_another_kernel_is_compared_with_the_fastest_before_it() -> None:
    events = (*EVENTS, asked(Reply((Proposal(NEXT, 0.5),))), *judged(NEXT.name, 150.0))
    story = story_of("run-0001", events)
    found = best_text(story)

    assert found is not None
    assert (found.name, found.parent) == (NEXT.name, MENDED.name)
    assert [line for line in found.changes if line[0] in "+-"][2:] == ["-stages = 2", "+stages = 3  # <script>"]
    words = read(story).words  # which finds no element that a browser would run
    assert "+stages = 3  # <script>" in words
    assert "waits count stages" in words
    assert "1 not taken" in words


def test_a_design_is_compared_with_the_one_that_it_was_made_from() -> None:
    names = ("clustered", "clustered_bands")
    steps = ((), ("tiles-in-bands (band 1 -> 8)",))
    events: list[Event] = [STARTED]
    for name, taken, time in zip(names, steps, (200.0, 150.0), strict=True):
        events += (Proposed(name, taken, 0.5, "bandit"), judged(name, time)[1])
    found = best_text(story_of("run-0001", events))

    assert found is not None
    assert (found.name, found.parent) == names[::-1]
    assert "def " in found.text
    changed = [line for line in found.changes if line[0] in "+-"][2:]
    assert all("this schedule with cfg" in line for line in changed)
    assert len(changed) == 2


def test_a_design_that_this_version_does_not_know_has_no_text() -> None:
    events = [STARTED, Proposed("of old", (), 0.5, "bandit"), judged("of old", 9.0)[1]]
    story = story_of("run-0001", events)
    assert best_text(story) is None
    assert "The best kernel" not in read(story).words
