"""Lay out a shape as rows and columns, and draw the image of each coordinate.

Mode 0 numbers the rows and the other modes the columns; a shape of rank 1 is one row. This module imports no layout
class, since layouts call it to draw themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Protocol

from attrs import frozen

from argus.core.layout.faults import LayoutError
from argus.core.layout.inttuple import IntTuple, flatten, product
from argus.core.layout.pictures.colours import ramp
from argus.core.layout.pictures.panel import Cell, Key, Panel
from argus.core.layout.pictures.picture import Picture

MAX_CELLS = 4096
_LONGEST_TEXT = 24
_HEAVIEST_LINE = 3


class Function(Protocol):
    """Any layout: a shape and an image for each index."""

    @property
    def shape(self) -> IntTuple: ...
    def __call__(self, index: int, /) -> int: ...


def as_html(layout: Function) -> str:
    """What a notebook shows of a layout: its text, and the grid of its images up to MAX_CELLS elements."""
    size = product(layout.shape)
    drawn = index_grid(layout).svg() if 0 < size <= MAX_CELLS else ""
    return f"<p><code>{escape(str(layout))}</code>, {size} elements</p>{drawn}"


@frozen
class Frame:
    """The weights of the lines before each row and column. Index `row + rows * column` is the cell (row, column)."""

    row_lines: tuple[int, ...]
    column_lines: tuple[int, ...]

    def panel(self, title: str, cells: Sequence[Cell]) -> Panel:
        """A panel of the cells, which are in index order."""
        rows, columns = len(self.row_lines), len(self.column_lines)
        return Panel(
            title,
            tuple(tuple(cells[row::rows]) for row in range(rows)),
            tuple(map(str, range(rows))),
            tuple(map(str, range(columns))),
            self.row_lines,
            self.column_lines,
        )


def frame(shape: IntTuple) -> Frame:
    """Rows and columns of a shape, with heavier lines around the tiles of nested modes.

    Raises LayoutError (E813) above MAX_CELLS cells.
    """
    cells = product(shape)
    if cells > MAX_CELLS:
        raise LayoutError(
            "E813",
            f"a picture of {abbreviate(cells)} cells is too large: at most {MAX_CELLS} are drawn",
            help="show one mode of it, or a tile",
        )
    modes = shape if isinstance(shape, tuple) else (shape,)
    if len(modes) < 2:
        return Frame((0,), _lines(modes))
    return Frame(_lines(modes[:1]), _lines(modes[1:]))


def _lines(modes: tuple[IntTuple, ...]) -> tuple[int, ...]:
    """The weight of the line before each place: how many prefixes of the modes end there."""
    weights = [0] * product(modes)
    below = 1
    for extent in flatten(modes):
        if extent > 1 and below > 1:
            for place in range(0, len(weights), below):
                weights[place] = min(weights[place] + 1, _HEAVIEST_LINE)
        below *= extent
    return tuple(weights)


def images(layout: Function) -> list[int]:
    """All images, as exact Python integers. Raises LayoutError (E813) above MAX_CELLS elements."""
    frame(layout.shape)
    return [layout(index) for index in range(product(layout.shape))]


def index_grid(layout: Function) -> Picture:
    """A picture of all images, darker for larger ones. Raises LayoutError (E813) above MAX_CELLS elements."""
    values = images(layout)
    low, high = min(values), max(values)
    cells = [Cell((abbreviate(value),), ramp(value - low, high - low)) for value in values]
    return Picture((frame(layout.shape).panel(str(layout), cells),), _scale(low, high))


def _scale(low: int, high: int) -> tuple[Key, ...]:
    if low == high:
        return ()
    steps = range(5)
    return (Key(f"image: {abbreviate(low)} to {abbreviate(high)}", tuple(ramp(step, steps[-1]) for step in steps)),)


def abbreviate(number: int) -> str:
    """A number in decimal, shortened to its first and last digits if it is long."""
    if abs(number) >> 128:
        return f"about {'-' * (number < 0)}2^{abs(number).bit_length() - 1}"
    digits = str(number)
    return digits if len(digits) <= _LONGEST_TEXT else f"{digits[:9]}…{digits[-6:]}"


def abbreviate_set(letter: str, numbers: Iterable[int]) -> str:
    """`T3`, `T3,5`, or `T3,5..` for more."""
    first, *rest = sorted(set(numbers))
    more = f",{rest[0]}" if rest else ""
    return f"{letter}{first}{more}{'..' * (len(rest) > 1)}"
