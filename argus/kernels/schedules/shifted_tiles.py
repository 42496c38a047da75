"""The tiles of convolutions as products of shifted rows: those that leave few columns and multiprocessors idle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from attrs import evolve

from argus.kernels.cost_sm_90a import PROCESSORS
from argus.kernels.schedules.parts import count_parts
from argus.kernels.schedules.shifted import APART, CHUNK, HEIGHT, Shifted
from argus.nests.convolution import Convolution

_ONE_ROW = (256, 192, 128, 96, 64)
"""Outputs of a tile of one row."""
_LESS = 0.8
"""Of the time of tiles of one row, which take any number of rows of an image, that tiles of several take at most."""
_MOST_ROWS = 8
"""Of a tile, each of which is loaded by itself: proofs follow so many writes of a stage."""
_BOX = 40 * 2048.0
"""Multiplications of a multiprocessor while the TMA begins another box: an estimate, not measured."""
STAGES = (227 - 34) << 10
"""Bytes of shared memory for stages: of 227 KiB, boxes for stores take 32, and barriers and alignment at most 2."""


def shifted_for(
    conv: Convolution,
    channels: int,
    outputs: int,
    count: int,
    places: Sequence[int],
    products: int,
    *,
    most_rows: int = _MOST_ROWS,
    most_pixels: int = 256,
) -> Shifted:
    """The configuration for so many channels and outputs' channels of a group, and outputs' places of `count` images.

    products: of parts, or 1. most_rows, most_pixels: of a tile. A tile takes as long as its columns, those that its
    filters are worth, and those of its rows' boxes; multiprocessors without a tile are no gain.
    """
    high = 128 if outputs > HEIGHT else HEIGHT
    bk = next(each for each in (16, 32, 64) if each >= min(channels, 32 if products > 1 else 64))
    windows = [-(-place // axis.classes) for place, axis in zip(places, conv.axes, strict=True)]
    matrices = count * conv.classes * -(-outputs // high)
    box = _BOX * count_parts(products) / (bk * high * products)

    def time(rows: int, across: int) -> float:
        *others, last = windows
        tiles = matrices * prod(others) // rows * -(-last // across)
        return max(1.0, tiles / PROCESSORS) * (rows * across + HEIGHT + rows * box)

    one = min(
        ((1, each) for each in _ONE_ROW if each <= most_pixels and each * high // 128 % 32 == 0),
        key=lambda each: time(*each),
    )
    several = min(
        _shapes(conv, windows, high, products, (most_rows, most_pixels)), key=lambda each: time(*each), default=one
    )
    rows, across = several if time(*several) < _LESS * time(*one) else one
    wide = windows[-1] + conv.axes[-1].reach
    laid = 256 if rows == 1 else next((each for each in (16, 32, 64, 128) if each >= wide), 256)
    run = 8 if channels <= CHUNK else 16
    made = Shifted(high, rows * across, bk, products=products, run=run, rows=rows, laid=laid)
    stage = 2 * made.parts * (high + made.pixels) * bk
    return evolve(made, stages=min(8, STAGES // stage))


def _shapes(
    conv: Convolution, windows: Sequence[int], high: int, products: int, most: tuple[int, int]
) -> Iterator[tuple[int, int]]:
    """Several rows of a tile, which divide those of an image, and its outputs along the last axis.

    most: rows and pixels.
    """
    if len(windows) == 1 or conv.classes > 1:
        return
    for across in (8, 16, 32, 64, 128):
        for rows in range(2, min(most[0], most[1] // across) + 1):
            width = rows * across * high // 128
            once = width // 2 if products > 1 and width > APART else width
            if windows[-2] % rows == 0 and once % across == 0:
                yield rows, across
