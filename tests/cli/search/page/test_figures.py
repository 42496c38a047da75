"""Plots of a search: hover texts, colours by meaning, and labels that do not overlap."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from xml.etree import ElementTree as ET

import pytest

from argus.cli.bench.figures import Point, Roof
from argus.cli.bench.figures import roofline as bench_roofline
from argus.cli.search.page.figures import progress, roofline, stage_times, techniques
from argus.cli.search.page.page import page
from argus.cli.search.page.story import Story, stages, story_of, uses
from argus.policy.last_round import Standing
from argus.report.drawing import COLOUR_OF, QUIET, Meaning
from argus.search.events import Event, LastRound
from tests.cli.search.page.test_page import EVENTS, STARTED, proposed, stopped, timed

SVG = "{http://www.w3.org/2000/svg}"
LETTER, HEIGHT = 6.0, 12.0
"""Average width of a character of 12 pixels in Helvetica, rounded up, and its height."""

Box = tuple[float, float, float, float]


def drawn(text: str) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314 reason: our own text


def many(count: int, near: float = 400.0) -> Story:
    """A run of many designs, whose best is within a hundredth of the speed of light."""
    generator = random.Random(count)  # noqa: S311 reason: places of marks
    events: list[Event] = [STARTED]
    for number in range(count):
        events.append(
            proposed(f"d{number}", "more-stages (stages 1 -> 4)", "a-technique-with-a-name-of-forty-four-letters-x")
        )
        events.append(timed(f"d{number}", 139.5 + near * generator.random()) if number % 3 else stopped(f"d{number}"))
    return story_of("run-0001", (*events, proposed("last"), timed("last", 139.2)))


def marks(plot: ET.Element) -> dict[str, ET.Element]:
    """The marks with a hover text, by the text."""
    return {title.text or "": group for group in plot.iter(f"{SVG}g") for title in group.findall(f"{SVG}title")}


def colours(group: ET.Element) -> set[str]:
    return {each.attrib["stroke"] for each in group.iter() if "stroke" in each.attrib}


@pytest.mark.parametrize("draw", [progress, roofline])
def test_a_mark_tells_its_design_and_has_the_colour_of_its_meaning(draw: Callable[[Story], str]) -> None:
    found = marks(drawn(draw(story_of("run-0001", EVENTS))))
    expected: dict[str, Meaning] = {
        "1: plain: 400.0 us, 35% of the speed of light": "candidate",
        "2: deep: 200.0 us, 69% of the speed of light": "best",
        "4: worse: 800.0 us, 17% of the speed of light": "candidate",
    }
    if draw is progress:
        expected["3: wrong: refuted at invariants: I22: too large"] = "refuted"

    assert {words: colours(group) for words, group in found.items()} == {
        words: {COLOUR_OF[meaning]} for words, meaning in expected.items()
    }
    assert all(group.attrib["pointer-events"] == "all" for group in found.values())
    filled = [
        words for words, group in found.items() for each in group.iter(f"{SVG}circle") if each.get("fill") != "none"
    ]
    assert filled == ["2: deep: 200.0 us, 69% of the speed of light"]


def test_the_order_of_candidates_changes_no_colour() -> None:
    """In the roofline, too, whether the best comes first or last."""
    first = (STARTED, proposed("deep"), timed("deep", 200.0), proposed("plain"), timed("plain", 400.0))
    last = (STARTED, proposed("plain"), timed("plain", 400.0), proposed("deep"), timed("deep", 200.0))
    for events in (first, last):
        found = marks(drawn(roofline(story_of("run-0001", events))))
        assert {colour for words, group in found.items() if "deep" in words for colour in colours(group)} == {
            COLOUR_OF["best"]
        }
        assert {colour for words, group in found.items() if "plain" in words for colour in colours(group)} == {
            COLOUR_OF["candidate"]
        }


def test_the_best_has_its_time_of_the_last_round() -> None:
    last = LastRound((Standing("deep", "best", {"sustained": 210.0}),), 12)
    story = story_of("run-0001", (*EVENTS[:-1], last, EVENTS[-1]))

    for plot in (progress(story), roofline(story)):
        assert "2: deep: 210.0 us in the last round, 66% of the speed of light" in marks(drawn(plot))


def test_bounds_and_bars_have_the_colours_of_their_meaning() -> None:
    story = story_of("run-0001", EVENTS)
    dashed = [each for each in drawn(progress(story)).iter(f"{SVG}polyline") if "stroke-dasharray" in each.attrib]
    bars = [each.attrib["stroke"] for each in drawn(techniques(uses(story))).iter(f"{SVG}polyline")]
    times = [each.attrib["stroke"] for each in drawn(stage_times(stages(story))).iter(f"{SVG}polyline")]

    assert [each.attrib["stroke"] for each in dashed] == [COLOUR_OF["bound"]]
    assert set(bars) == {COLOUR_OF["candidate"]}
    assert set(times) == {COLOUR_OF["time"]}


def test_bars_tell_what_they_count() -> None:
    story = story_of("run-0001", EVENTS)

    assert list(marks(drawn(techniques(uses(story))))) == [
        "more-stages: 33% of the designs that passed (1); time -64.6% vs. the others",
        "split-k: 33% of the designs that passed (1); time +182.8% vs. the others",
    ]
    assert "invariants: 4.5 s, 4 entered, 1 stopped, 1.12 s each" in marks(drawn(stage_times(stages(story))))


def test_meanings_have_different_colours_which_the_page_explains() -> None:
    assert len(set(COLOUR_OF.values())) == len(COLOUR_OF)
    made = page(story_of("run-0001", EVENTS))

    assert f'background: {COLOUR_OF["best"]}"></span> the best design' in made
    assert f'background: {COLOUR_OF["refuted"]}"></span> rejected' in made
    assert f".stopped {{ color: {COLOUR_OF['refuted']} }}" in made


def boxes(plot: ET.Element) -> list[tuple[str, Box]]:
    """The boxes of the texts in small letters, without those that are turned."""
    turned = {id(each) for group in plot.iter(f"{SVG}g") if "transform" in group.attrib for each in group.iter()}
    found: list[tuple[str, Box]] = []
    for each in plot.iter(f"{SVG}text"):
        if id(each) in turned or each.attrib["font-size"] != "12":
            continue
        words, x, y = each.text or "", float(each.attrib["x"]), float(each.attrib["y"])
        width = LETTER * len(words)
        left = {"start": x, "middle": x - width / 2, "end": x - width}[each.attrib["text-anchor"]]
        found.append((words, (left, y - HEIGHT + 3, left + width, y + 3)))
    return found


def overlapping(plot: ET.Element) -> list[tuple[str, str]]:
    found = boxes(plot)
    return [
        (one, other)
        for number, (one, (left, top, right, bottom)) in enumerate(found)
        for other, (west, north, east, south) in found[number + 1 :]
        if left < east and west < right and top < south and north < bottom
    ]


def outside(plot: ET.Element) -> list[str]:
    width, height = float(plot.attrib["width"]), float(plot.attrib["height"])
    return [
        words
        for words, (left, top, right, bottom) in boxes(plot)
        if left < 0 or top < 0 or right > width or bottom > height
    ]


STORIES = [story_of("run-0001", EVENTS), many(2), many(40), many(400, near=0.4), many(400, near=5e7)]


@pytest.mark.parametrize("story", STORIES, ids=["few", "two", "forty", "near", "wide"])
def test_no_labels_overlap_with_many_candidates(story: Story) -> None:
    """The best of most is so near to the speed of light that their labels would meet."""
    for text in (progress(story), roofline(story), techniques(uses(story)), stage_times(stages(story))):
        assert overlapping(drawn(text)) == []
        assert outside(drawn(text)) == []


def test_the_label_of_the_best_would_meet_that_of_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutation: without moving labels apart these two overlap."""

    def unmoved(heights: Sequence[float], *_: object) -> list[float]:
        return list(heights)

    monkeypatch.setattr("argus.report.drawing.spread", unmoved)
    assert overlapping(drawn(progress(many(40)))) == [("speed of light 139.0 us", "best 139.2 us")]


def test_labels_of_near_roofs_do_not_overlap() -> None:
    peaks = [(f"type {number}", 1000.0 - number) for number in range(9)] + [("slow", 2.0)]
    points = [Point(f"series {number}", 10.0, 30.0, filled=True) for number in range(14)]
    plot = drawn(bench_roofline("x", points, Roof(4.0, peaks)))

    assert {words for words, _ in boxes(plot)} >= {"type 8 992", "slow 2", "series 13", "memory 4 TB/s"}
    assert overlapping(plot) == []
    assert outside(plot) == []


def test_a_bound_is_quiet_and_a_long_name_is_whole_in_its_hover_text() -> None:
    plot = drawn(techniques(uses(many(3))))

    assert COLOUR_OF["bound"] == QUIET
    assert any(words.startswith("a-technique-with-a-name-of-forty-four-letters-x: ") for words in marks(plot))
    assert "a-technique-with-a-name-of\N{HORIZONTAL ELLIPSIS}" in {words for words, _ in boxes(plot)}
