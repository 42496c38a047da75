"""Draws cactus plots: the number of queries that each backend answers within a time limit per query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, floor, log10
from xml.etree import ElementTree as ET

from attrs import frozen

from argus.report.drawing import COLOURS, GRID, INK, canvas, document, line, number, text

WIDTH, HEIGHT = 760.0, 440.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 78.0, 560.0, 46.0, 384.0
_DASHES = ("", "7 3", "2 2", "9 3 2 3", "5 5", "1 3")
_MOST_POINTS = 400
_KNOWN = ("z3", "cvc5", "enumerate", "portfolio", "all", "z3-text", "cvc5-text")
"""Backends with a colour of their own in every plot; others follow by name."""


@frozen
class _Axes:
    """queries: end of the horizontal axis. low, high: range of the vertical axis, in powers of ten of seconds."""

    queries: int
    low: int
    high: int

    def x(self, queries: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * queries / self.queries

    def y(self, seconds: float) -> float:
        share = (log10(max(seconds, 10.0**self.low)) - self.low) / (self.high - self.low)
        return _BOTTOM - (_BOTTOM - _TOP) * share


def cactus(times: Mapping[str, Sequence[float]], queries: int) -> str:
    """The plot as an SVG document.

    times: by backend, the seconds of each query that it answered, in ascending order. queries: number asked.
    A point (n, t) of a line means that the backend answers n queries within t seconds each.
    """
    each = [seconds for series in times.values() for seconds in series if seconds > 0]
    low = floor(log10(min(each))) if each else -3
    high = max(low + 1, ceil(log10(max(each)))) if each else 0
    axes = _Axes(max(1, queries), low, high)
    root = canvas(WIDTH, HEIGHT)
    text(root, f"{queries:,} queries: answered within a time limit per query", _LEFT, 26, size="15", weight="bold")
    _draw_axes(root, axes)
    order = sorted(times, key=lambda name: (-len(times[name]), sum(times[name]), name))
    styled = (*_KNOWN, *sorted(set(times).difference(_KNOWN)))
    for place, name in enumerate(order):
        look = styled.index(name)
        style = {"stroke": COLOURS[look % len(COLOURS)], "stroke-dasharray": _DASHES[look % len(_DASHES)]}
        _draw_line(root, axes, times[name], style)
        _draw_key(root, place, f"{name} ({len(times[name]):,})", style)
    return document(root)


def _draw_axes(root: ET.Element, axes: _Axes) -> None:
    for power in range(axes.low, axes.high + 1):
        at = axes.y(10.0**power)
        line(root, [(_LEFT, at), (_RIGHT, at)], {"stroke": GRID})
        text(root, _seconds(power), _LEFT - 8, at + 4, anchor="end")
    for count in _ticks(axes.queries):
        at = axes.x(count)
        line(root, [(at, _BOTTOM), (at, _BOTTOM + 5)], {"stroke": INK})
        text(root, f"{count:,}", at, _BOTTOM + 19, anchor="middle")
    line(root, [(_LEFT, _TOP), (_LEFT, _BOTTOM), (_RIGHT, _BOTTOM)], {"stroke": INK})
    text(root, "queries answered", (_LEFT + _RIGHT) / 2, _BOTTOM + 42, anchor="middle")
    rotated = {"transform": f"translate(20 {number((_TOP + _BOTTOM) / 2)}) rotate(-90)"}
    text(ET.SubElement(root, "g", rotated), "time per query", 0, 0, anchor="middle")


def _ticks(queries: int) -> Iterator[int]:
    """About five round numbers from 0 to the count."""
    rough = max(1.0, queries / 5)
    unit = 10 ** floor(log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
    yield from range(0, queries + 1, step)


def _seconds(power: int) -> str:
    unit, scale = next(
        (name, least) for name, least in (("s", 0), ("ms", -3), ("µs", -6), ("ns", -99)) if power >= least
    )
    return f"{10 ** (power - max(scale, -9))} {unit}"


def _draw_line(root: ET.Element, axes: _Axes, times: Sequence[float], style: Mapping[str, str]) -> None:
    if not times:
        return
    step = max(1, len(times) // _MOST_POINTS)
    shown = sorted({*range(0, len(times), step), len(times) - 1})
    points = [(axes.x(index + 1), axes.y(times[index])) for index in shown]
    line(root, points, {"stroke-width": "2", **style})


def _draw_key(root: ET.Element, place: int, label: str, style: Mapping[str, str]) -> None:
    x, y = _RIGHT + 18, _TOP + 14 + 22 * place
    line(root, [(x, y), (x + 28, y)], {"stroke-width": "2", **style})
    text(root, label, x + 36, y + 4)
