"""Draw a picture as SVG. Lengths are CSS pixels.

It uses presentation attributes only: a style sheet would affect the page that embeds the picture.
"""

from __future__ import annotations

from itertools import accumulate
from textwrap import wrap
from xml.etree import ElementTree as ET

from argus.core.layout.pictures.geometry import HEAD, TITLE_STEP, Box, Legend, Plan, plan_of
from argus.core.layout.pictures.panel import Border, Cell, Key, Panel

INK, GROUND, QUIET, EDGE, ALARM = "#000000", "#ffffff", "#555555", "#8a8a8a", "#cc0000"
SANS = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
MONO = "Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"
_LINE_WIDTHS = (0.75, 1.5, 2.25, 3.0)
_FRAME_WIDTH = 1.5
_CAPTION_WIDTH, _CAPTION_STEP, _CAPTION_MARGIN, _CAPTION_LETTER = 520.0, 18.0, 14.0, 6.9
"""Least width of a captioned picture, height of a line, margin, and the width of an average bold letter."""
_BORDERS: dict[Border, tuple[str, float]] = {"phase": (INK, 1.6), "conflict": (ALARM, 2.4)}


def svg_text(panels: tuple[Panel, ...], legend: tuple[Key, ...], arrow: str, caption: tuple[str, ...] = ()) -> str:
    """The document with a final newline."""
    plan = plan_of(panels, legend, arrow)
    width, height = map(_px, extent_of(plan, caption))
    root = ET.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "width": width,
            "height": height,
            "viewBox": f"0 0 {width} {height}",
            "font-family": SANS,
            "fill": INK,
            "role": "img",
            "style": "max-width:100%;max-height:96vh",
        },
    )
    _rect(root, (0, 0, *extent_of(plan, caption)), fill=GROUND)
    page = root
    if caption:
        _draw_caption(root, _caption_lines(plan, caption))
        page = _group(root, transform=f"translate(0 {_px(_caption_height(plan, caption))})")
    for (x, y), box in zip(plan.places, plan.boxes, strict=True):
        _draw_box(page, x, y, box)
    for before, after, box in zip(plan.places, plan.places[1:], plan.boxes, strict=False):
        _draw_arrow(page, before, after, box, arrow)
    _draw_legend(page, plan.legend)
    _remove_empty_groups(root)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def extent_of(plan: Plan, caption: tuple[str, ...]) -> tuple[float, float]:
    """Width and height of the document. A narrow picture is as wide as the shortest lines of its caption need."""
    return _width(plan, caption), plan.height + _caption_height(plan, caption)


def _width(plan: Plan, caption: tuple[str, ...]) -> float:
    return max(plan.width, _CAPTION_WIDTH) if caption else plan.width


def _caption_height(plan: Plan, caption: tuple[str, ...]) -> float:
    return _CAPTION_STEP * len(_caption_lines(plan, caption)) + _CAPTION_MARGIN if caption else 0.0


def _caption_lines(plan: Plan, caption: tuple[str, ...]) -> list[tuple[str, bool]]:
    """Lines that fit the width, each with whether it is bold."""
    room = int((_width(plan, caption) - 2 * _CAPTION_MARGIN) / _CAPTION_LETTER)
    return [(line, number == 0) for number, text in enumerate(caption) for line in wrap(text, room)]


def _draw_caption(root: ET.Element, lines: list[tuple[str, bool]]) -> None:
    group = _group(root, **{"font-size": "13"})
    for number, (line, bold) in enumerate(lines):
        weight = {"font-weight": "bold"} if bold else {}
        _text(group, line, _CAPTION_MARGIN, _CAPTION_MARGIN + 4 + _CAPTION_STEP * number, weight)


def _remove_empty_groups(root: ET.Element) -> None:
    """Remove empty groups."""
    for child in list(root):
        _remove_empty_groups(child)
        if child.tag == "g" and len(child) == 0:
            root.remove(child)


def _draw_box(root: ET.Element, x: float, y: float, box: Box) -> None:
    group = _group(root)
    left = x + box.side
    for number, line in enumerate(box.title):
        attributes = {"font-size": _px(box.title_font), "font-family": MONO, "font-weight": "bold"}
        _text(group, line, left, y + TITLE_STEP * number + 12, attributes)
    top = y + box.above
    _draw_headings(group, left, top, box)
    _draw_fills(group, left, top, box)
    _draw_lines(group, left, top, box)
    _draw_texts(group, left, top, box)


def _draw_headings(root: ET.Element, left: float, top: float, box: Box) -> None:
    group = _group(root, **{"font-size": "10", "fill": QUIET})
    columns = _group(group, **{"text-anchor": "middle"})
    for number, name in enumerate(box.panel.columns):
        _text(columns, name, left + box.cell.wide * (number + 0.5), top - 6)
    rows = _group(group, **{"text-anchor": "end"})
    for number, name in enumerate(box.panel.rows):
        _text(rows, name, left - 6, top + box.cell.high * (number + 0.5) + 3.5)


def _draw_fills(root: ET.Element, left: float, top: float, box: Box) -> None:
    group = _group(root, **{"stroke": EDGE, "stroke-width": _px(_LINE_WIDTHS[0])})
    for x, y, cell in _cells(left, top, box):
        _rect(group, (x, y, box.cell.wide, box.cell.high), fill=cell.fill)


def _draw_lines(root: ET.Element, left: float, top: float, box: Box) -> None:
    group = _group(root, stroke=INK, fill="none")
    right, bottom = left + box.grid_width, top + box.grid_height
    lines = [
        (weight, f"M{_px(left + box.cell.wide * place)} {_px(top)}V{_px(bottom)}")
        for place, weight in enumerate(box.panel.column_lines)
        if place and weight
    ]
    lines += [
        (weight, f"M{_px(left)} {_px(top + box.cell.high * place)}H{_px(right)}")
        for place, weight in enumerate(box.panel.row_lines)
        if place and weight
    ]
    for weight in sorted({weight for weight, _ in lines}):
        path = "".join(line for each, line in lines if each == weight)
        ET.SubElement(group, "path", {"d": path, "stroke-width": _px(_LINE_WIDTHS[weight])})
    width = max(_FRAME_WIDTH, *(_LINE_WIDTHS[weight] for weight, _ in lines)) if lines else _FRAME_WIDTH
    _rect(group, (left, top, box.grid_width, box.grid_height), **{"stroke-width": _px(width)})


def _draw_texts(root: ET.Element, left: float, top: float, box: Box) -> None:
    borders = _group(root)
    texts = _group(root, **{"font-size": _px(box.cell.font), "text-anchor": "middle"})
    badges = _group(root, **{"font-size": "8", "font-weight": "bold", "text-anchor": "middle", "fill": GROUND})
    for x, y, cell in _cells(left, top, box):
        if cell.border:
            _border(borders, (x, y, box.cell.wide, box.cell.high), cell.border)
        step = box.cell.font * 1.18
        base = y + box.cell.badge / 2 + box.cell.high / 2 + box.cell.font * 0.35 - step * (len(cell.lines) - 1) / 2
        for number, line in enumerate(cell.lines):
            if line:
                _text(texts, line, x + box.cell.wide / 2, base + step * number)
        if cell.badge:
            _badge(badges, cell.badge, x + box.cell.wide - 1, y + 1)


def _badge(root: ET.Element, text: str, right: float, top: float) -> None:
    wide = 5.2 * len(text) + 4
    _rect(root, (right - wide, top, wide, 11), fill=ALARM)
    _text(root, text, right - wide / 2, top + 8.4)


def _cells(left: float, top: float, box: Box) -> list[tuple[float, float, Cell]]:
    return [
        (left + box.cell.wide * column, top + box.cell.high * row, cell)
        for row, line in enumerate(box.panel.cells)
        for column, cell in enumerate(line)
    ]


def _border(root: ET.Element, place: tuple[float, float, float, float], border: Border) -> None:
    x, y, wide, high = place
    colour, width = _BORDERS[border]
    inset = 0.5 + width / 2
    inside = (x + inset, y + inset, wide - 2 * inset, high - 2 * inset)
    _rect(root, inside, **{"fill": "none", "stroke": colour, "stroke-width": _px(width)})


def _draw_arrow(
    root: ET.Element, before: tuple[float, float], after: tuple[float, float], box: Box, label: str
) -> None:
    group = _group(root, **{"font-size": "11", "font-family": MONO})
    if before[1] == after[1]:
        start, end = before[0] + box.width + 12, after[0] - 4
        middle = before[1] + box.above + box.grid_height / 2
        _text(group, label, (start + end) / 2, middle - 9, {"text-anchor": "middle"})
        _draw_arrow_head(group, (start, middle), (end, middle), f"M{_px(end)} {_px(middle)}l-{HEAD} -5v10z")
        return
    x = before[0] + box.side + 12
    start, end = before[1] + box.height + 8, after[1] - 8
    _text(group, label, x + 14, (start + end) / 2 + 4)
    _draw_arrow_head(group, (x, start), (x, end), f"M{_px(x)} {_px(end)}l-5 -{HEAD}h10z")


def _draw_arrow_head(root: ET.Element, start: tuple[float, float], end: tuple[float, float], head: str) -> None:
    line = f"M{_px(start[0])} {_px(start[1])}L{_px(end[0] - (HEAD if start[1] == end[1] else 0))} "
    line += _px(end[1] - (HEAD if start[0] == end[0] else 0))
    ET.SubElement(root, "path", {"d": line, "stroke": INK, "stroke-width": "1.75", "fill": "none"})
    ET.SubElement(root, "path", {"d": head})


def _draw_legend(root: ET.Element, keys: Legend) -> None:
    group = _group(root, **{"font-size": "11"})
    for x, y, key in keys.places:
        swatches = key.fills or ((GROUND,) if key.border else ())
        lefts = accumulate(swatches, lambda at, _: at + keys.swatch, initial=x)
        for left, fill in zip(lefts, swatches, strict=False):
            place = (left, y, keys.swatch, 12.0)
            if key.border:
                _border(group, place, key.border)
            else:
                _rect(group, place, fill=fill, stroke=EDGE, **{"stroke-width": _px(_LINE_WIDTHS[0])})
        _text(group, key.label, x + keys.swatch * len(swatches) + (6 if swatches else 0), y + 10)


def _group(root: ET.Element, **attributes: str) -> ET.Element:
    return ET.SubElement(root, "g", attributes)


def _rect(root: ET.Element, place: tuple[float, float, float, float], **attributes: str) -> None:
    names = ("x", "y", "width", "height")
    ET.SubElement(root, "rect", {name: _px(value) for name, value in zip(names, place, strict=True)} | attributes)


def _text(root: ET.Element, text: str, x: float, y: float, attributes: dict[str, str] | None = None) -> None:
    ET.SubElement(root, "text", {"x": _px(x), "y": _px(y), **(attributes or {})}).text = text


def _px(length: float) -> str:
    return f"{length:.2f}".rstrip("0").rstrip(".")
