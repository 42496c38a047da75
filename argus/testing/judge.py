"""Judges a layout library's result by explicit tables: correct, wrong, rightly or needlessly refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from argus.core.layout import IntTuple
from argus.core.layout.inttuple import compatible
from argus.testing.draws import Draw, Operation
from argus.testing.laws.inverting import longest
from argus.testing.laws.tabulated import (
    IntArray,
    Modes,
    composable,
    count,
    expected_complement,
    flat,
    images_of,
    layout_exists_through,
    product_complement,
    table,
    tile_and_complement,
)
from argus.testing.peers import Found, Outcome, Refused

Verdict = Literal["correct", "wrong", "resized", "empty", "reshaped", "rightly", "needless", "undecided"]
"""wrong: values differ. resized: the size differs. empty: an extent is 0. reshaped: the values are right, but the shape
does not refine the required one. rightly: refused, and no admissible result exists. needless: refused, but one exists.
undecided: refused, and the search for a result reached its limit."""


def judge(operation: Operation, draw: Draw, outcome: Outcome) -> Verdict:
    """The verdict on one outcome, from tables of the draw alone."""
    if isinstance(outcome, Refused):
        exists = _EXISTS[operation](draw)
        return "undecided" if exists is None else "needless" if exists else "rightly"
    modes = flat(outcome.shape, outcome.stride)
    if any(extent < 1 for extent, _ in modes):
        return "empty"
    return _CHECKS[operation](draw, outcome, modes)


def _compared(wanted: IntArray | None, modes: Modes) -> Verdict:
    if wanted is None:
        return "wrong"
    if len(wanted) != count(modes):
        return "resized"
    return "correct" if np.array_equal(wanted, table(modes)) else "wrong"


def _refined(verdict: Verdict, coarse: IntTuple, found: Found) -> Verdict:
    return "reshaped" if verdict == "correct" and not compatible(coarse, found.shape) else verdict


# -- results -------------------------------------------------------------------------------------------------


def _composition(draw: Draw, found: Found, modes: Modes) -> Verdict:
    return _refined(_compared(images_of(flat(*draw.a), table(flat(*draw.b))), modes), draw.b[0], found)


def _complement(draw: Draw, _: Found, modes: Modes) -> Verdict:
    wanted = expected_complement(table(flat(*draw.a)), draw.cotarget)
    return _compared(None if wanted is None else table(wanted), modes)


def _left_inverse(draw: Draw, _: Found, modes: Modes) -> Verdict:
    images = table(flat(*draw.a))
    return "correct" if np.array_equal(images_of(modes, images), np.arange(len(images))) else "wrong"


def _right_inverse(draw: Draw, _: Found, modes: Modes) -> Verdict:
    a, images = flat(*draw.a), table(modes)
    inside = bool(((images >= 0) & (images < count(a))).all())
    if not inside or not np.array_equal(images_of(a, images), np.arange(len(images))):
        return "wrong"
    return "correct" if len(images) >= longest(a) else "resized"


def _logical_divide(draw: Draw, found: Found, modes: Modes) -> Verdict:
    a, tile = flat(*draw.a), flat(*draw.b)
    pair = tile_and_complement(a, tile)
    verdict = _compared(None if pair is None else images_of(a, table(pair)), modes)
    return _refined(verdict, (draw.b[0], count(modes) // count(tile)), found)


def _logical_product(draw: Draw, found: Found, modes: Modes) -> Verdict:
    block, tiler = flat(*draw.a), flat(*draw.b)
    rest = product_complement(block, tiler)
    if rest is None:
        return "wrong"
    starts = images_of(rest, table(tiler))
    verdict = _compared((starts[:, None] + table(block)).ravel(), modes)
    return _refined(verdict, (draw.a[0], draw.b[0]), found)


_CHECKS: dict[Operation, Callable[[Draw, Found, Modes], Verdict]] = {
    "composition": _composition,
    "complement": _complement,
    "left_inverse": _left_inverse,
    "right_inverse": _right_inverse,
    "logical_divide": _logical_divide,
    "logical_product": _logical_product,
}


# -- refusals ------------------------------------------------------------------------------------------------


def _composes(draw: Draw) -> bool:
    return composable(flat(*draw.a), flat(*draw.b))


def _completes(draw: Draw) -> bool:
    return expected_complement(table(flat(*draw.a)), draw.cotarget) is not None


def _inverts(draw: Draw) -> bool | None:
    images = table(flat(*draw.a)).tolist()
    points: dict[int, int] = dict(zip(images, range(len(images)), strict=True))
    return len(points) == len(images) and layout_exists_through(points)


def _divides(draw: Draw) -> bool:
    a = flat(*draw.a)
    pair = tile_and_complement(a, flat(*draw.b))
    return pair is not None and composable(a, pair)


def _repeats(draw: Draw) -> bool:
    tiler = flat(*draw.b)
    rest = product_complement(flat(*draw.a), tiler)
    return rest is not None and composable(rest, tiler)


_EXISTS: dict[Operation, Callable[[Draw], bool | None]] = {
    "composition": _composes,
    "complement": _completes,
    "left_inverse": _inverts,
    "right_inverse": lambda _: True,
    "logical_divide": _divides,
    "logical_product": _repeats,
}
