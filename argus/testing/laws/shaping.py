"""Laws of single layouts: evaluation, coordinates, coalesce, filter, flatten, notation, swizzles, recast."""

from __future__ import annotations

from itertools import product as every
from math import prod

import numpy as np

from argus.core.layout.faults import LayoutError
from argus.core.layout.inttuple import IntTuple, flatten
from argus.core.layout.swizzle import Swizzle
from argus.core.layout.values import Layout
from argus.testing.laws.implementation import Implementation
from argus.testing.laws.law import Breach, Law, mismatch, modes, needless_refusal, table_mismatch, unfounded_result
from argus.testing.laws.tabulated import IntArray, count, images_of, layout_of_table, table

_REPRESENTATION = "Cecka 2026, CuTe layout representation and algebra, section 2.2"
_COALESCE = "Cecka 2026, CuTe layout representation and algebra, section 3.2"
_CUTLASS = "CUTLASS 4, cute/layout.hpp, recast_layout"


def _function(on: Implementation, a: Layout) -> Breach | None:
    wanted = table(modes(a))
    beyond = np.arange(-a.size(), 3 * a.size(), dtype=np.int64)
    called = np.array([on.call(a, index) for index in beyond.tolist()], np.int64)
    return (
        table_mismatch((a,), wanted, a.table())
        or table_mismatch((a,), images_of(modes(a), beyond), called)
        or table_mismatch((a,), images_of(modes(a), beyond), a.images(beyond))
        or mismatch((a,), 1 + int(wanted.max()), on.cosize(a))
        or mismatch((a,), len(wanted), on.size(a))
    )


def _coordinates(on: Implementation, shape: IntTuple) -> Breach | None:
    extents = flatten(shape)
    # Colexicographic order: the first leaf is the fastest.
    order = [leaves[::-1] for leaves in every(*map(range, extents[::-1]))]
    for index, leaves in enumerate(order):
        crd = on.idx2crd(index, shape)
        wrong = mismatch((shape,), leaves, flatten(crd)) or mismatch((shape,), index, on.crd2idx(crd, shape))
        if wrong is not None:
            return wrong
    return None


def _coalesced(on: Implementation, a: Layout, b: Layout) -> Breach | None:
    first, second = on.coalesce(a), on.coalesce(b)
    same = table(modes(a)).tolist() == table(modes(b)).tolist()
    return (
        table_mismatch((a, b), table(modes(a)), table(modes(first)))
        or mismatch((a, b), layout_of_table(table(modes(a)).tolist()), tuple(m for m in modes(first) if m != (1, 0)))
        or mismatch((a, b), first, on.coalesce(first))
        or mismatch((a, b), same, first == second)
    )


def _filtered(on: Implementation, a: Layout) -> Breach | None:
    found = on.filter(a)
    images = [np.unique(table(modes(each))) for each in (a, found)]
    moving = prod(extent for extent, stride in modes(a) if stride)
    return table_mismatch((a,), *images) or mismatch((a,), moving, found.size())


def _regrouped(on: Implementation, a: Layout) -> Breach | None:
    images = table(modes(a))
    grouped = [on.group(a, 0, end) for end in range(1, len(a) + 1)]
    flat = on.flatten(a)
    wrong = table_mismatch((a,), images, table(modes(flat))) or mismatch((a,), modes(a), modes(flat))
    return wrong or next((w for each in grouped if (w := mismatch((a,), modes(a), modes(each))) is not None), None)


def _printed(on: Implementation, a: Layout) -> Breach | None:
    return mismatch((a,), a, on.parse(str(a)))


def _swizzle_printed(on: Implementation, swizzle: Swizzle) -> Breach | None:
    return mismatch((swizzle,), swizzle, on.parse(str(swizzle)))


def _swizzle(on: Implementation, swizzle: Swizzle) -> Breach | None:
    offsets = np.arange(-swizzle.period, 2 * swizzle.period, dtype=np.int64)
    images = swizzle.images(offsets)
    called = np.array([on.swizzle(swizzle, offset) for offset in offsets.tolist()], np.int64)
    blocks = np.sort(images.reshape(3, -1), axis=1).ravel()
    return (
        table_mismatch((swizzle,), _bit_by_bit(swizzle, offsets), images)
        or table_mismatch((swizzle,), images, called)
        or table_mismatch((swizzle,), offsets, swizzle.images(images))
        or table_mismatch((swizzle,), offsets, blocks)
    )


def _bit_by_bit(swizzle: Swizzle, offsets: IntArray) -> IntArray:
    images = offsets.copy()
    for bit in range(swizzle.bits):
        low, high = swizzle.base + bit, swizzle.base + abs(swizzle.shift) + bit
        read, written = (high, low) if swizzle.shift > 0 else (low, high)
        images ^= ((offsets >> read) & 1) << written
    return images


# -- recast --------------------------------------------------------------------------------------------------


def _upcast(on: Implementation, a: Layout, vector: int) -> Breach | None:
    widths = _widths(a, vector)
    try:
        found = on.upcast(a, vector)
    except LayoutError as error:
        return None if widths is None else needless_refusal((a, vector), error)
    if widths is None:
        return Breach((a, vector), None, "a refusal: the modes do not split into vectors", str(found))
    # In the order of A's elements: each coordinate of the result is A's over the width.
    vectors = np.zeros(1, np.int64)
    for (extent, _), (_, stride), width in zip(modes(a), modes(found), widths, strict=True):
        vectors = (np.arange(extent)[:, None] // width * stride + vectors).ravel()
    sizes = [extent // width for (extent, _), width in zip(modes(a), widths, strict=True)]
    return mismatch((a, vector), sizes, list(flatten(found.shape))) or table_mismatch(
        (a, vector), table(modes(a)) // vector, vectors
    )


def _upcast_swizzle(on: Implementation, swizzle: Swizzle, vector: int) -> Breach | None:
    offsets = np.arange(vector * swizzle.period, dtype=np.int64)
    wanted = swizzle.images(offsets) // vector
    exists = vector & (vector - 1) == 0 and bool((wanted.reshape(-1, vector) == wanted[::vector, None]).all())
    try:
        found = on.upcast(swizzle, vector)
    except LayoutError as error:
        return needless_refusal((swizzle, vector), error) if exists else None
    if not exists:
        return unfounded_result((swizzle, vector), found)
    return table_mismatch((swizzle, vector), wanted, found.images(offsets // vector))


def _widths(a: Layout, vector: int) -> list[int] | None:
    """For each leaf the number of its elements in one vector; None if they are not contiguous."""
    widths: list[int] = []
    for extent, stride in modes(a):
        run = [x for x in range(extent) if 0 <= x * stride < vector]
        whole = stride % vector == 0 or extent == 1
        if not whole and (stride < 1 or vector % stride or (extent % len(run))):
            return None
        widths.append(1 if whole else len(run))
    within = sum((width - 1) * stride for width, (_, stride) in zip(widths, modes(a), strict=True) if width > 1)
    return widths if within < vector else None


def _downcast(on: Implementation, a: Layout, vector: int) -> Breach | None:
    units = [place for place, (_, stride) in enumerate(modes(a)) if abs(stride) == 1]
    if len(units) > 1 or any(modes(a)[place][1] < 0 for place in units):
        return None
    parts: list[tuple[int, int]] = []
    for extent, stride in modes(a):
        parts += [(vector, 1), (extent, vector)] if stride == 1 else [(extent, stride * vector)]
    found = on.downcast(a, vector)
    wrong = table_mismatch((a, vector), table(tuple(parts)), table(modes(found)))
    if wrong is not None or count(modes(found)) == 1:
        return wrong
    return mismatch((a, vector), a, on.upcast(found, vector))


LAWS = (
    Law(
        "a layout is its strides",
        "A(i) = sum of x_k d_k for the digits x_k of i, the first fastest; the last digit is unbounded",
        _REPRESENTATION,
        ("layout",),
        _function,
        ("call", "size", "cosize"),
    ),
    Law(
        "index and coordinate",
        "crd2idx(idx2crd(i, S), S) = i for i < size(S), coordinates in colexicographic order",
        _REPRESENTATION,
        ("shape",),
        _coordinates,
        ("idx2crd", "crd2idx"),
    ),
    Law(
        "coalesce is a normal form",
        "coalesce(A)(i) = A(i) for i < size(A); coalesce(A) = coalesce(B) iff A(i) = B(i) for all i and sizes agree",
        _COALESCE,
        ("layout", "layout"),
        _coalesced,
        ("coalesce",),
    ),
    Law(
        "filter keeps the image",
        "image(filter(A)) = image(A), size(filter(A)) = product of extents whose stride is not 0",
        _COALESCE,
        ("layout",),
        _filtered,
        ("filter",),
    ),
    Law(
        "flatten and group keep the function",
        "flatten(A)(i) = group(A)(i) = A(i) for i < size(A)",
        _REPRESENTATION,
        ("layout",),
        _regrouped,
        ("group", "flatten"),
    ),
    Law("notation of a layout", "parse(str(A)) = A", _REPRESENTATION, ("layout",), _printed, ("parse",)),
    Law(
        "notation of a swizzle",
        "parse(str(S)) = S",
        _REPRESENTATION,
        ("swizzle",),
        _swizzle_printed,
        ("parse", "swizzle"),
    ),
    Law(
        "a swizzle is an involution",
        "S(S(x)) = x, and S permutes each aligned block of its period",
        "CUTLASS 4, cute/swizzle.hpp",
        ("swizzle",),
        _swizzle,
        ("swizzle",),
    ),
    Law(
        "upcast gathers vectors",
        "A(x) // n = upcast(A, n)(x // w) with w_k the elements of mode k in one vector",
        _CUTLASS,
        ("layout", "count"),
        _upcast,
        ("upcast",),
    ),
    Law(
        "upcast of a swizzle",
        "S(x) // n = upcast(S, n)(x // n); refused iff S(x) // n is no function of x // n, or n is no power of two",
        "CUTLASS 4, cute/swizzle_layout.hpp, upcast",
        ("swizzle", "count"),
        _upcast_swizzle,
        ("upcast", "swizzle"),
    ),
    Law(
        "downcast splits elements",
        "downcast(A, n)(n x + y) = n A(x) + y along the one mode of stride 1; upcast(downcast(A, n), n) = A",
        _CUTLASS,
        ("layout", "count"),
        _downcast,
        ("downcast", "upcast"),
    ),
)
