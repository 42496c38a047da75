"""Laws of composition, alone and by mode."""

from __future__ import annotations

from argus.core.layout.compose import Tiler
from argus.core.layout.composed import LayoutLike
from argus.core.layout.faults import LayoutError
from argus.core.layout.swizzle import Swizzle
from argus.core.layout.values import Layout
from argus.testing.laws.implementation import Implementation
from argus.testing.laws.law import (
    Breach,
    Law,
    mismatch,
    modes,
    needless_refusal,
    shape_mismatch,
    table_mismatch,
    unfounded_result,
)
from argus.testing.laws.tabulated import composable, images_of, layout_exists_through, table

_CECKA = "Cecka 2026, CuTe layout representation and algebra, section 3.3"


def _composed(on: Implementation, a: Layout, b: Layout) -> Breach | None:
    wanted = images_of(modes(a), table(modes(b)))
    exists = composable(modes(a), modes(b))
    try:
        found = on.composition(a, b)
    except LayoutError as error:
        if exists:
            return needless_refusal((a, b), error)
        # The error's witness must be valid: the expected value is A(B(i)), and it differs from the layout's value.
        if error.index is None or error.expected == error.found:
            return Breach((a, b), error.index, "two values that differ at an index", str(error))
        return mismatch((a, b), int(wanted[error.index]), error.expected)
    if not exists:
        return unfounded_result((a, b), found)
    return shape_mismatch((a, b), b.shape, found) or table_mismatch((a, b), wanted, table(modes(found)))


def _associative(on: Implementation, a: Layout, b: Layout, c: Layout) -> Breach | None:
    try:
        inner, outer = on.composition(b, c), on.composition(a, b)
        left, right = on.composition(outer, c), on.composition(a, inner)
    except LayoutError:
        return None  # The law of composition checks which of these exist.
    return table_mismatch((a, b, c), table(modes(left)), table(modes(right)))


def _by_mode(on: Implementation, a: Layout, tiler: Tiler) -> Breach | None:
    if not isinstance(tiler, tuple):
        return None if tiler is None else _composed(on, a, Layout(tiler) if isinstance(tiler, int) else tiler)
    try:
        wanted: list[LayoutLike] = [on.composition(*pair) for pair in zip(a, tiler, strict=False)]
    except LayoutError as refusal:
        try:
            return unfounded_result((a, tiler), on.composition(a, tiler))
        except LayoutError as error:
            return mismatch((a, tiler), refusal.code, error.code)
    return mismatch((a, tiler), [*wanted, *list(a)[len(tiler) :]], list(on.composition(a, tiler)))


def _swizzled(on: Implementation, swizzle: Swizzle, layout: Layout) -> Breach | None:
    images = table(modes(layout))
    composed = on.composition(swizzle, layout)
    wrong = table_mismatch((swizzle, layout), swizzle.images(images), composed.table())
    if wrong is not None:
        return wrong
    indices: dict[int, int] = dict(zip(images.tolist(), range(len(images)), strict=True))
    try:
        inverse = on.left_inverse(composed)
    except LayoutError as error:
        exists = len(indices) == len(images) and layout_exists_through(indices)
        return needless_refusal((swizzle, layout), error) if exists else None
    return table_mismatch((swizzle, layout), table(((len(images), 1),)), inverse.images(composed.table()))


LAWS = (
    Law(
        "composition",
        "R = A o B: R(i) = A(B(i)) for i < size(B), and shape(R) refines shape(B); refused iff there is no such R",
        _CECKA,
        ("layout", "layout"),
        _composed,
        ("composition",),
    ),
    Law(
        "composition within the domain",
        "R = A o B with image(B) in [0, size(A)): as composition",
        _CECKA,
        ("layout", "inner"),
        _composed,
        ("composition",),
    ),
    Law(
        "composition is associative",
        "((A o B) o C)(i) = (A o (B o C))(i) for i < size(C), image(B) in [0, size(A)), image(C) in [0, size(B))",
        _CECKA,
        ("layout", "inner", "inner"),
        _associative,
        ("composition",),
    ),
    Law(
        "composition by mode",
        "(A o (T0, T1, ...))[k] = A[k] o Tk; modes beyond the tiler stay",
        _CECKA,
        ("layout", "tiler"),
        _by_mode,
        ("composition",),
    ),
    Law(
        "a swizzle composes with every layout",
        "(S o A)(i) = S(A(i)); left_inverse(S o A)(S(A(i))) = i where A has a left inverse",
        _CECKA,
        ("swizzle", "layout"),
        _swizzled,
        ("composition", "left_inverse", "swizzle"),
    ),
)
