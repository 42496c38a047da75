"""SVG primitives of plots: axes, lines, text, dots, hover texts; and what colours mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, floor, log10
from typing import Literal
from xml.etree import ElementTree as ET

from attrs import frozen

from argus.report.labels import LINE, shortened, spread

INK, QUIET, GRID, GROUND = "#000000", "#555555", "#dddddd", "#ffffff"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Okabe and Ito's palette: distinguishable in print and with colour blindness."""

Meaning = Literal["best", "candidate", "refuted", "bound", "time"]
COLOUR_OF: Mapping[Meaning, str] = {
    "best": "#0072b2",
    "candidate": "#56b4e9",
    "refuted": "#a33c00",
    "bound": QUIET,
    "time": "#e69f00",
}
"""The colours of a search, on every page: its best design, other designs that passed the gate, rejected ones, bounds
such as the speed of light, and the time that the search took. All but two are of the palette; the red is darker than
the palette's, as it is also one of text on white."""
_SANS = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"


@frozen
class LogAxis:
    """A log10 axis from 10^low to 10^high, drawn from `begin` to `end` in pixels."""

    low: float
    high: float
    begin: float
    end: float

    def at(self, value: float) -> float:
        return self.begin + (self.end - self.begin) * (log10(value) - self.low) / (self.high - self.low)

    def ticks(self) -> Iterator[tuple[float, bool]]:
        """Ticks at 1, 2 and 5 times each power of ten, each with whether it is a power of ten."""
        for power in range(floor(self.low), ceil(self.high) + 1):
            for digit in (1, 2, 5):
                if self.low - 1e-9 <= log10(digit * 10.0**power) <= self.high + 1e-9:
                    yield digit * 10.0**power, digit == 1


def canvas(width: float, height: float) -> ET.Element:
    """An empty SVG document."""
    size = {"width": number(width), "height": number(height), "viewBox": f"0 0 {number(width)} {number(height)}"}
    root = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **size, "font-family": _SANS, "role": "img"})
    ET.SubElement(root, "rect", {"width": number(width), "height": number(height), "fill": GROUND})
    return root


def document(root: ET.Element) -> str:
    """The SVG text."""
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def line(root: ET.Element, points: Sequence[tuple[float, float]], style: Mapping[str, str]) -> None:
    """Draw a polyline. style: SVG attributes; empty ones are dropped."""
    given = {name: value for name, value in style.items() if value}
    through = " ".join(f"{number(x)},{number(y)}" for x, y in points)
    ET.SubElement(root, "polyline", {"points": through, "fill": "none", **given})


def text(
    root: ET.Element,
    words: str,
    x: float,
    y: float,
    *,
    anchor: str = "start",
    size: str = "12",
    weight: str = "normal",
) -> None:
    """Draw text at a point. anchor: SVG text-anchor. Text of the default size is grey."""
    style = {"font-size": size, "font-weight": weight, "text-anchor": anchor, "fill": INK if size != "12" else QUIET}
    ET.SubElement(root, "text", {"x": number(x), "y": number(y), **style}).text = words


def dot(root: ET.Element, x: float, y: float, colour: str, *, filled: bool, square: bool = False) -> None:
    style = {"fill": colour if filled else "none", "stroke": colour, "stroke-width": "1.5"}
    if square:
        ET.SubElement(root, "rect", {"x": number(x - 3), "y": number(y - 3), "width": "6", "height": "6", **style})
        return
    ET.SubElement(root, "circle", {"cx": number(x), "cy": number(y), "r": "3.5", **style})


def hover(root: ET.Element, words: str) -> ET.Element:
    """A group for marks over which a browser shows the words, also where they are not filled."""
    group = ET.SubElement(root, "g", {"pointer-events": "all"})
    ET.SubElement(group, "title").text = words
    return group


def area(root: ET.Element, x: float, y: float, width: float, height: float) -> None:
    """An invisible rectangle, to enlarge what a hover text belongs to."""
    size = {"width": number(width), "height": number(height)}
    ET.SubElement(root, "rect", {"x": number(x), "y": number(y), **size, "fill": "none"})


def margin_places(heights: Sequence[float], ends: LogAxis) -> list[float]:
    """The heights of labels beside a vertical axis, moved apart where they would overlap."""
    return spread(heights, ends.end + LINE / 2, ends.begin - LINE / 2)


def margin_labels(root: ET.Element, x: float, room: float, labels: Sequence[tuple[float, str]], ends: LogAxis) -> None:
    """Label heights on a vertical axis to the right of it, from x on, at their `margin_places`."""
    for (at, words), place in zip(labels, margin_places([at for at, _ in labels], ends), strict=True):
        line(root, [(x, at), (x + 8, place)], {"stroke": QUIET, "stroke-width": "0.75"})
        short = shortened(words, room - 12)
        text(root if short == words else hover(root, words), short, x + 12, place + 4)


def number(length: float) -> str:
    """A length with at most two decimals."""
    return f"{length:.2f}".rstrip("0").rstrip(".")
