"""Draws the plots of a search run as SVG documents."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10
from xml.etree import ElementTree as ET

from argus.cli.bench.figures import Point, Roof
from argus.cli.bench.figures import roofline as drawn_roofline
from argus.cli.search.page.story import Candidate, StageUse, Story, Use
from argus.policy.bounds import CEILINGS
from argus.report.drawing import (
    COLOUR_OF,
    GRID,
    INK,
    LogAxis,
    area,
    canvas,
    document,
    dot,
    hover,
    line,
    margin_labels,
    text,
)
from argus.report.labels import LINE, Label, legible, shortened

_WIDTH, _HEIGHT = 760.0, 360.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 78.0, 580.0, 46.0, 300.0
_ROW = 22.0
_MARKS = 10
_MOST_WORDS = 300
_BEST, _CANDIDATE = COLOUR_OF["best"], COLOUR_OF["candidate"]


def progress(story: Story) -> str:
    """Plot each candidate's time, the best so far, and the speed of light; crosses mark rejected candidates."""
    light, best = story.problem.bounds.light, story.best
    times = [each.microseconds for each in shown_candidates(story) if each.microseconds is not None]
    y = LogAxis(log10(min(light, *times, light) / 1.1), log10(max(light, *times, light) * 1.3), _BOTTOM, _TOP)
    last = max(2, len(story.candidates))

    def across(number: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * (number - 0.5) / last

    root = canvas(_WIDTH, _HEIGHT)
    text(root, "Best against trials", _LEFT, 26, size="15", weight="bold")
    _axes(root, y)
    step = max(1, round(last / _MARKS))
    for number in range(step, len(story.candidates) + 1, step):
        text(root, f"{number:,}", across(number), _BOTTOM + 30, anchor="middle")
    text(root, "candidates in the order of proposals", (_LEFT + _RIGHT) / 2, _BOTTOM + 50, anchor="middle")
    bound = {"stroke": COLOUR_OF["bound"], "stroke-dasharray": "6 4"}
    line(root, [(_LEFT, y.at(light)), (_RIGHT, y.at(light))], bound)
    _way(root, [(across(each.number), y.at(each.best)) for each in story.candidates if each.best is not None])
    for each in shown_candidates(story):
        if each.microseconds is not None:
            colour = _BEST if each is best else _CANDIDATE
            at = hover(root, hover_text(story, each))
            dot(at, across(each.number), y.at(each.microseconds), colour, filled=each is best)
        elif each.judgement is not None:
            _cross(hover(root, hover_text(story, each)), across(each.number), _BOTTOM + 9)
    labels = [(y.at(light), f"speed of light {light:,.1f} us")]
    labels += [(y.at(best.microseconds), f"best {best.microseconds:,.1f} us")] if best and best.microseconds else []
    margin_labels(root, _RIGHT, _WIDTH - _RIGHT, labels, y)
    return document(root)


def shown_candidates(story: Story) -> tuple[Candidate, ...]:
    """The candidates, the best one with its time of the last round, and last, so that it is drawn over the others."""
    best = story.best
    if best is None:
        return story.candidates
    return (*(each for each in story.candidates if each.number != best.number), best)


def hover_text(story: Story, candidate: Candidate) -> str:
    """Number and name of a candidate, with its time and share of the speed of light, or why it was rejected."""
    named, judged = f"{candidate.number}: {candidate.name}", candidate.judgement
    if candidate.microseconds is not None:
        share = story.problem.bounds.light / candidate.microseconds
        settled = " in the last round" if candidate is story.best and story.settled else ""
        return _cut(f"{named}: {candidate.microseconds:,.1f} us{settled}, {share:.0%} of the speed of light")
    return _cut(named if judged is None else f"{named}: {judged.outcome} at {judged.stage}: {judged.why}")


def _cut(words: str) -> str:
    return words if len(words) <= _MOST_WORDS else f"{words[: _MOST_WORDS - 1]}\N{HORIZONTAL ELLIPSIS}"


def _axes(root: ET.Element, y: LogAxis) -> None:
    values = _ticks(10**y.low, 10**y.high)
    up = [Label(y.at(value), LINE, f"{value:,g}", log10(value).is_integer()) for value in values]
    for each in legible(up, apart=0.0):
        line(root, [(_LEFT, each.at), (_RIGHT, each.at)], {"stroke": GRID})
        text(root, each.words, _LEFT - 8, each.at + 4, anchor="end")
    line(root, [(_LEFT, _TOP), (_LEFT, _BOTTOM), (_RIGHT, _BOTTOM)], {"stroke": INK})
    rotated = ET.SubElement(root, "g", {"transform": f"translate(20 {(_TOP + _BOTTOM) / 2:g}) rotate(-90)"})
    text(rotated, "microseconds", 0, 0, anchor="middle")


def _way(root: ET.Element, points: Sequence[tuple[float, float]]) -> None:
    """Draw the best time so far as a staircase through the points, up to the end of the plot."""
    way: list[tuple[float, float]] = []
    for at, height in points:
        way += [(at, way[-1][1])] if way else []
        way.append((at, height))
    if way:
        line(root, [*way, (_RIGHT, way[-1][1])], {"stroke": _BEST, "stroke-width": "1.5"})


def _ticks(low: float, high: float) -> list[float]:
    """Round tick values: evenly spaced on a narrow axis, else 1, 2 and 5 times each power of ten."""
    if high / low > 8:
        return [value for value, _ in LogAxis(log10(low), log10(high), 0, 1).ticks()]
    power = 10.0 ** floor(log10(high - low))
    step = next(power * part for part in (0.1, 0.2, 0.5, 1, 2) if (high - low) / (power * part) <= _MARKS)
    return [place * step for place in range(ceil(low / step), floor(high / step) + 1)]


def _cross(root: ET.Element, x: float, y: float) -> None:
    style = {"stroke": COLOUR_OF["refuted"], "stroke-width": "1.5"}
    for turn in (-1, 1):
        line(root, [(x - 3, y - 3 * turn), (x + 3, y + 3 * turn)], style)
    area(root, x - 5, y - 5, 10, 10)


def techniques(uses: Sequence[Use]) -> str:
    """Bar chart of techniques: share of the designs that passed, and mean time relative to the other designs."""
    bottom = _TOP + 10 + _ROW * max(1, len(uses))
    root = canvas(_WIDTH, bottom + 20)
    text(root, "Techniques among the designs that passed", 20, 26, size="15", weight="bold")
    left, right = 210.0, 460.0
    for place, use in enumerate(uses):
        down = _TOP + 14 + _ROW * place
        effect = "used by every design" if use.effect is None else f"time {use.effect - 1:+.1%} vs. the others"
        row = hover(
            root, _cut(f"{use.technique}: {use.share:.0%} of the designs that passed ({use.count:,}); {effect}")
        )
        area(row, 0, down - _ROW / 2, _WIDTH, _ROW)
        text(row, shortened(use.technique, left - 20), left - 10, down + 4, anchor="end")
        end = left + (right - left) * use.share
        line(row, [(left, down), (end, down)], {"stroke": _CANDIDATE, "stroke-width": "12"})
        text(row, f"{use.share:.0%}; {effect}", right + 10, down + 4)
    return document(root)


def roofline(story: Story) -> str:
    """Roofline plot of the candidates. Raises KeyError for a dtype without a recorded peak rate."""
    ceilings, work = CEILINGS[story.problem.target], story.problem.work
    operations = sum(count for _, count in work.flops)
    peaks = [(f"{dtype}, data sheet", ceilings.peak[dtype].value / 1e6) for dtype, _ in work.flops]
    peaks += [
        (f"{dtype}, measured", ceilings.reached[dtype].value / 1e6)
        for dtype, _ in work.flops
        if dtype in ceilings.reached
    ]
    points = [
        Point(
            "best" if each is story.best else "candidates",
            work.intensity,
            operations / each.microseconds / 1e6,
            each is story.best,
            hover_text(story, each),
        )
        for each in shown_candidates(story)
        if each.microseconds
    ]
    colours = {"best": _BEST, "candidates": _CANDIDATE}
    return drawn_roofline("Roofline", points, Roof(ceilings.memory_peak.value / 1e6, peaks), "", colours)


def stage_times(stages: Sequence[StageUse]) -> str:
    """Bar chart of the total seconds that candidates spent in each stage."""
    root = canvas(_WIDTH, _TOP + 30 + _ROW * len(stages))
    text(root, "Where the time went", 20, 26, size="15", weight="bold")
    left, right = 110.0, 490.0
    longest = max([each.seconds for each in stages], default=0.0) or 1.0
    for place, each in enumerate(stages):
        down = _TOP + 14 + _ROW * place
        told = f"{each.seconds:,.1f} s, {each.entered:,} entered, {each.stopped:,} stopped"
        mean = f", {each.seconds / each.entered:,.2f} s each" if each.entered else ""
        row = hover(root, f"{each.stage}: {told}{mean}")
        area(row, 0, down - _ROW / 2, _WIDTH, _ROW)
        text(row, each.stage, left - 10, down + 4, anchor="end")
        end = left + (right - left) * each.seconds / longest
        line(row, [(left, down), (end, down)], {"stroke": COLOUR_OF["time"], "stroke-width": "12"})
        text(row, told, right + 10, down + 4)
    return document(root)
