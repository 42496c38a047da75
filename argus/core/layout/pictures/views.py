"""The pictures of layouts: indices, threads and values, banks of shared memory, a swizzle before and after."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from argus.core.layout.composed import ComposedLayout, LayoutLike
from argus.core.layout.faults import LayoutError, misplaced
from argus.core.layout.inttuple import IntTuple, product
from argus.core.layout.pictures.colours import BLANK, HUES, TINTS, shade
from argus.core.layout.pictures.grid import MOST_CELLS, brief, frame, images, index_grid, some
from argus.core.layout.pictures.panel import Border, Cell, Key, Panel
from argus.core.layout.pictures.picture import Picture
from argus.core.layout.swizzle import Swizzle
from argus.core.layout.values import Layout

MOST_HOLDINGS = 1 << 18
"""Pairs of a thread and a value of the largest thread-value layout that is drawn."""


def grid(layout: LayoutLike) -> Picture:
    """Each coordinate's image, darker as it grows. A swizzle is drawn before and after, in units of its base.

    Raises LayoutError (E813) above MOST_CELLS elements.
    """
    return _units(layout) if isinstance(layout, Swizzle) else index_grid(layout)


def _units(swizzle: Swizzle) -> Picture:
    """The rows are the bits that are read, the columns those that change."""
    bits, shift = swizzle.bits, abs(swizzle.shift)
    if bits + shift >= MOST_CELLS.bit_length():
        frame(1 << (bits + shift))
    tile = Layout((1 << bits, 1 << shift), (1 << shift, 1))
    unit = f"{swizzle}, in units of {brief(1 << swizzle.base)}" if swizzle.base else str(swizzle)
    before, after = swizzled(tile, Swizzle(bits, 0, swizzle.shift)).panels
    return Picture((before, after), (Key(unit),), str(swizzle))


def swizzled(layout: Layout | ComposedLayout, swizzle: Swizzle) -> Picture:
    """A layout without and with a swizzle of its images, coloured by the bits that the swizzle changes.

    Raises LayoutError (E813) above MOST_CELLS elements.
    """
    first = swizzle.base + max(0, -swizzle.shift)
    colours = [shade(group, group // len(HUES)) for group in range(1 << min(swizzle.bits, 5))]
    after = ComposedLayout(swizzle, 0, layout)
    panels: list[Panel] = []
    for each in (layout, after):
        cells = [Cell((brief(value),), colours[(value >> first) % len(colours)]) for value in images(each)]
        panels.append(frame(each.shape).panel(str(each), cells))
    last = first + swizzle.bits - 1
    bits = f"bit {first}" if last == first else f"bits {first} to {last}"
    legend = (Key(f"{bits} of the image: 0 to {len(colours) - 1}", tuple(colours)),) if swizzle.bits else ()
    return Picture(tuple(panels), legend, str(swizzle))


# -- threads and values --------------------------------------------------------------------------------------


def tv(threads: Layout, values: Layout, tile: tuple[int, ...]) -> Picture:
    """Which thread holds each element of a tile, in which of its values: `T3` above `V1`, coloured by thread.

    The layouts give numbers of elements, first axis of the tile fastest; the axes are drawn as the modes of a
    layout are. An element of more holders names the first two of each and `..`, one without a holder is blank.
    Raises LayoutError: E813 for a tile or layouts too large for a picture, E803 for an element outside the tile.
    """
    shape: IntTuple = tile if len(tile) != 1 else tile[0]
    around = frame(shape)
    elements = product(shape)
    held = _held(threads, values, elements)
    cells = [_holders(held.get(element, [])) for element in range(elements)]
    title = f"{threads} ; {values}"
    return Picture((around.panel(title, cells),), _thread_legend(threads.size()))


def _held(threads: Layout, values: Layout, elements: int) -> dict[int, list[tuple[int, int]]]:
    """For each element the (thread, value) pairs that hold it."""
    pairs = threads.size() * values.size()
    if pairs > MOST_HOLDINGS:
        raise LayoutError(
            "E813",
            f"{brief(pairs)} pairs of a thread and a value are too many for a picture: at most {MOST_HOLDINGS}",
            help="show fewer threads or values",
        )
    held: dict[int, list[tuple[int, int]]] = {}
    starts = [values(value) for value in range(values.size())]
    for thread in range(threads.size()):
        start = threads(thread)
        for value, step in enumerate(starts):
            held.setdefault(start + step, []).append((thread, value))
    outside = next((element for element in held if not 0 <= element < elements), None)
    if outside is not None:
        thread, value = held[outside][0]
        raise misplaced(
            f"value {value} of thread {thread} is element {brief(outside)}, outside the tile of {elements} elements",
            "give the tile that the layouts cover",
        )
    return held


def _holders(held: list[tuple[int, int]]) -> Cell:
    if not held:
        return Cell(("", ""), BLANK)
    threads, values = ({pair[part] for pair in held} for part in (0, 1))
    first = min(threads)
    fill = shade(first, first // len(HUES))
    if len(held) == len(threads) * len(values):
        return Cell((some("T", threads), some("V", values)), fill)
    (one, two, *more) = [f"T{thread}V{value}" for thread, value in held]
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
    """The bank of shared memory that each element lies in: `width` bytes of each of `count` banks in turn.

    phase: indices of the elements that are accessed at once; they are outlined, and marked with the number of
    words where their bank holds more than one word of them. conflict: those of the phase to mark, where another model
    says which. The layout's images count elements of `element_bits`.
    Raises LayoutError: E813 above MOST_CELLS elements or for sizes below 1, E803 for an index outside the layout.
    """
    if min(element_bits, count, width) < 1:
        sizes = f"elements of {element_bits} bits, {count} banks of {width} bytes"
        raise LayoutError("E813", f"{sizes}: expected at least 1 of each", help="give positive sizes")
    words = [_words(image, element_bits, width * 8) for image in images(layout)]
    for index in phase:
        if not 0 <= index < len(words):
            raise misplaced(f"index {brief(index)} of the phase is outside {layout}", f"give 0 .. {len(words) - 1}")
    meeting: dict[int, set[int]] = {}
    for index in phase:
        for word in words[index]:
            meeting.setdefault(word % count, set()).add(word)
    degrees = [max(len(meeting.get(word % count, ())) for word in each) for each in words]
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
    """The words of memory that an element lies in."""
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


def beside(pictures: Sequence[Picture], arrow: str) -> Picture:
    """Pictures in a row with an arrow between, and every legend once."""
    panels = tuple(panel for picture in pictures for panel in picture.panels)
    return Picture(panels, tuple(dict.fromkeys(key for picture in pictures for key in picture.legend)), arrow)
