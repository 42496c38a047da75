"""Lessons of earlier runs, from the journal."""

from pathlib import Path

from argus.policy.llm.record import to_data
from argus.policy.llm.reply import Kernel, Option, Proposal, Reply
from argus.search.evaluation.judgement import Judgement
from argus.search.events import Asked, Ended, Event, Judged, Started
from argus.search.journal import Journal
from argus.search.policy_memory import earlier_lessons, lessons_of

DRAFT = Kernel("from argus.language import *\n")
MENDED = Kernel("from argus.language import *  # mended\n", repairs=DRAFT.name)


def started(problem: str, target: str = "gfx942") -> Started:
    return Started(problem, target, "llm", 0, 100.0, "tensor", 3)


def asked(reply: Reply) -> Asked:
    return Asked("a model", to_data(reply), 1, 0.0)


RUN: tuple[Event, ...] = (
    started("gemm:8x8x8:bf16"),
    asked(Reply((Proposal(DRAFT, 0.5),), ("wide tiles help",))),
    Judged(Judgement(DRAFT.name, "refuted", "invariants", "I5: read too early")),
    asked(Reply((Proposal(MENDED, 0.9, "waits first"),), ("wait first",), task="repair", about=DRAFT.name)),
    Judged(Judgement(MENDED.name, "timed", "timing", microseconds=200.0)),
    Ended("trials spent"),
)


def test_a_lesson_begins_with_what_the_run_reached() -> None:
    assert lessons_of(RUN) == (
        "50% of light on gemm:8x8x8:bf16: I5: read too early; mended by: waits first",
        "50% of light on gemm:8x8x8:bf16: wide tiles help",
        "50% of light on gemm:8x8x8:bf16: wait first",
    )


def test_a_repair_that_did_not_stand_is_no_lesson() -> None:
    refused = Judged(Judgement(MENDED.name, "refuted", "invariants", "I5: read too early"))

    assert lessons_of((*RUN[:4], refused)) == (
        "nothing passed on gemm:8x8x8:bf16: wide tiles help",
        "nothing passed on gemm:8x8x8:bf16: wait first",
    )


def test_lessons_of_the_same_kind_of_problem_come_first(tmp_path: Path) -> None:
    other = Reply((Proposal(Option("one"), 0.5),), ("hold the row\u202e in registers",))
    with Journal(tmp_path / "runs.db") as journal:
        for events in (RUN, (started("file:0123456789abcdef:R=8:/home/someone/softmax.py"), asked(other))):
            first = events[0]
            assert isinstance(first, Started)
            name = journal.begin(first)
            for each in events[1:]:
                journal.append(name, each)
        journal.begin(started("gemm:8x8x8:bf16", "sm_90a"))
        own = journal.begin(started("gemm:64x64x64:bf16"))
        found = earlier_lessons(journal, own, "gemm:64x64x64:bf16", "gfx942")
        rows = earlier_lessons(journal, own, "file:fedcba9876543210:R=9:/other/softmax.py", "gfx942")

    assert found[:3] == lessons_of(RUN)
    assert found[3:] == ("nothing passed on softmax.py at R=8: hold the row in registers",)
    assert rows == (*found[3:], *found[:3])
