"""Draw a counterexample: for each faulty element the tile around it, with the element marked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never, cast

import numpy as np
from attrs import frozen

from argus.core.index import Symbol
from argus.core.ir import Alloc, Buffer, Kernel, Staged, Strided, walk
from argus.core.layout import TV
from argus.core.layout.pictures.colours import BLANK, HUES, ramp, shade
from argus.core.layout.pictures.grid import abbreviate_set
from argus.core.layout.pictures.panel import Border, Cell, Key, Panel
from argus.core.layout.pictures.picture import Picture
from argus.core.verdict import Counterexample, Place
from argus.core.walk import evaluate

WINDOW = 16
"""Maximum rows and columns of one panel."""

_WRONG = Key("the faulty element", border="conflict", badge="!")
_SAME_FAILURE = Key("same failure", border="conflict", badge="=")
_SAME = Key("other elements of its thread", border="phase")

At = tuple[int, ...]
Rows = tuple[tuple[Cell, ...], ...]


@frozen
class _Tile:
    """The slice of a buffer along its last two axes through element `at`; a buffer of one axis is one row.

    same_failure: other elements with the same failure.
    """

    shape: At
    at: At
    same_failure: frozenset[At] = frozenset()

    @property
    def extents(self) -> tuple[int, int]:
        """Rows and columns, extended to an element outside the buffer."""
        rows, columns = (1, *self.shape)[-2:]
        row, column = self.marked
        return max(rows, row + 1), max(columns, column + 1)

    @property
    def marked(self) -> tuple[int, int]:
        row, column = (0, *self.at)[-2:]
        return row, column

    def window(self) -> tuple[range, range]:
        """At most WINDOW rows and columns around the element."""
        found: list[range] = []
        for place, extent in zip(self.marked, self.extents, strict=True):
            first = place if place < 0 else max(0, min(place // WINDOW * WINDOW, extent - WINDOW))
            found.append(range(first, min(extent, first + WINDOW)))
        return found[0], found[1]

    def element(self, row: int, column: int) -> At:
        return (*self.at[:-2], row, column) if len(self.at) > 1 else (column,)

    def mark(self, element: At, *, same: bool = False) -> tuple[Border, str]:
        """Border and badge of an element. same: its thread also holds the faulty one."""
        if element == self.at:
            return "conflict", "!"
        if element in self.same_failure:
            return "conflict", "="
        return ("phase" if same else ""), ""

    def keys(self) -> tuple[Key, ...]:
        """The legend of the marks."""
        return (_WRONG, _SAME_FAILURE) if self.same_failure else (_WRONG,)

    def inside(self, element: At) -> bool:
        return all(0 <= at < extent for at, extent in zip(element, self.shape, strict=True))


def picture(kernel: Kernel, found: Counterexample) -> Picture | None:
    """The tiles of the faulty elements, side by side; None if the counterexample names no element.

    Register tiles show the thread and register of each element, memory tiles the offset of each from the buffer's
    start, in elements.
    """
    panels: list[Panel] = []
    keys: dict[Key, None] = {}
    for place in _at_fault(kernel, found):
        buffer = _buffer(kernel, place.buffer)
        if buffer is None or place.element is None:
            continue
        panel, legend = _panel(kernel, found, buffer, place.element)
        panels.append(panel)
        keys |= dict.fromkeys(legend)
    return Picture(tuple(panels), tuple(keys), caption=tuple(_caption(kernel, found))) if panels else None


def _caption(kernel: Kernel, found: Counterexample) -> Iterator[str]:
    """What is wrong, and where."""
    yield f"{kernel.name}: {found.code}, {found.message}"
    yield from found.where()


def _at_fault(kernel: Kernel, found: Counterexample) -> tuple[Place, ...]:
    if found.elements or found.element is None:
        return tuple(dict.fromkeys(found.elements))
    buffer = _buffer(kernel, found.buffer)
    return () if buffer is None else (Place(buffer.name, buffer.space, found.element),)


def _buffer(kernel: Kernel, name: str) -> Buffer | None:
    made = (stmt.buffer for stmt in walk(kernel.body) if isinstance(stmt, Alloc))
    return next((buffer for buffer in (*kernel.parameters, *made) if buffer.name == name), None)


def _panel(kernel: Kernel, found: Counterexample, buffer: Buffer, at: At) -> tuple[Panel, tuple[Key, ...]]:
    sizes = dict(found.sizes)
    env = {symbol: sizes[symbol.name] for symbol in kernel.sizes}
    same_failure = frozenset(p.element for p in found.alike if p.buffer == buffer.name and p.element is not None)
    tile = _Tile(tuple(int(cast(int, evaluate(extent, env))) for extent in buffer.shape), at, same_failure - {at})
    rows, columns = tile.window()
    elements = [[tile.element(row, column) for column in columns] for row in rows]
    match buffer.layout:
        case TV():
            cells, legend = _registers(tile, buffer.layout, elements)
        case Staged() | Strided():
            cells, legend = _memory(tile, _offsets(buffer, env, tile, elements), elements)
        case _:
            assert_never(buffer.layout)
    slot = f"[{', '.join(map(str, at[:-2]))}]" if len(at) > 2 else ""
    title = f"{buffer.name}{slot}, {buffer.space}, rows {_span(rows)}, columns {_span(columns)} of {tile.shape}"
    marked = Panel(title, cells, _names(rows), _names(columns), (0,) * len(rows), (0,) * len(columns))
    return marked, legend


def _span(numbers: range) -> str:
    return f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else f"{numbers[0]}"


def _names(numbers: range) -> tuple[str, ...]:
    return tuple(map(str, numbers))


# -- registers -----------------------------------------------------------------------------------------------


def _registers(tile: _Tile, layout: TV, elements: Sequence[Sequence[At]]) -> tuple[Rows, tuple[Key, ...]]:
    """Thread and register of each element, `T3` above `V1`, coloured by thread."""
    held = _holders(layout)
    own = {thread for thread, _ in held.get(tile.at, ())}

    def cell(element: At) -> Cell:
        holders = held.get(element, ())
        if not holders:
            return Cell(("", ""), BLANK, *tile.mark(element))
        threads = [thread for thread, _ in holders]
        fill = shade(min(threads), min(threads) // len(HUES))
        text = abbreviate_set("T", threads), abbreviate_set("V", [value for _, value in holders])
        return Cell(text, fill, *tile.mark(element, same=not own.isdisjoint(threads)))

    cells = tuple(tuple(cell(element) for element in row) for row in elements)
    return cells, (Key("Tt above Vv: register v of thread t of the agent"), *tile.keys(), _SAME)


def _holders(layout: TV) -> dict[At, list[tuple[int, int]]]:
    """The (thread, register) pairs that hold each element of a tile."""
    held: dict[At, list[tuple[int, int]]] = {}
    axes = np.stack(layout.coordinates(), axis=-1)
    for thread, of_thread in enumerate(axes.tolist()):
        for value, element in enumerate(of_thread):
            held.setdefault(tuple(element), []).append((thread, value))
    return held


# -- memory --------------------------------------------------------------------------------------------------


def _offsets(buffer: Buffer, env: Mapping[Symbol, int], tile: _Tile, elements: Sequence[Sequence[At]]) -> dict[At, int]:
    """Offset of each element of the window from the buffer's start, in elements."""
    layout = buffer.layout
    inside = [element for row in elements for element in row if tile.inside(element)]
    if isinstance(layout, Strided):
        strides = [int(cast(int, evaluate(stride, env))) for stride in layout.strides]
        return {element: sum(at * stride for at, stride in zip(element, strides, strict=True)) for element in inside}
    assert isinstance(layout, Staged)
    table = layout.layout.table()
    table = table if layout.swizzle is None else layout.swizzle.images(table)
    return {element: int(table[_number(element, tile.shape)]) for element in inside}


def _number(element: At, shape: At) -> int:
    """Linear number of an element, first axis fastest."""
    number, below = 0, 1
    for at, extent in zip(element, shape, strict=True):
        number, below = number + at * below, below * extent
    return number


def _memory(tile: _Tile, offsets: Mapping[At, int], elements: Sequence[Sequence[At]]) -> tuple[Rows, tuple[Key, ...]]:
    """Offset of each element, darker as it grows; cells outside the buffer are blank."""
    low, high = min(offsets.values(), default=0), max(offsets.values(), default=0)

    def cell(element: At) -> Cell:
        if element not in offsets:
            return Cell(("",), BLANK, *tile.mark(element))
        offset = offsets[element]
        return Cell((str(offset),), ramp(offset - low, high - low), *tile.mark(element))

    cells = tuple(tuple(cell(element) for element in row) for row in elements)
    blank = any(element not in offsets for row in elements for element in row)
    return cells, (*_keys(outside=blank), *tile.keys())


def _keys(*, outside: bool) -> Iterator[Key]:
    yield Key("number: offset from the buffer's start, in elements")
    if outside:
        yield Key("outside the buffer", (BLANK,))
