from __future__ import annotations

from typing import cast

import pytest

from argus.core.layout import ComposedLayout, Layout, LayoutError, LayoutLike, Swizzle
from argus.core.layout.compose import composition
from argus.core.layout.recast import downcast, recast, upcast


def test_vectors_of_a_contiguous_mode() -> None:
    layout = Layout((8, (4, 4)), (16, (1, 4)))

    assert upcast(layout, 4) == Layout((8, (1, 4)), (4, (1, 1)))
    assert upcast(layout, 8) == Layout((8, (1, 2)), (2, (1, 1)))
    assert upcast(Layout((4, 3), (1, 0)), 2) == Layout((2, 3), (1, 0))
    assert upcast(Layout(2, 1), 3) == Layout(1, 1)


def test_parts_of_each_element() -> None:
    assert downcast(Layout((8, 4), (4, 1)), 2) == Layout((8, 8), (8, 1))
    assert downcast(Layout((8, 4), (8, 2)), 2) == Layout((8, 4), (16, 4))
    assert downcast(Layout((1, 8)), 2) == Layout((1, 16), (2, 1))
    assert downcast(Layout(1, 1), 2) == Layout(2, 1)
    assert downcast(Layout(4, -1), 2) == Layout(4, -2)
    with pytest.raises(LayoutError) as refused:
        downcast(Layout((2, 2), (1, 1)), 2)
    assert refused.value.code == "E807"


@pytest.mark.parametrize("count", [1, 2, 4])
def test_there_and_back(count: int) -> None:
    layout = Layout((8, (4, 4)), (16, (1, 4)))

    assert upcast(downcast(layout, count), count) == layout


@pytest.mark.parametrize(
    ("layout", "count"),
    [(Layout((2, 4), (4, 1)), 2), (Layout((4, 6), (6, 1)), 3), (Layout((2, 2, 3), (1, 2, 4)), 4), (Layout(8, 3), 3)],
)
def test_an_element_lies_in_the_vector_of_its_quotient(layout: Layout, count: int) -> None:
    wide = upcast(layout, count)
    vectors = {image // count for image in layout.table().tolist()}

    assert set(wide.table().tolist()) == vectors


@pytest.mark.parametrize(
    ("layout", "count"),
    [
        (Layout(6), 4),
        (Layout(4, 3), 2),
        (Layout(4, -1), 2),
        # Two modes over the same elements of one vector.
        (Layout((4, 4), (1, 1)), 2),
    ],
)
def test_vectors_that_are_not_whole_are_refused(layout: Layout, count: int) -> None:
    with pytest.raises(LayoutError) as refused:
        upcast(layout, count)

    assert refused.value.code == "E807"


def test_widths_in_bits() -> None:
    layout = Layout((8, 16), (16, 1))

    assert recast(layout, 16, 128) == Layout((8, 2), (2, 1))
    assert recast(layout, 16, 8) == Layout((8, 32), (32, 1))
    assert recast(layout, 16, 16) == layout
    with pytest.raises(LayoutError) as refused:
        recast(layout, 16, 24)
    assert refused.value.code == "E807"
    with pytest.raises(LayoutError):
        downcast(layout, 0)


# -- swizzles ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("swizzle", [Swizzle(3, 4, 3), Swizzle(2, 1, 3), Swizzle(2, 3, -3), Swizzle(0, 2, 0)])
@pytest.mark.parametrize("count", [1, 2, 4, 16])
def test_a_swizzle_of_vectors_is_the_swizzle_of_their_first_elements(swizzle: Swizzle, count: int) -> None:
    offsets = range(4 * swizzle.period)
    down = downcast(swizzle, count)

    assert [down(count * x + y) for x in offsets for y in range(count)] == [
        count * swizzle(x) + y for x in offsets for y in range(count)
    ]
    if any(swizzle(x) // count != swizzle(x // count * count) // count for x in offsets):
        with pytest.raises(LayoutError, match="E807"):
            upcast(swizzle, count)
    else:
        up = upcast(swizzle, count)
        assert [up(x // count) for x in offsets] == [swizzle(x) // count for x in offsets]


def test_swizzled_layouts_are_recast_part_by_part() -> None:
    bytes_of_rows = ComposedLayout(Swizzle(3, 4, 3), 128, Layout((8, 128), (128, 1)))
    halves = cast(ComposedLayout, recast(bytes_of_rows, 8, 16))

    assert halves == ComposedLayout(Swizzle(3, 3, 3), 64, Layout((8, 64), (64, 1)))
    assert recast(halves, 16, 8) == bytes_of_rows
    for row in range(8):
        for column in range(64):
            assert halves(row, column) == bytes_of_rows(row, 2 * column) // 2


@pytest.mark.parametrize(
    ("layout", "count"),
    [
        (ComposedLayout(Swizzle(1, 2, 1), 2, Layout(8)), 4),
        (composition(Swizzle(1, 2, 1), Layout(9)), 3),
        (Swizzle(2, 0, -2), 2),
    ],
)
def test_vectors_that_a_swizzle_would_split_are_refused(layout: LayoutLike, count: int) -> None:
    with pytest.raises(LayoutError, match="E807"):
        upcast(layout, count)
