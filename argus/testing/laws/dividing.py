"""Laws of complement, divide and product."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from argus.core.layout.compose import Tiler
from argus.core.layout.faults import LayoutError
from argus.core.layout.inttuple import IntTuple
from argus.core.layout.values import Layout
from argus.testing.laws.implementation import Implementation
from argus.testing.laws.law import (
    Breach,
    Law,
    failed_condition,
    mismatch,
    modes,
    needless_refusal,
    shape_mismatch,
    table_mismatch,
    unfounded_result,
)
from argus.testing.laws.tabulated import (
    composable,
    count,
    expected_complement,
    images_of,
    product_complement,
    table,
    tile_and_complement,
)

_PAPER = "Cecka 2026, CuTe layout representation and algebra, section "
_Split = Callable[[Layout, Tiler], Layout]
_Parts = tuple[list[IntTuple], list[IntTuple]]


def _complement(on: Implementation, a: Layout, cotarget: int) -> Breach | None:
    wanted = expected_complement(table(modes(a)), cotarget)
    try:
        found = on.complement(a, cotarget)
    except LayoutError as error:
        return None if wanted is None else needless_refusal((a, cotarget), error)
    if wanted is None:
        return unfounded_result((a, cotarget), found)
    images = table(modes(found))
    sums = np.sort((np.unique(table(modes(a)))[:, None] + images).ravel())
    distinct = mismatch((a, cotarget), len(sums), len(np.unique(sums)))
    start = sums[:cotarget]
    covered = table_mismatch((a, cotarget), np.arange(cotarget, dtype=np.int64), start)
    return distinct or covered or table_mismatch((a, cotarget), table(wanted), images)


def _cute_complement(on: Implementation, a: Layout, cotarget: int) -> Breach | None:
    moving = sorted((stride, extent) for extent, stride in modes(a) if extent > 1 and stride)
    ends = [1, *[stride * extent for stride, extent in moving]]
    exists = all(stride >= end for (stride, _), end in zip(moving, ends, strict=False))
    try:
        found = on.cute_complement(a, cotarget)
    except LayoutError as error:
        return needless_refusal((a, cotarget), error) if exists else None
    if not exists:
        return None  # CuTe asserts only where the result would be empty.
    images = table(modes(found))
    sums = (np.unique(table(modes(a)))[:, None] + images).ravel()
    return (
        failed_condition((a, cotarget), np.diff(images) > 0, "ascending images")
        or mismatch((a, cotarget), len(sums), len(np.unique(sums)))
        or failed_condition((a, cotarget), np.array([len(images) * ends[-1] >= cotarget]), "enough copies")
    )


def _divide(on: Implementation, a: Layout, tile: Layout) -> Breach | None:
    pair = tile_and_complement(modes(a), modes(tile))
    exists = pair is not None and composable(modes(a), pair)
    try:
        found = on.logical_divide(a, tile)
    except LayoutError as error:
        return needless_refusal((a, tile), error) if exists else None
    if pair is None or not exists:
        return unfounded_result((a, tile), found)
    coarse = (tile.shape, count(pair) // tile.size())
    return shape_mismatch((a, tile), coarse, found) or table_mismatch(
        (a, tile), images_of(modes(a), table(pair)), table(modes(found))
    )


def _product(on: Implementation, block: Layout, tiler: Layout) -> Breach | None:
    rest = product_complement(modes(block), modes(tiler))
    exists = rest is not None and composable(rest, modes(tiler))
    try:
        found = on.logical_product(block, tiler)
    except LayoutError as error:
        return needless_refusal((block, tiler), error) if exists else None
    if rest is None or not exists:
        return unfounded_result((block, tiler), found)
    starts = images_of(rest, table(modes(tiler)))
    wrong = mismatch((block, tiler), block, found[0]) or table_mismatch((block, tiler), starts, table(modes(found[1])))
    if wrong is not None:
        return wrong
    cells = (np.unique(starts)[:, None] + np.unique(table(modes(block)))).ravel()
    apart = len(np.unique(cells))
    distinct = len(set(table(modes(tiler)).tolist()))
    return mismatch((block, tiler), distinct * len(np.unique(table(modes(block)))), apart)


# -- regroupings ---------------------------------------------------------------------------------------------


def _gathered(split: _Split, layout: Layout, tiler: Tiler) -> tuple[list[Layout], list[Layout]]:
    """Apply a splitter to each mode that the tiler names; returns first parts and second parts, nested as the tiler."""
    parts = tiler if isinstance(tiler, tuple) else (tiler,)
    given = list(layout) if isinstance(tiler, tuple) else [layout]
    firsts: list[Layout] = []
    rests: list[Layout] = []
    for mode, part in zip(given, parts, strict=False):
        first, rest = _pair(split, mode, part)
        firsts.append(first)
        rests.append(rest)
    return firsts, rests + given[len(parts) :]


def _pair(split: _Split, mode: Layout, part: Tiler) -> tuple[Layout, Layout]:
    if part is None:
        return Layout(1, 0), mode
    if isinstance(part, tuple):
        firsts, rests = _gathered(split, mode, part)
        return _joined(firsts), _joined(rests)
    first, rest = split(mode, part)
    return first, rest


def _joined(parts: list[Layout]) -> Layout:
    return Layout(tuple(part.shape for part in parts), tuple(part.stride for part in parts))


def _regrouping(kind: str) -> Callable[[Implementation, Layout, Tiler], Breach | None]:
    def breach(on: Implementation, layout: Layout, tiler: Tiler) -> Breach | None:
        operands = (layout, tiler)
        split, zipped, tiled, flat = (on[f"{form}_{kind}"] for form in ("logical", "zipped", "tiled", "flat"))
        try:
            firsts, rests = _gathered(split, layout, tiler)
        except LayoutError as refusal:
            try:
                return unfounded_result(operands, zipped(layout, tiler))
            except LayoutError as error:
                return mismatch(operands, refusal.code, error.code)
        first, rest = (_joined(firsts), _joined(rests)) if isinstance(tiler, tuple) else (firsts[0], rests[0])
        return (
            mismatch(operands, _joined([first, rest]), zipped(layout, tiler))
            or mismatch(operands, _joined([first, *rest]), tiled(layout, tiler))
            or mismatch(operands, _joined([*first, *rest]), flat(layout, tiler))
        )

    return breach


def _interleaved(on: Implementation, block: Layout, tiler: Layout) -> Breach | None:
    rank = max(len(block), len(tiler))
    padded = [_joined([*each, *[Layout(1, 0)] * (rank - len(each))]) for each in (block, tiler)]
    try:
        parts, copies = on.logical_product(*padded)
    except LayoutError:
        return None  # The law of logical_product checks whether it exists.
    pairs = list(zip(parts, copies, strict=True))
    return mismatch(
        (block, tiler), _joined([_joined([a, b]) for a, b in pairs]), on.blocked_product(block, tiler)
    ) or mismatch((block, tiler), _joined([_joined([b, a]) for a, b in pairs]), on.raked_product(block, tiler))


LAWS = (
    Law(
        "complement",
        "R = complement(A, m): sums of images of A and R are distinct, cover [0, m), and are [0, n) if they can be; "
        "refused iff there is no such R",
        _PAPER + "3.4",
        ("layout", "cotarget"),
        _complement,
        ("complement",),
    ),
    Law(
        "complement by the law of CuTe",
        "R = complement(A, m): R ascends, sums of images of A and R are distinct, size(R) times the length of A is at "
        "least m; refused only if a stride is below the end of the modes with smaller strides",
        "CUTLASS 4, media/docs/cpp/cute/02_layout_algebra.md, Complement",
        ("layout", "cotarget"),
        _cute_complement,
        ("cute_complement",),
    ),
    Law(
        "divide is composition with a tile and its complement",
        "logical_divide(A, T)(t, r) = A(T(t) + complement(T, size(A))(r))",
        _PAPER + "3.6",
        ("layout", "inner"),
        _divide,
        ("logical_divide",),
    ),
    Law(
        "product repeats a block without overlap",
        "P = logical_product(A, T): P[0] = A, P[1](j) = complement(A, size(A) cosize(T))(T(j)), or 0 if size(T) = 1, "
        "and image(A) + P[1](j) is disjoint for distinct T(j)",
        _PAPER + "3.7",
        ("layout", "layout"),
        _product,
        ("logical_product",),
    ),
    Law(
        "divides are regroupings",
        "zipped = ((tiles), (rests)), tiled = ((tiles), rests...), flat = (tiles..., rests...) of logical_divide",
        _PAPER + "3.6",
        ("layout", "tiler"),
        _regrouping("divide"),
        ("logical_divide", "zipped_divide", "tiled_divide", "flat_divide"),
    ),
    Law(
        "products are regroupings",
        "zipped = ((blocks), (copies)), tiled = ((blocks), copies...), flat = (blocks..., copies...) of "
        "logical_product",
        _PAPER + "3.7",
        ("layout", "tiler"),
        _regrouping("product"),
        ("logical_product", "zipped_product", "tiled_product", "flat_product"),
    ),
    Law(
        "blocked and raked products have the image of the product",
        "blocked[k] = (P[0][k], P[1][k]) and raked[k] = (P[1][k], P[0][k]) for P = logical_product",
        _PAPER + "3.7",
        ("layout", "layout"),
        _interleaved,
        ("logical_product", "blocked_product", "raked_product"),
    ),
)
