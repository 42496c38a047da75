"""The HTML page of a finished or unfinished run; it contains nothing that a browser would execute."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as some

from argus.cli.main import main
from argus.cli.search.page.page import page
from argus.cli.search.page.story import Story, saved, stages, story_of, tree, uses
from argus.search.evaluation.judgement import Judgement
from argus.search.events import Asked, Ended, Event, Judged, Proposed, Resumed, Started
from argus.search.journal import Journal

STARTED = Started("gemm:4096x4096x4096:bf16", "sm_90a", "bandit", 5, 139.0, "tensor", 25, {"argus": "0.1.0"})
LATE = {"parse": 0.5, "invariants": 1.0, "interpreter": 0.5, "compile": 2.0, "timing": 1.0}
EARLY = {"parse": 0.5, "invariants": 1.5}


def proposed(name: str, *techniques: str) -> Proposed:
    return Proposed(name, techniques, 0.5, "bandit", "because")


def timed(name: str, microseconds: float) -> Judged:
    return Judged(Judgement(name, "timed", "timing", "", microseconds, seconds=LATE))


def stopped(name: str, why: str = "I22: too large", counterexample: dict[str, Any] | None = None) -> Judged:
    return Judged(Judgement(name, "refuted", "invariants", why, seconds=EARLY, counterexample=counterexample))


EVENTS: tuple[Event, ...] = (
    STARTED,
    proposed("plain"),
    timed("plain", 400.0),
    proposed("deep", "more-stages (stages 1 -> 4)"),
    timed("deep", 200.0),
    Asked("model", {"kind": "reply"}, 1200, 0.02),
    proposed("wrong", "more-stages (stages 1 -> 4)", "split-k (splits 1 -> 2)"),
    stopped("wrong", counterexample={"message": "two threads meet", "sizes": {"M": 1}}),
    proposed("worse", "split-k (splits 1 -> 2)"),
    timed("worse", 800.0),
    Ended("interrupted"),
)


class Reader(HTMLParser):
    """Elements and their attributes, and the text outside of styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data


HARMLESS = {
    *("html", "head", "meta", "title", "style", "body", "h1", "h2", "dl", "dt", "dd", "p", "figure", "table", "tr"),
    *("th", "td", "code", "pre", "details", "summary", "br", "span", "svg", "rect", "text", "polyline", "circle", "g"),
}


def read(story: Story) -> Reader:
    """What a browser sees. Nothing in it is run or fetched."""
    found = Reader(page(story))
    assert {tag for tag, _ in found.elements} <= HARMLESS
    for _, attributes in found.elements:
        assert not [name for name in attributes if name.startswith("on") or name in ("href", "src", "srcset")]
    return found


def test_the_story_of_a_run() -> None:
    story = story_of("run-0001", EVENTS)

    assert [each.best for each in story.candidates] == [400.0, 200.0, 200.0, 200.0]
    assert story.best is not None
    assert story.best.name == "deep"
    assert (story.ended, story.resumed, story.asked) == ("interrupted", 0, (1, 1200, 0.02))
    assert [(each.technique, each.count) for each in uses(story)] == [("more-stages", 1), ("split-k", 1)]
    assert uses(story)[0].effect == pytest.approx(200 / (400 * 800) ** 0.5)
    assert saved(story).early == 1
    assert saved(story).seconds == pytest.approx(3.0)
    assert [(each.stage, each.entered, each.stopped) for each in stages(story)][:2] == [
        ("parse", 4, 0),
        ("invariants", 4, 1),
    ]


def test_the_tree_leads_from_the_first_design_step_by_step() -> None:
    rows = [(each.depth, each.step, [one.name for one in each.candidates]) for each in tree(story_of("run", EVENTS))]

    assert rows == [
        (0, "the first design", ["plain"]),
        (1, "more-stages (stages 1 -> 4)", ["deep"]),
        (2, "split-k (splits 1 -> 2)", ["wrong"]),
        (1, "split-k (splits 1 -> 2)", ["worse"]),
    ]


def test_the_page_summarises_the_run() -> None:
    found = read(story_of("run-0001", EVENTS))
    words = re.sub(r"\s+", " ", found.words)

    assert sum(tag == "svg" for tag, _ in found.elements) == 4
    assert "deep, predicted 200.0 us, 69% of the speed of light" in words
    assert "1 of 4 were rejected, which saved about 3.0 s of compiling and timing" in words
    assert "endedinterrupted" in words
    assert "refuted at invariants" in words
    assert "two threads meet" in words
    assert "1 calls, 1200 tokens, 0.0200 US dollars" in words
    assert "predicted by the static model" in words


@pytest.mark.parametrize("count", range(1, len(EVENTS)))
def test_a_run_that_was_cut_off_anywhere_has_a_page(count: int) -> None:
    words = re.sub(r"\s+", " ", read(story_of("run-0001", EVENTS[:count])).words)

    assert "endednot ended: still running, or cut off" in words
    assert ("nothing has passed the gate" in words) == (count < 3)
    waiting = isinstance(EVENTS[count - 1], Proposed)
    assert ("no result was recorded" in words) == waiting


def test_a_resumed_run_goes_on() -> None:
    story = story_of("run-0001", (*EVENTS, Resumed(4), proposed("more"), timed("more", 150.0), Ended("trials spent")))

    assert (story.ended, story.resumed, len(story.candidates)) == ("trials spent", 1, 5)
    assert "resumed 1 times" in read(story).words


HOSTILE = "</svg></style></pre>--><script>alert(1)</script><img src=x onerror=alert(2)>{{ 7*7 }}\"'&\x00\x1b[2J\ud800"


@pytest.mark.nightly
@given(some.lists(some.text(max_size=40), min_size=6, max_size=6))
def test_text_from_a_journal_is_escaped(texts: list[str]) -> None:
    hostile(*texts)


def test_scripts_are_escaped() -> None:
    found = hostile(*[HOSTILE] * 6)

    assert "<script>alert(1)</script>" in found.words
    assert "{{ 7*7 }}" in found.words
    assert not set("\x00\x1b\ud800") & set(found.words)


def hostile(name: str, technique: str, why: str, message: str, planner: str, reason: str) -> Reader:
    """The page of a run in which everything that may be a text is one of these."""
    started = Started(STARTED.problem, "sm_90a", planner, 0, 1.0, reason, 1, {name: why})
    judged = Judgement(name, "refuted", "invariants", why, counterexample={message: [message]}, notes=(message,))
    fine = Judgement(f"{name}!", "timed", "timing", "", 200.0, notes=(message,), seconds=LATE)
    events: list[Event] = [
        started,
        Proposed(name, (technique, message), 0.1, planner, why),
        Judged(judged),
        Proposed(f"{name}!", (technique,), 0.1, planner, why),
        Judged(fine),
    ]
    story = story_of(reason, events)
    for each in re.findall(r"<svg.*?</svg>", page(story), re.DOTALL):
        ET.fromstring(each)  # noqa: S314 reason: our own text
    return read(story)


def kept(path: Path, *events: Event) -> str:
    with Journal(path) as journal:
        name = journal.begin(STARTED)
        for event in events:
            journal.append(name, event)
    return name


def test_the_command_takes_a_journal_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs, out = tmp_path / "runs.db", tmp_path / "deep" / "page.html"
    first = kept(runs, *EVENTS[1:4])
    last = kept(runs, *EVENTS[1:])

    assert main(["report", first, "--journal", str(runs), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"wrote {out}: {first}, 2 candidates\n"
    assert "cut off" in out.read_text(encoding="utf-8")
    assert main(["report", "--journal", str(runs), "--out", str(out)]) == 0
    assert f"{last}, 4 candidates" in capsys.readouterr().out


def test_an_unknown_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs, out = tmp_path / "runs.db", str(tmp_path / "page.html")
    assert main(["report", "--journal", str(runs), "--out", out]) == 3
    assert not runs.exists()
    kept(runs)
    assert main(["report", "run-0009", "--journal", str(runs), "--out", out]) == 3
    (tmp_path / "not.db").write_text("no store", encoding="utf-8")
    assert main(["report", "--journal", str(tmp_path / "not.db"), "--out", out]) == 3
    told_of = capsys.readouterr().err
    assert told_of.count("error[E904]") == 3
    assert main(["report", "--journal", str(runs), "--out", str(runs / "page.html")]) == 3
    assert "E302" in capsys.readouterr().err
