"""The addresses of a layout against the set of its images."""

from __future__ import annotations

from fractions import Fraction

import pytest

from argus.core.layout import ComposedLayout, Layout, LayoutError, Swizzle
from argus.core.layout.footprint import footprint


@pytest.mark.parametrize(
    "layout",
    [
        Layout(()),
        Layout(8),
        Layout(4, 2),
        Layout((4, 2), (0, 1)),
        Layout((4, 2), (1, 6)),
        Layout((3, 4), (-5, 1)),
        Layout((2, 3), (1, 1)),
        ComposedLayout(Swizzle(2, 0, 3), 5, Layout((4, 4), (9, 1))),
    ],
    ids=str,
)
def test_runs_are_the_images(layout: Layout | ComposedLayout) -> None:
    found = footprint(layout)
    images = set(layout.table().tolist())

    assert [first + step for first, length in found.runs for step in range(length)] == sorted(images)
    assert all(first + length < after for (first, length), (after, _) in zip(found.runs, found.runs[1:], strict=False))
    assert (found.lowest, found.highest, found.addresses) == (min(images), max(images), len(images))
    assert found.holes == len(set(range(min(images), max(images) + 1)) - images)
    assert found.reuse == Fraction(layout.size(), len(images))


def test_a_table_that_is_too_large_is_refused() -> None:
    with pytest.raises(LayoutError) as refused:
        footprint(Layout(1 << 30))

    assert refused.value.code == "E810"
