"""Sizes and positions of a picture's parts. Lengths are CSS pixels.

Text is measured by its number of characters, with the widths of the widest font in the font lists.
"""

from __future__ import annotations

from math import ceil

from attrs import frozen

from argus.core.layout.pictures.panel import Cell, Key, Panel

MARGIN = 14.0
TITLE_STEP = 17.0
HEAD = 10
ARROW = 34.0
_WIDEST = 1500.0
"""Panels whose total width exceeds this are stacked vertically."""
_DIGIT, _MONO, _LETTER = 0.636, 0.602, 0.57
"""Character width relative to the font size: of a digit, a monospace character, a letter of proportional text."""
_TITLE_FONT, _CELL_FONT, _LEGEND_FONT = 13.0, 13.0, 11.0
_NARROWEST_TITLE = 330.0
_LONGEST_TITLE = 240


@frozen
class Size:
    """Size of a cell: width, height, font size of its text, and height reserved for a badge."""

    wide: float
    high: float
    font: float
    badge: float


@frozen
class Box:
    """A measured panel. side: width of the row headings. above: distance from the panel's top to the grid."""

    panel: Panel
    cell: Size
    side: float
    title: tuple[str, ...]
    above: float
    title_font: float = _TITLE_FONT

    @property
    def grid_width(self) -> float:
        return self.cell.wide * len(self.panel.columns)

    @property
    def grid_height(self) -> float:
        return self.cell.high * len(self.panel.rows)

    @property
    def width(self) -> float:
        title = ceil(max(map(len, self.title)) * self.title_font * _MONO)
        return self.side + max(self.grid_width, title)

    @property
    def height(self) -> float:
        return self.above + self.grid_height


@frozen
class Legend:
    """Position of each entry, width of a swatch, and the legend's right and bottom edges."""

    places: tuple[tuple[float, float, Key], ...]
    swatch: float
    right: float
    bottom: float


@frozen
class Plan:
    """Positions of the panels and the legend, and the size of the picture. places: top left corners of the panels."""

    boxes: list[Box]
    places: list[tuple[float, float]]
    legend: Legend
    width: float
    height: float


def plan_of(panels: tuple[Panel, ...], legend: tuple[Key, ...], arrow: str) -> Plan:
    """The geometry of a picture; the legend begins below the first grid's left edge."""
    boxes = _measure_panels(panels)
    places = _panel_corners(boxes, arrow)
    right = max(x + box.width for (x, _), box in zip(places, boxes, strict=True))
    bottom = max(y + box.height for (_, y), box in zip(places, boxes, strict=True))
    keys = _place_legend(legend, MARGIN + boxes[0].side, bottom + 14, right)
    return Plan(boxes, places, keys, ceil(max(right, keys.right) + MARGIN), ceil(keys.bottom + MARGIN))


def _measure_panels(panels: tuple[Panel, ...]) -> list[Box]:
    """Measure the panels; their grids begin at the same height."""
    size = _cell_size([cell for panel in panels for row in panel.cells for cell in row])
    titles = [_wrap_title(panel.title, size.wide * len(panel.columns)) for panel in panels]
    above = max(map(len, titles)) * TITLE_STEP + 20
    return [_measure_panel(panel, size, title, above) for panel, title in zip(panels, titles, strict=True)]


def _measure_panel(panel: Panel, size: Size, title: tuple[str, ...], above: float) -> Box:
    side = ceil(max(map(len, panel.rows)) * 10 * _DIGIT + 8)
    return Box(panel, size, side, title, above)


def _cell_size(cells: list[Cell]) -> Size:
    """The cell size that all cells of a picture share."""
    lines = max(len(cell.lines) for cell in cells)
    longest = max(1, *(len(line) for cell in cells for line in cell.lines))
    badge = 6.0 if any(cell.badge for cell in cells) else 0.0
    wanted = 12.0 if lines > 1 else _CELL_FONT
    wide = min(max(34.0, round(longest * wanted * _DIGIT + 10)), 64.0)
    high = (38.0 if lines > 1 else 30.0) + badge
    font = min(wanted, (wide - 7) / (longest * _DIGIT))
    return Size(wide, high, font, badge)


def _wrap_title(title: str, width: float) -> tuple[str, ...]:
    """Break the title into lines no wider than the grid, after spaces, commas and colons where possible."""
    most = int(max(width, _NARROWEST_TITLE) / (_TITLE_FONT * _MONO))
    rest = title
    if len(rest) > _LONGEST_TITLE:
        rest = f"{rest[: _LONGEST_TITLE // 2]} … {rest[-_LONGEST_TITLE // 2 :]}"
    lines: list[str] = []
    while len(rest) > most:
        cut = max(rest.rfind(sign, most // 2, most) for sign in " ,:") + 1 or most
        lines.append(rest[:cut].rstrip())
        rest = rest[cut:].lstrip()
    return (*lines, rest)


def _panel_corners(boxes: list[Box], arrow: str) -> list[tuple[float, float]]:
    """The top left corner of each panel: in a row if that fits, else in a column."""
    gap = max(64.0, len(arrow) * 11 * _MONO + 16) + 24
    in_a_row = sum(box.width for box in boxes) + gap * (len(boxes) - 1) <= _WIDEST
    places = [(MARGIN, MARGIN)]
    for box in boxes[:-1]:
        x, y = places[-1]
        places.append((x + box.width + gap, y) if in_a_row else (x, y + box.height + ARROW + 24))
    return places


def _place_legend(keys: tuple[Key, ...], left: float, top: float, right: float) -> Legend:
    """Place the entries in lines that end before `right`; an entry longer than a line gets its own."""
    swatch = 12.0
    places: list[tuple[float, float, Key]] = []
    x, y, reach = left, top, left
    for key in keys:
        count = len(key.fills) or bool(key.border)
        width = swatch * count + 6 * bool(count) + len(key.label) * _LEGEND_FONT * _LETTER
        if x > left and x + width > right:
            x, y = left, y + 19
        places.append((x, y, key))
        reach = max(reach, x + width)
        x += width + 16
    return Legend(tuple(places), swatch, reach, y + 13 if keys else top - 14)
