"""`argus layout`: draws layouts as text, SVG or PNG."""

from __future__ import annotations

import re

import click

from argus.cli.screen import Screen
from argus.core.layout import ComposedLayout, Layout, LayoutLike, Swizzle
from argus.core.layout.notation import parse, parse_layout, parse_pair
from argus.core.layout.pictures.grid import images
from argus.core.layout.pictures.picture import Picture
from argus.core.layout.pictures.views import banks, grid, side_by_side, swizzled, tv
from argus.report.command_result import Outcome
from argus.report.layout_svg import check_ending, save


def _swizzle(_context: click.Context, _parameter: click.Parameter, text: str | None) -> Swizzle | None:
    """Parse `3,4,3` or `Sw<3,4,3>`."""
    if text is None:
        return None
    found = parse(f"Sw<{text}>" if re.fullmatch(r"[-0-9, ]+", text) else text)
    if isinstance(found, Swizzle):
        return found
    raise click.BadParameter(f"expected three numbers such as 3,4,3, found {text}")


def _tile(_context: click.Context, _parameter: click.Parameter, text: str | None) -> tuple[int, ...] | None:
    """Parse extents such as `16x8`."""
    if text is None:
        return None
    if not re.fullmatch(r"[1-9][0-9]{0,8}(x[1-9][0-9]{0,8}){0,7}", text):
        raise click.BadParameter(f"expected extents such as 16x8, found {text[:40]}")
    return tuple(map(int, text.split("x")))


@click.group(no_args_is_help=False)
def layout() -> None:
    """Draw layouts in CuTe's notation, such as "((4,8),2):((8,1),4)"."""


@layout.command()
@click.argument("text", metavar="LAYOUT")
@click.option("-o", "--output", metavar="FILE", help="Write FILE, ending in .svg, .png or .txt, instead of printing.")
@click.option("--swizzle", callback=_swizzle, metavar="B,M,S", help="Draw LAYOUT before and after this swizzle.")
@click.option("--banks", "in_banks", is_flag=True, help="Draw each element's shared-memory bank.")
@click.option(
    "--element-bits",
    type=click.IntRange(1, 4096),
    default=16,
    show_default=True,
    help="Size of an element, for --banks.",
)
@click.option("--phase", metavar="LAYOUT", help="With --banks: indices of one access phase, to mark conflicts.")
@click.option("--tile", callback=_tile, metavar="MxN", help='Tile of a thread-value layout "THREADS ; VALUES".')
def show(
    text: str,
    output: str | None,
    swizzle: Swizzle | None,
    in_banks: bool,
    element_bits: int,
    phase: str | None,
    tile: tuple[int, ...] | None,
) -> Outcome:
    """Draw LAYOUT as a grid of indices.

    LAYOUT may be composed, "Sw<3,4,3> o 0 o (8,8):(8,1)", a swizzle, or, with --tile, a thread-value layout
    "THREADS ; VALUES".
    """
    if output is not None:
        check_ending(output)
    if phase is not None and not in_banks:
        raise click.UsageError("--phase needs --banks")
    if (";" in text) != (tile is not None):
        raise click.UsageError("--tile is for a thread-value layout `THREADS ; VALUES`, which needs it")
    if tile is not None:
        if swizzle is not None or in_banks:
            raise click.UsageError("a thread-value layout is drawn without --swizzle and --banks")
        picture = tv(*parse_pair(text), tile)
    else:
        picture = _picture(parse(text), swizzle, element_bits if in_banks else None, phase)
    if output is None:
        Screen().lines(picture.txt().splitlines())
    else:
        save(picture, output)
        Screen().lines([f"wrote {output}"])
    return Outcome(0, {})


def _picture(given: LayoutLike, swizzle: Swizzle | None, element_bits: int | None, phase: str | None) -> Picture:
    if isinstance(given, Swizzle):
        if swizzle is not None or element_bits is not None:
            raise click.UsageError("--swizzle and --banks need a layout, not a swizzle alone")
        return grid(given)
    if element_bits is None:
        return grid(given) if swizzle is None else swizzled(given, swizzle)
    at_once = () if phase is None else images(parse_layout(phase))
    shown: list[Layout | ComposedLayout] = [given]
    if swizzle is not None:
        shown.append(ComposedLayout(swizzle, 0, given))
    return side_by_side([banks(each, element_bits, at_once) for each in shown], "" if swizzle is None else str(swizzle))
