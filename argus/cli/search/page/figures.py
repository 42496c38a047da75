"""Draws the plots of a search run as SVG documents."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10
from xml.etree import ElementTree as ET

from argus.cli.bench.figures import Point, Roof
from argus.cli.bench.figures import roofline as drawn_roofline
from argus.cli.search.page.story import StageUse, Story, Use
from argus.policy.bounds import CEILINGS
from argus.report.drawing import COLOURS, GRID, INK, QUIET, LogAxis, canvas, document, dot, line, text

_WIDTH, _HEIGHT = 760.0, 360.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 78.0, 730.0, 46.0, 300.0
_ROW = 22.0
_MARKS = 10
_BLUE, _RED, _GREEN = COLOURS[0], COLOURS[1], COLOURS[2]


def progress(story: Story) -> str:
    """Plot each candidate's time, the best so far, and the speed of light; crosses mark rejected candidates."""
    light = story.problem.bounds.light
    times = [each.microseconds for each in story.passed if each.microseconds is not None]
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
    line(root, [(_LEFT, y.at(light)), (_RIGHT, y.at(light))], {"stroke": _GREEN, "stroke-dasharray": "6 4"})
    text(root, f"speed of light {light:,.1f} us", _RIGHT, y.at(light) - 5, anchor="end")
    way: list[tuple[float, float]] = []
    for each in story.candidates:
        at = across(each.number)
        if each.microseconds is not None:
            dot(root, at, y.at(each.microseconds), _BLUE, filled=False)
        elif each.judgement is not None:
            _cross(root, at, _BOTTOM + 9)
        if each.best is not None:
            way += [(at, way[-1][1])] if way else []
            way.append((at, y.at(each.best)))
    if way:
        line(root, [*way, (_RIGHT, way[-1][1])], {"stroke": INK, "stroke-width": "1.5"})
    return document(root)


def _axes(root: ET.Element, y: LogAxis) -> None:
    for value in _ticks(10**y.low, 10**y.high):
        line(root, [(_LEFT, y.at(value)), (_RIGHT, y.at(value))], {"stroke": GRID})
        text(root, f"{value:,g}", _LEFT - 8, y.at(value) + 4, anchor="end")
    line(root, [(_LEFT, _TOP), (_LEFT, _BOTTOM), (_RIGHT, _BOTTOM)], {"stroke": INK})
    rotated = ET.SubElement(root, "g", {"transform": f"translate(20 {(_TOP + _BOTTOM) / 2:g}) rotate(-90)"})
    text(rotated, "microseconds", 0, 0, anchor="middle")


def _ticks(low: float, high: float) -> list[float]:
    """Round tick values: evenly spaced on a narrow axis, else 1, 2 and 5 times each power of ten."""
    if high / low > 8:
        return [value for value, _ in LogAxis(log10(low), log10(high), 0, 1).ticks()]
    power = 10.0 ** floor(log10(high - low))
    step = next(power * part for part in (0.1, 0.2, 0.5, 1, 2) if (high - low) / (power * part) <= _MARKS)
    return [place * step for place in range(ceil(low / step), floor(high / step) + 1)]


def _cross(root: ET.Element, x: float, y: float) -> None:
    for turn in (-1, 1):
        line(root, [(x - 3, y - 3 * turn), (x + 3, y + 3 * turn)], {"stroke": _RED, "stroke-width": "1.5"})


def techniques(uses: Sequence[Use]) -> str:
    """Bar chart of techniques: share of the designs that passed, and mean time relative to the other designs."""
    bottom = _TOP + 10 + _ROW * max(1, len(uses))
    root = canvas(_WIDTH, bottom + 20)
    text(root, "Techniques among the designs that passed", 20, 26, size="15", weight="bold")
    left, right = 210.0, 460.0
    for place, use in enumerate(uses):
        down = _TOP + 14 + _ROW * place
        text(root, use.technique, left - 10, down + 4, anchor="end")
        end = left + (right - left) * use.share
        line(root, [(left, down), (end, down)], {"stroke": _BLUE, "stroke-width": "12"})
        effect = "used by every design" if use.effect is None else f"time {use.effect - 1:+.1%} vs. the others"
        text(root, f"{use.share:.0%}; {effect}", right + 10, down + 4)
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
    best = story.best
    points = [
        Point(
            "best" if each is best else "candidates", work.intensity, operations / each.microseconds / 1e6, each is best
        )
        for each in (best if best and each.number == best.number else each for each in story.passed)
        if each.microseconds
    ]
    return drawn_roofline("Roofline", points, Roof(ceilings.memory_peak.value / 1e6, peaks), hollow="")


def stage_times(stages: Sequence[StageUse]) -> str:
    """Bar chart of the total seconds that candidates spent in each stage."""
    root = canvas(_WIDTH, _TOP + 30 + _ROW * len(stages))
    text(root, "Where the time went", 20, 26, size="15", weight="bold")
    left, right = 110.0, 490.0
    longest = max([each.seconds for each in stages], default=0.0) or 1.0
    for place, each in enumerate(stages):
        down = _TOP + 14 + _ROW * place
        text(root, each.stage, left - 10, down + 4, anchor="end")
        line(
            root,
            [(left, down), (left + (right - left) * each.seconds / longest, down)],
            {"stroke": QUIET, "stroke-width": "12"},
        )
        text(root, f"{each.seconds:,.1f} s, {each.entered:,} entered, {each.stopped:,} stopped", right + 10, down + 4)
    return document(root)
