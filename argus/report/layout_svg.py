"""Save pictures of layouts as SVG, PNG or text, and draw bank conflicts of an access.

`argus.core.layout.pictures` draws the pictures. This module has the effects: PNG by resvg with the fonts of this
machine, and writing files.
"""

from __future__ import annotations

from math import prod, sqrt
from pathlib import Path

from argus.core.layout.composed import ComposedLayout
from argus.core.layout.faults import LayoutError, misplaced
from argus.core.layout.pictures.grid import images
from argus.core.layout.pictures.picture import Picture
from argus.core.layout.pictures.svg import SANS
from argus.core.layout.pictures.views import banks, grid, side_by_side, swizzled, tv
from argus.core.layout.values import Layout
from argus.core.memory.banks import BANK_BYTES, bank_conflicts
from argus.core.memory.lane_accesses import Access, executions
from argus.core.phases import PHASES
from argus.core.target import Target
from argus.report.atomic_write import write_whole

try:
    from resvg_py import svg_to_bytes
except ImportError:  # Only PNG needs it, and some platforms have no wheel.
    svg_to_bytes = None

__all__ = [
    "ENDINGS",
    "MOST_PIXELS",
    "Picture",
    "banks",
    "check_ending",
    "conflicts",
    "grid",
    "png",
    "save",
    "side_by_side",
    "swizzled",
    "tv",
]

MOST_PIXELS = 1 << 26
ENDINGS = (".svg", ".png", ".txt")
_PROBE = '<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16">{}</svg>'


def conflicts(layout: Layout | ComposedLayout, access: Access, *, target: Target, element_bits: int) -> Picture:
    """The banks of a buffer during the phase of an access with the worst conflict.

    layout: buffer coordinates -> element offsets, in which the access is given. The phase's elements are outlined, and
    marked if their bank must serve more than one word.
    Raises LayoutError: E803 if the layout does not reach an element of the phase, else as `bank_conflicts` and `banks`.
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
            f"the worst phase accesses element {min(absent)}, which is not in the image of {layout}",
            "pass the layout of the whole buffer",
        )
    phase = [index for index, element in enumerate(elements) if element in moved]
    return banks(layout, element_bits, phase, count=target.banks, width=BANK_BYTES)


def save(picture: Picture, path: Path | str) -> None:
    """Write the picture atomically, in the format of the path's suffix.

    Raises ArgusError: E813 for another suffix or if PNG cannot be drawn, E302 if the file cannot be written.
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
    """The suffix: `.svg`, `.png` or `.txt`. Raises LayoutError (E813) for another."""
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise LayoutError(
            "E813",
            f"cannot draw `{path}`: its ending is `{ending}`, expected one of {', '.join(ENDINGS)}",
            help="name a file such as layout.svg",
        )
    return ending


def png(picture: Picture, scale: float = 2.0) -> bytes:
    """The picture as PNG, `scale` pixels to one SVG unit, less if it would exceed MOST_PIXELS.

    Raises LayoutError (E813) without resvg-py, without a font on this machine, or for a scale that is not positive.
    """
    if svg_to_bytes is None:
        raise LayoutError("E813", "PNG needs the package `resvg-py`", help="pip install resvg-py, or draw SVG")
    # Without a font, resvg drops every text silently.
    letter = f'<text y="12" font-family="{SANS}">8</text>'
    if svg_to_bytes(_PROBE.format(letter)) == svg_to_bytes(_PROBE.format("")):
        raise LayoutError(
            "E813",
            "PNG needs a font, and none is installed on this machine",
            help="install one, such as DejaVu Sans (Debian: fonts-dejavu-core), or draw SVG",
        )
    if not scale > 0:
        raise LayoutError("E813", f"a PNG at the scale {scale}: expected a positive number", help="the default is 2")
    # resvg aborts the process when it runs out of memory, so the number of pixels is limited.
    return svg_to_bytes(picture.svg(), zoom=min(scale, sqrt(MOST_PIXELS / prod(picture.extent()))))
