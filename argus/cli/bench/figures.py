"""Draws kernels vs. a peer library as SVG: a roofline plot, and time ratios by shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from types import MappingProxyType
from xml.etree import ElementTree as ET

from attrs import frozen

from argus.report.drawing import (
    COLOUR_OF,
    COLOURS,
    GRID,
    INK,
    LogAxis,
    canvas,
    document,
    dot,
    hover,
    line,
    margin_labels,
    margin_places,
    number,
    text,
)
from argus.report.labels import LETTER, LINE, Label, legible

_WIDTH = 760.0
_LEFT, _RIGHT, _TOP = 78.0, 580.0, 46.0
_ROW = 22.0
_BELOW = 60.0


@frozen
class Point:
    """One kernel on one shape.

    intensity: operations per byte. rate: TFLOP/s. filled: ours, else the peer's. hover: what a browser shows over it.
    """

    series: str
    intensity: float
    rate: float
    filled: bool
    hover: str = ""


@frozen
class Roof:
    """The limits of a machine. bandwidth: TB/s. peaks: TFLOP/s by dtype."""

    bandwidth: float
    peaks: Sequence[tuple[str, float]]


@frozen
class Ratio:
    """One row: quartiles of the peer's time over ours, by series; above 1 if ours is faster."""

    label: str
    values: Sequence[tuple[str, float, float, float]]


def roofline(
    title: str,
    points: Sequence[Point],
    roof: Roof,
    hollow: str = "its peer",
    colours: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The roofline plot as an SVG document: limits of memory and matrix unit, and the measured points.

    hollow: label of points that are not filled; empty if there are none. colours: of series by name, in the order of
    the legend; others follow, in those of the palette by order of appearance.
    """
    bottom = 460.0 - _BELOW
    peak = max(rate for _, rate in roof.peaks)
    intensities = [point.intensity for point in points] or [100.0]
    low, high = min(*intensities, peak / roof.bandwidth) / 2, max(*intensities, peak / roof.bandwidth) * 2
    x = LogAxis(log10(low), log10(high), _LEFT, _RIGHT)
    y = LogAxis(log10(min([point.rate for point in points] or [10.0]) / 2), log10(peak * 1.5), bottom, _TOP)
    present = {point.series: None for point in points}
    series = list(dict.fromkeys((*(name for name in colours if name in present), *present)))
    labels = [(y.at(rate), f"{name} {rate:,.0f}") for name, rate in roof.peaks]
    down = max(margin_places([at for at, _ in labels], y)) + 2 * LINE
    root = canvas(_WIDTH, max(460.0, down + _ROW * (len(series) + 2)))
    text(root, title, _LEFT, 26, size="15", weight="bold")
    _grid(root, x, y)
    _roofs(root, x, y, roof)
    for point in sorted(points, key=lambda each: each.filled):
        at = hover(root, point.hover) if point.hover else root
        own = colours.get(point.series, "")
        _mark(at, x.at(point.intensity), y.at(point.rate), series.index(point.series), filled=point.filled, own=own)
    margin_labels(root, _RIGHT, _WIDTH - _RIGHT, labels, y)
    for place, name in enumerate(series):
        _mark(root, _RIGHT + 20, down, place, own=colours.get(name, ""))
        text(root, name, _RIGHT + 32, down + 4)
        down += _ROW
    if hollow:
        dot(root, _RIGHT + 20, down, INK, filled=False)
        text(root, hollow, _RIGHT + 32, down + 4)
        down += _ROW
    text(root, f"memory {roof.bandwidth:g} TB/s", _RIGHT + 12, down + 4)
    return document(root)


def _roofs(root: ET.Element, x: LogAxis, y: LogAxis, roof: Roof) -> None:
    for _, rate in roof.peaks:
        knee = max(rate / roof.bandwidth, 10**x.low)
        start = max(10**x.low, 10**y.low / roof.bandwidth)
        way = [(start, start * roof.bandwidth), (knee, rate), (10**x.high, rate)]
        style = {"stroke": COLOUR_OF["bound"], "stroke-width": "1.5"}
        line(root, [(x.at(each), y.at(height_of)) for each, height_of in way], style)


def _grid(root: ET.Element, x: LogAxis, y: LogAxis) -> None:
    across = [Label(x.at(value), LETTER * len(f"{value:,g}"), f"{value:,g}", whole) for value, whole in x.ticks()]
    for each in legible(across):
        style = {"stroke": GRID, "stroke-width": "1" if each.major else "0.5"}
        line(root, [(each.at, y.begin), (each.at, y.end)], style)
        text(root, each.words, each.at, y.begin + 19, anchor="middle")
    up = [Label(y.at(value), LINE, f"{value:,g}", whole) for value, whole in y.ticks()]
    for each in legible(up, apart=0.0):
        style = {"stroke": GRID, "stroke-width": "1" if each.major else "0.5"}
        line(root, [(x.begin, each.at), (x.end, each.at)], style)
        text(root, each.words, x.begin - 8, each.at + 4, anchor="end")
    line(root, [(x.begin, y.end), (x.begin, y.begin), (x.end, y.begin)], {"stroke": INK})
    text(root, "operations per byte of operands and result", (x.begin + x.end) / 2, y.begin + 42, anchor="middle")
    rotated = {"transform": f"translate(20 {number((y.begin + y.end) / 2)}) rotate(-90)"}
    text(ET.SubElement(root, "g", rotated), "TFLOP/s", 0, 0, anchor="middle")


def ratios(title: str, rows: Sequence[Ratio]) -> str:
    """The ratio plot as an SVG document: one row per shape, a line from the lower to the upper quartile."""
    bottom = _TOP + 10 + _ROW * max(1, len(rows))
    ends = [edge for row in rows for _, low, _, high in row.values for edge in (low, high)] or [1.0]
    low, high = min(0.9, *ends) - 0.02, max(1.1, *ends) + 0.02
    left, right = 250.0, 620.0

    def across(value: float) -> float:
        return left + (right - left) * (value - low) / (high - low)

    root = canvas(_WIDTH, bottom + _BELOW)
    text(root, title, 20, 26, size="15", weight="bold")
    step = 0.05 if high - low < 0.5 else 0.1 if high - low < 1 else 0.5
    for place in range(ceil(low / step), floor(high / step) + 1):
        at = across(place * step)
        line(root, [(at, _TOP), (at, bottom)], {"stroke": GRID})
        text(root, f"{place * step:.2f}", at, bottom + 19, anchor="middle")
    line(root, [(across(1.0), _TOP), (across(1.0), bottom)], {"stroke": INK})
    series = list(dict.fromkeys(name for row in rows for name, *_ in row.values))
    for number_of, row in enumerate(rows):
        down = _TOP + 16 + _ROW * number_of
        text(root, row.label, left - 10, down + 4, anchor="end")
        for name, least, middle, most in row.values:
            place = series.index(name)
            offset = down + 5 * (place - (len(series) - 1) / 2)
            colour = COLOURS[place % len(COLOURS)]
            line(root, [(across(least), offset), (across(most), offset)], {"stroke": colour, "stroke-width": "1.5"})
            _mark(root, across(middle), offset, place)
    for place, name in enumerate(series):
        down = _TOP + 14 + _ROW * place
        _mark(root, right + 20, down, place)
        text(root, name, right + 32, down + 4)
    text(root, "time of the peer over ours: faster to the right", (left + right) / 2, bottom + 42, anchor="middle")
    return document(root)


def _mark(root: ET.Element, x: float, y: float, series: int, *, filled: bool = True, own: str = "") -> None:
    """Draw the marker of a series by its number: discs in all colours, then squares. own: its colour, as a disc."""
    turn, colour = divmod(series, len(COLOURS))
    dot(root, x, y, own or COLOURS[colour], filled=filled, square=not own and turn % 2 == 1)
