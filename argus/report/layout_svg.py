"""Pictures of layouts and the files they are saved to.

The pictures are drawn in `argus.core.layout.pictures`; here are the effects, PNG by resvg with the fonts of this
machine and writing, and the picture of what a target's shared memory does with an access.
"""

from __future__ import annotations

from math import prod, sqrt
from pathlib import Path

from argus.core.layout.composed import ComposedLayout
from argus.core.layout.faults import LayoutError, misplaced
from argus.core.layout.pictures.grid import images
from argus.core.layout.pictures.picture import Picture
from argus.core.layout.pictures.svg import SANS
from argus.core.layout.pictures.views import banks, beside, grid, swizzled, tv
from argus.core.layout.values import Layout
from argus.core.memory.banks import BANK_BYTES, bank_conflicts
from argus.core.memory.lane_accesses import Access, executions
from argus.core.phases import PHASES
from argus.core.target import Target
from argus.report.atomic_write import write_whole

try:
    from resvg_py import svg_to_bytes
except ImportError:  # Nothing but PNG needs it, and there are machines without a wheel of it.
    svg_to_bytes = None

__all__ = [
    "ENDINGS",
    "MOST_PIXELS",
    "Picture",
    "banks",
    "beside",
    "check_ending",
    "conflicts",
    "grid",
    "png",
    "save",
    "swizzled",
    "tv",
]

MOST_PIXELS = 1 << 26
ENDINGS = (".svg", ".png", ".txt")
_PROBE = '<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16">{}</svg>'


def conflicts(layout: Layout | ComposedLayout, access: Access, *, target: Target, element_bits: int) -> Picture:
    """The banks of a buffer, with the phase of an access that has the worst conflict.

    layout: coordinates of the buffer -> elements from its start, which are what the access names. The elements that
    the phase moves are outlined, and marked where their bank holds more than one word of them.
    Raises LayoutError: E803 if the phase moves what the layout does not reach, else as `bank_conflicts` and `banks` do.
    """
    worst = bank_conflicts(access, target=target, element_bits=element_bits)
    wave, vector = worst.execution
    firsts = executions(access, target)[wave, vector]
    phases = PHASES[target.name, access.direction, access.vector * element_bits]
    served = next(lanes for lanes in phases if worst.lanes[0] in lanes)
    moved = {int(firsts[lane]) + step for lane in served for step in range(access.vector)}
    elements = images(layout)
    absent = moved.difference(elements)
    if absent:
        raise misplaced(
            f"the worst phase moves element {min(absent)}, which {layout} does not reach",
            "give the layout of the whole buffer",
        )
    phase = [index for index, element in enumerate(elements) if element in moved]
    return banks(layout, element_bits, phase, count=target.banks, width=BANK_BYTES)


def save(picture: Picture, path: Path | str) -> None:
    """Write the file that the path's ending asks for, in one step.

    Raises ArgusError: E813 for another ending and where PNG cannot be drawn, E302 if the file cannot be written.
    """
    ending = check_ending(path)
    write_whole(Path(path), _drawn(picture, ending))


def _drawn(picture: Picture, ending: str) -> bytes:
    match ending:
        case ".png":
            return png(picture)
        case ".svg":
            return picture.svg().encode()
        case _:
            return picture.txt().encode()


def check_ending(path: Path | str) -> str:
    """`.svg`, `.png` or `.txt`. Raises LayoutError (E813) for another."""
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise LayoutError(
            "E813",
            f"cannot draw `{path}`: its ending is `{ending}`, expected one of {', '.join(ENDINGS)}",
            help="name a file such as layout.svg",
        )
    return ending


def png(picture: Picture, scale: float = 2.0) -> bytes:
    """The picture as PNG, `scale` pixels to one of the SVG; fewer where it would have more than MOST_PIXELS.

    Raises LayoutError (E813) without resvg-py, without a font on this machine, or for a scale that is not above 0.
    """
    if svg_to_bytes is None:
        raise LayoutError("E813", "PNG needs the package `resvg-py`", help="pip install resvg-py, or draw SVG")
    # Where no font is found, resvg leaves every text out and says nothing.
    letter = f'<text y="12" font-family="{SANS}">8</text>'
    if svg_to_bytes(_PROBE.format(letter)) == svg_to_bytes(_PROBE.format("")):
        raise LayoutError(
            "E813",
            "no font for the texts of a PNG is installed on this machine",
            help="install one, such as DejaVu Sans (Debian: fonts-dejavu-core), or draw SVG",
        )
    if not scale > 0:
        raise LayoutError("E813", f"a PNG at the scale {scale}: expected a number above 0", help="leave it out for 2")
    # Out of memory, resvg ends the process.
    return svg_to_bytes(picture.svg(), zoom=min(scale, sqrt(MOST_PIXELS / prod(picture.extent()))))
