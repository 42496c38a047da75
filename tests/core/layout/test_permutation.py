"""Cycles, order and parity of layouts that permute, against NumPy and repeated application."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from argus.core.layout import ComposedLayout, Layout, LayoutError, Swizzle
from argus.core.layout.permutation import Permutation

PERMUTING = [
    Layout(1),
    Layout((4, 6), (6, 1)),
    Layout((3, 2), (2, 1)),
    Layout((2, (3, 5)), (15, (1, 3))),
    Layout(5, -1),
    Layout((2, 3), (-3, -1)),
    ComposedLayout(Swizzle(2, 0, 2), 0, Layout((4, 4), (4, 1))),
    ComposedLayout(Swizzle(1, 0, 2), 8, Layout(8)),
]


@pytest.mark.parametrize("layout", PERMUTING, ids=str)
def test_cycles_follow_the_images(layout: Layout | ComposedLayout) -> None:
    images = layout.table() - layout.table().min()
    cycles = Permutation.of(layout).cycles()

    assert sorted([each for cycle in cycles for each in cycle]) == list(range(layout.size()))
    assert [cycle[0] for cycle in cycles] == sorted([min(cycle) for cycle in cycles])
    for cycle in cycles:
        assert [images[at] for at in cycle] == [after for _, after in pairwise((*cycle, cycle[0]))]
    assert Permutation.of(layout).fixed_points() == tuple(np.flatnonzero(images == np.arange(len(images))).tolist())


@pytest.mark.parametrize("layout", PERMUTING, ids=str)
def test_the_order_is_the_first_power_that_is_the_identity(layout: Layout | ComposedLayout) -> None:
    images = layout.table() - layout.table().min()
    power, reached = 1, images
    while (reached != np.arange(len(images))).any():
        power, reached = power + 1, images[reached]

    assert Permutation.of(layout).order() == power


@pytest.mark.parametrize("layout", PERMUTING, ids=str)
def test_the_parity_is_that_of_inversions(layout: Layout | ComposedLayout) -> None:
    images = layout.table()
    inversions = sum(int((images[:at] > image).sum()) for at, image in enumerate(images))

    assert Permutation.of(layout).parity() == (-1) ** inversions


@pytest.mark.parametrize(
    ("layout", "index", "expected"),
    [(Layout((4, 2), (0, 1)), 1, None), (Layout((2, 2), (1, 1)), 2, None), (Layout(4, 2), None, 1)],
)
def test_what_permutes_nothing_is_refused(layout: Layout, index: int | None, expected: int | None) -> None:
    with pytest.raises(LayoutError) as refused:
        Permutation.of(layout)

    assert (refused.value.code, refused.value.index, refused.value.expected) == ("E806", index, expected)


@pytest.mark.parametrize("images", [(0, 0), (1, 2), (0, 2), (0.5,), (True, False)])
def test_images_that_are_no_permutation_are_refused(images: tuple[int, ...]) -> None:
    with pytest.raises(LayoutError) as refused:
        Permutation(images)

    assert refused.value.code == "E801"
