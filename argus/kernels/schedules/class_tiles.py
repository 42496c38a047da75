"""The tiles of transposed convolutions with steps whose outputs of all classes are in one tile."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from argus.kernels.schedules.parts import PAIRS
from argus.kernels.schedules.shifted import CHUNK, HEIGHT
from argus.kernels.schedules.shifted_classes import WIDTH, WINDOWS, Classes, inner_axes
from argus.kernels.schedules.shifted_tiles import STAGES
from argus.nests.convolution import Convolution

TILES = (1631.0, 265.0, 404.0)
"""Milliseconds of an H200: of 10^15 operations, 10^9 boxes of inputs, and 10^12 bytes that whole tiles would store.

By least squares of relative errors over 37 variants of 14 convolutions (`benchmarks/conv_h200.py fit`): 0.7 to 1.25.
"""
_SEVERAL = 2
"""Classes of a place of the window, on average, from which on room for the products of two took up to 15 % less time;
with fewer it took up to 17 % more.
"""
_MOST_TAPS = 64
"""Of a filter: sums of 125 are not proved."""
_MOST_CLASSES = 4
"""Of a tile, for whose sums a thread has registers."""
_STEPS = ((32, 2), (32, 1), (16, 2), (16, 1))
"""Channels of a stage, and stages, in the order in which they are preferred."""


def classes_for(conv: Convolution, inputs: Sequence[int], outputs: Sequence[int], products: int) -> Classes | None:
    """The configuration for inputs (n, c, *extents) and outputs (n, o, *places); None where there is none.

    The last two axes together have two to four classes, and a part that is stored has whole windows.
    products: of parts.
    """
    _, inner = inner_axes(conv)
    both = inner.down.classes * inner.across.classes
    if not _is_proved(conv) or not 1 < both <= _MOST_CLASSES or WIDTH % inner.across.classes:
        return None
    laid = CHUNK * -(-inputs[1] // CHUNK)
    heights = (1,) if len(conv.axes) == 1 else (1, 2, 4, 8)
    fitting = (_that_fits(conv, laid, rows, products) for rows in heights)
    known = [cfg for cfg in fitting if cfg is not None]

    def time(cfg: Classes) -> float:
        return sum(a * cost for a, cost in zip(work_of(conv, cfg, laid, outputs), TILES, strict=True))

    return min(known, key=time, default=None)


def _is_proved(conv: Convolution) -> bool:
    """Whether it is transposed, and the sums are proved: of one group, with few taps, and without gaps."""
    gaps = any(axis.classes > 1 and axis.dilation > 1 for axis in conv.axes)
    return conv.transposed and conv.groups == 1 and not gaps and prod(axis.taps for axis in conv.axes) <= _MOST_TAPS


def _that_fits(conv: Convolution, laid: int, rows: int, products: int) -> Classes | None:
    run, (_, inner) = 8 if laid <= CHUNK else 16, inner_axes(conv)
    sums = 2 if sum(map(len, inner.taps.values())) >= _SEVERAL * len(inner.taps) else 1
    for bk, stages in _STEPS:
        cfg = Classes(rows, bk, stages, products, run, sums=sums)
        if (bk < 2 * laid or bk == _STEPS[-1][0]) and _bytes(conv, cfg) <= STAGES:
            return cfg
    return None


def _bytes(conv: Convolution, cfg: Classes) -> int:
    """Of the stages of all places of the window."""
    _, inner = inner_axes(conv)
    elements = sum(2 * WINDOWS + HEIGHT * len(classes) for classes in inner.taps.values())
    return 2 * cfg.stages * cfg.parts * cfg.bk * elements


def work_of(conv: Convolution, cfg: Classes, laid: int, outputs: Sequence[int]) -> tuple[float, float, float]:
    """What all tiles do, as in `TILES`. laid: channels of inputs. outputs: (n, o, *places)."""
    around, inner = inner_axes(conv)
    n, o, *places = outputs
    down, across = [1, *(-(-y // axis.classes) for y, axis in zip(places, conv.axes, strict=True))][-2:]
    tiles = n * prod(places[:-2]) * -(-o // HEIGHT) * -(-down // cfg.rows) * -(-across // cfg.across)
    steps = -(-laid // cfg.bk) * prod(axis.window for axis in around)
    pairs = sum(map(len, inner.taps.values()))
    operations = 2 * len(PAIRS[cfg.products]) * tiles * 2 * WINDOWS * HEIGHT * pairs * steps * cfg.bk
    boxes = tiles * steps * len(inner.taps) * cfg.rows * cfg.parts
    stored = 4 * tiles * HEIGHT * 2 * WINDOWS * inner.down.classes * inner.across.classes
    return 1e-15 * operations, 1e-9 * boxes, 1e-12 * stored
