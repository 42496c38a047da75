"""Draw a picture as plain text: `-` and `|` between cells, `=` and `#` at tile edges."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, zip_longest

from argus.core.layout.pictures.panel import Cell, Key, Panel


def plain_text(panels: tuple[Panel, ...], legend: tuple[Key, ...], arrow: str) -> str:
    """The panels from top to bottom, then the legend of the marks. Colours and their legend are omitted."""
    between = ["", f"-- {arrow} -->", ""] if arrow else [""]
    lines: list[str] = []
    for panel in panels:
        lines += between if lines else []
        lines += _panel(panel)
    borders = [key for key in legend if key.border]
    lines += [""] if borders else []
    lines += [f"[b]{key.badge}: {key.text}" for key in borders]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _panel(panel: Panel) -> Iterator[str]:
    texts = [[_text(cell) for cell in row] for row in panel.cells]
    width = max(map(len, chain(panel.columns, *chain.from_iterable(texts))))
    side = max(map(len, panel.rows))
    edges = _edges(panel.column_lines)
    yield panel.title
    yield ""
    yield " " * (side + 3) + " ".join(f" {name:>{width}} " for name in panel.columns)
    for name, weight, row in zip(panel.rows, _plain_outer_line(panel.row_lines), texts, strict=True):
        yield _rule(side, width, weight, len(panel.columns))
        for head, line in zip_longest((name,), zip_longest(*row, fillvalue=""), fillvalue=""):
            inside = "".join(f"{edge} {text:>{width}} " for edge, text in zip(edges, line, strict=False))
            yield f" {head:>{side}} {inside}|"
    yield _rule(side, width, 0, len(panel.columns))


def _plain_outer_line(weights: tuple[int, ...]) -> tuple[int, ...]:
    return (0, *weights[1:])


def _edges(weights: tuple[int, ...]) -> list[str]:
    return ["#" if weight else "|" for weight in _plain_outer_line(weights)]


def _rule(side: int, width: int, weight: int, columns: int) -> str:
    return " " * (side + 2) + f"+{('=' if weight else '-') * (width + 2)}" * columns + "+"


def _text(cell: Cell) -> tuple[str, ...]:
    first, *rest = cell.lines
    return ((f"[{first}]" if cell.border else first) + cell.badge, *rest)
