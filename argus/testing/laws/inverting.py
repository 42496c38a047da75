"""Laws of inverses, nullspace and the common layout."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from math import prod

import numpy as np

from argus.core.layout.faults import LayoutError
from argus.core.layout.values import Layout
from argus.testing.laws.implementation import Implementation
from argus.testing.laws.law import Breach, Law, failed_condition, mismatch, modes, needless_refusal, table_mismatch
from argus.testing.laws.tabulated import Modes, images_of, layout_exists_through, layout_of_table, table

_SOURCE = "Cecka 2026, CuTe layout representation and algebra, section 3.5"


def _right(on: Implementation, a: Layout) -> Breach | None:
    found = on.right_inverse(a)
    images = found.table()
    inside = (images >= 0) & (images < a.size())
    indices = np.arange(found.size(), dtype=np.int64)
    return (
        failed_condition((a,), inside, "an index of the domain")
        or table_mismatch((a,), indices, images_of(modes(a), images))
        or mismatch((a,), longest(modes(a)), found.size())
    )


def longest(given: Modes) -> int:
    """The size of the longest right inverse made of whole modes, by trying all orders of the modes."""
    steps = [mode for mode in given if mode[0] > 1 and mode[1] > 0]
    best = 1
    for order in permutations(steps):
        filled = 1
        for extent, stride in order:
            if stride != filled:
                break
            filled *= extent
        best = max(best, filled)
    return best


def _undone(*, injective: bool) -> Callable[[Implementation, Layout], Breach | None]:
    def breach(on: Implementation, a: Layout) -> Breach | None:
        images = table(modes(a))
        first: dict[int, int] = {}
        for index, image in enumerate(images.tolist()):
            first.setdefault(image, index)
        try:
            found = on.left_inverse(a) if injective else on.pseudo_inverse(a)
        except LayoutError as error:
            possible = len(first) == len(images) or not injective
            return needless_refusal((a,), error) if possible and layout_exists_through(first) else None
        wanted = [index if injective else first[image] for index, image in enumerate(images.tolist())]
        return table_mismatch((a,), np.array(wanted, np.int64), found.images(images))

    return breach


def _nullspace(on: Implementation, a: Layout) -> Breach | None:
    found = on.nullspace(a)
    images = table(modes(found))
    zero = images_of(modes(a), images)
    return (
        mismatch((a,), prod(extent for extent, stride in modes(a) if stride == 0), found.size())
        or table_mismatch((a,), np.zeros(len(images), np.int64), zero)
        or mismatch((a,), len(images), len(set(images.tolist()) & set(range(a.size()))))
    )


def _common(on: Implementation, a: Layout, b: Layout) -> Breach | None:
    found = on.max_common_layout(a, b)
    images = table(modes(found))
    indices = np.arange(len(images), dtype=np.int64)
    wrong = (
        table_mismatch((a, b), indices, images_of(modes(a), images))
        or table_mismatch((a, b), indices, images_of(modes(b), images))
        or failed_condition((a, b), (images >= 0) & (images < min(a.size(), b.size())), "an index of both domains")
    )
    return wrong or mismatch((a, b), _agreed(on, a, b), found.size())


def _agreed(on: Implementation, a: Layout, b: Layout) -> int:
    """Length of the longest prefix of b's right inverse that is a layout and that `a` also maps to the indices."""
    inverse = on.right_inverse(b).table()
    wrong = (inverse >= a.size()) | (images_of(modes(a), inverse) != np.arange(len(inverse)))
    longest_start = int(wrong.argmax()) if wrong.any() else len(inverse)
    return next(n for n in range(longest_start, 0, -1) if layout_of_table(inverse[:n].tolist()) is not None)


LAWS = (
    Law(
        "right inverse",
        "A(R(i)) = i and 0 <= R(i) < size(A) for i < size(R), R = right_inverse(A), longest of whole modes",
        _SOURCE,
        ("layout",),
        _right,
        ("right_inverse",),
    ),
    Law(
        "left inverse",
        "R(A(i)) = i for i < size(A), R = left_inverse(A); refused iff A is not injective or there is no such R",
        _SOURCE,
        ("layout",),
        _undone(injective=True),
        ("left_inverse",),
    ),
    Law(
        "pseudo-inverse",
        "R(A(i)) = min {j : A(j) = A(i)} for i < size(A), R = pseudo_inverse(A); refused iff there is no such R",
        _SOURCE,
        ("layout",),
        _undone(injective=False),
        ("pseudo_inverse",),
    ),
    Law(
        "nullspace",
        "A(N(i)) = 0 for i < size(N), N injective; size(N) is the product of extents of stride 0",
        _SOURCE,
        ("layout",),
        _nullspace,
        ("nullspace",),
    ),
    Law(
        "common layout",
        "A(R(i)) = i = B(R(i)) for i < size(R), R the longest such start of right_inverse(B)",
        _SOURCE,
        ("layout", "layout"),
        _common,
        ("max_common_layout", "right_inverse"),
    ),
)
