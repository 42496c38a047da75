"""The content of a picture as plain data without geometry: panels of cells with headings, and a legend."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

Border = Literal["", "phase", "conflict"]
"""No border; a cell accessed in the phase; a cell in a bank conflict."""


@frozen
class Cell:
    """lines: the text, top to bottom. fill: `#rrggbb`. badge: a few letters in the corner."""

    lines: tuple[str, ...]
    fill: str
    border: Border = ""
    badge: str = ""


@frozen
class Panel:
    """A grid under a title. cells: rows of equal length.

    rows, columns: their headings. row_lines, column_lines: the weight of the line before each row or column, 0 for a
    plain line, more for the edge of a tile.
    """

    title: str
    cells: tuple[tuple[Cell, ...], ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    row_lines: tuple[int, ...]
    column_lines: tuple[int, ...]


@frozen
class Key:
    """One entry of the legend: swatches of these fills, left to right, and their meaning. Without fills, a remark.

    border, badge: of the cells that the entry explains.
    """

    text: str
    fills: tuple[str, ...] = ()
    border: Border = ""
    badge: str = ""

    @property
    def label(self) -> str:
        """The text beside the swatches."""
        return f"{self.badge}: {self.text}" if self.badge else self.text
