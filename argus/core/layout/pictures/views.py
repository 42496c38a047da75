"""Pictures of layouts: images, threads and values, shared-memory banks, and images before and after a swizzle."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from argus.core.layout.composed import ComposedLayout, LayoutLike
from argus.core.layout.faults import LayoutError, misplaced
from argus.core.layout.inttuple import IntTuple, product
from argus.core.layout.pictures.colours import BLANK, HUES, TINTS, shade
from argus.core.layout.pictures.grid import MAX_CELLS, abbreviate, abbreviate_set, frame, images, index_grid
from argus.core.layout.pictures.panel import Border, Cell, Key, Panel
from argus.core.layout.pictures.picture import Picture
from argus.core.layout.swizzle import Swizzle
from argus.core.layout.values import Layout

MAX_PAIRS = 1 << 18
"""Most (thread, value) pairs of a thread-value layout that a picture shows."""


def grid(layout: LayoutLike) -> Picture:
    """A picture of each coordinate's image, darker for larger images. A swizzle is drawn as offsets before and after
    it, in units of 2^base.


    Raises LayoutError (E813) above MAX_CELLS elements.
    """
    return _swizzle_in_units(layout) if isinstance(layout, Swizzle) else index_grid(layout)


def _swizzle_in_units(swizzle: Swizzle) -> Picture:
    """Offsets before and after the swizzle: rows number the bits that it reads, columns those that it writes."""
    bits, shift = swizzle.bits, abs(swizzle.shift)
    if bits + shift >= MAX_CELLS.bit_length():
        frame(1 << (bits + shift))
    tile = Layout((1 << bits, 1 << shift), (1 << shift, 1))
    unit = f"{swizzle}, in units of {abbreviate(1 << swizzle.base)}" if swizzle.base else str(swizzle)
    before, after = swizzled(tile, Swizzle(bits, 0, swizzle.shift)).panels
    return Picture((before, after), (Key(unit),), str(swizzle))


def swizzled(layout: Layout | ComposedLayout, swizzle: Swizzle) -> Picture:
    """A layout before and after a swizzle of its images, coloured by the bits that the swizzle writes.

    Raises LayoutError (E813) above MAX_CELLS elements.
    """
    first = swizzle.base + max(0, -swizzle.shift)
    colours = [shade(group, group // len(HUES)) for group in range(1 << min(swizzle.bits, 5))]
    after = ComposedLayout(swizzle, 0, layout)
    panels: list[Panel] = []
    for each in (layout, after):
        cells = [Cell((abbreviate(value),), colours[(value >> first) % len(colours)]) for value in images(each)]
        panels.append(frame(each.shape).panel(str(each), cells))
    last = first + swizzle.bits - 1
    bits = f"bit {first}" if last == first else f"bits {first} to {last}"
    legend = (Key(f"{bits} of the image: 0 to {len(colours) - 1}", tuple(colours)),) if swizzle.bits else ()
    return Picture(tuple(panels), legend, str(swizzle))


# -- threads and values --------------------------------------------------------------------------------------


def tv(threads: Layout, values: Layout, tile: tuple[int, ...]) -> Picture:
    """The thread and value that hold each element of a tile: `T3` above `V1`, coloured by thread.

    The layouts map to element numbers, first axis of the tile fastest; the axes are drawn like the modes of a layout.
    For an element with several holders the cell names the first two and `..`; an element without a holder is blank.
    Raises LayoutError: E813 for a tile or layouts too large for a picture, E803 for an element outside the tile.
    """
    shape: IntTuple = tile if len(tile) != 1 else tile[0]
    around = frame(shape)
    elements = product(shape)
    holders = _holders_by_element(threads, values, elements)
    cells = [_holders_cell(holders.get(element, [])) for element in range(elements)]
    title = f"{threads} ; {values}"
    return Picture((around.panel(title, cells),), _thread_legend(threads.size()))


def _holders_by_element(threads: Layout, values: Layout, elements: int) -> dict[int, list[tuple[int, int]]]:
    """The (thread, value) pairs that hold each element."""
    pairs = threads.size() * values.size()
    if pairs > MAX_PAIRS:
        raise LayoutError(
            "E813",
            f"{abbreviate(pairs)} pairs of a thread and a value are too many for a picture: at most {MAX_PAIRS}",
            help="show fewer threads or values",
        )
    holders: dict[int, list[tuple[int, int]]] = {}
    starts = [values(value) for value in range(values.size())]
    for thread in range(threads.size()):
        start = threads(thread)
        for value, step in enumerate(starts):
            holders.setdefault(start + step, []).append((thread, value))
    outside = next((element for element in holders if not 0 <= element < elements), None)
    if outside is not None:
        thread, value = holders[outside][0]
        raise misplaced(
            f"value {value} of thread {thread} is element {abbreviate(outside)}, "
            f"outside the tile of {elements} elements",
            "give the tile that the layouts cover",
        )
    return holders


def _holders_cell(holders: list[tuple[int, int]]) -> Cell:
    if not holders:
        return Cell(("", ""), BLANK)
    threads, values = ({pair[part] for pair in holders} for part in (0, 1))
    first = min(threads)
    fill = shade(first, first // len(HUES))
    if len(holders) == len(threads) * len(values):
        return Cell((abbreviate_set("T", threads), abbreviate_set("V", values)), fill)
    (one, two, *more) = [f"T{thread}V{value}" for thread, value in holders]
    return Cell((one, two + (".." if more else "")), fill)


def _thread_legend(threads: int) -> tuple[Key, ...]:
    hues = min(threads, len(HUES))
    text = f"T0 to T{hues - 1}" if hues > 1 else "T0"
    again = f", lighter every {hues}" if threads > hues else ""
    return (Key(f"{text}{again}", HUES[:hues]),)


# -- banks ---------------------------------------------------------------------------------------------------


def banks(
    layout: Layout | ComposedLayout,
    element_bits: int,
    phase: Collection[int] = (),
    *,
    conflict: Collection[int] | None = None,
    count: int = 32,
    width: int = 4,
) -> Picture:
    """The shared-memory bank of each element. Consecutive words of `width` bytes lie in consecutive banks of `count`.

    phase: indices of the elements that one phase accesses; they are outlined, and marked with the number of words that
    the phase accesses in their bank where it exceeds one. conflict: the indices of the phase to mark instead, if
    another model decides. The layout's images count elements of `element_bits`. Raises LayoutError: E813 above
    MAX_CELLS elements or for sizes below 1, E803 for an index outside the layout.
    """
    if min(element_bits, count, width) < 1:
        sizes = f"elements of {element_bits} bits, {count} banks of {width} bytes"
        raise LayoutError("E813", f"{sizes}: expected at least 1 of each", help="give positive sizes")
    words = [_words(image, element_bits, width * 8) for image in images(layout)]
    for index in phase:
        if not 0 <= index < len(words):
            raise misplaced(
                f"index {abbreviate(index)} of the phase is outside {layout}", f"give 0 .. {len(words) - 1}"
            )
    words_by_bank: dict[int, set[int]] = {}
    for index in phase:
        for word in words[index]:
            words_by_bank.setdefault(word % count, set()).add(word)
    degrees = [max(len(words_by_bank.get(word % count, ())) for word in each) for each in words]
    marked = {index for index in phase if (degrees[index] > 1 if conflict is None else index in conflict)}
    borders: list[Border] = [_border(index, phase, marked) for index in range(len(words))]
    labels = [f"×{degree}" if border == "conflict" else "" for degree, border in zip(degrees, borders, strict=True)]
    cells = [
        Cell((_bank(each, count),), _fill(each[0] % count), border, label)
        for each, border, label in zip(words, borders, labels, strict=True)
    ]
    legend = _bank_legend(
        f"bank 0 to {count - 1}, {TINTS} to a hue; elements of {element_bits} bits",
        count,
        [border for border in borders if border],
    )
    return Picture((frame(layout.shape).panel(str(layout), cells),), legend)


def _words(image: int, element_bits: int, word_bits: int) -> range:
    """The memory words that an element occupies."""
    first = image * element_bits
    return range(first // word_bits, (first + element_bits - 1) // word_bits + 1)


def _border(index: int, phase: Collection[int], marked: Collection[int]) -> Border:
    return "conflict" if index in marked else "phase" if index in phase else ""


def _bank(words: range, count: int) -> str:
    first, last = words[0] % count, words[-1] % count
    return str(first) if first == last else f"{first}-{last}"


def _fill(bank: int) -> str:
    return shade(bank // TINTS, bank % TINTS)


def _bank_legend(what: str, count: int, borders: Collection[Border]) -> tuple[Key, ...]:
    fills = tuple(_fill(bank) for bank in range(0, min(count, TINTS * len(HUES)), TINTS))
    keys = [Key(what, fills)]
    if borders:
        keys.append(Key("accessed in this phase", border="phase"))
    if "conflict" in borders:
        keys.append(Key("the phase wants n words of this bank", border="conflict", badge="×n"))
    return tuple(keys)


def side_by_side(pictures: Sequence[Picture], arrow: str) -> Picture:
    """Pictures in a row with arrows between them; equal legend entries are merged."""
    panels = tuple(panel for picture in pictures for panel in picture.panels)
    return Picture(panels, tuple(dict.fromkeys(key for picture in pictures for key in picture.legend)), arrow)
