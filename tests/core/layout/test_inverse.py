from __future__ import annotations

import numpy as np
import pytest

from argus.core.layout import ComposedLayout, Layout, LayoutError, Swizzle
from argus.core.layout.common import max_common_layout, max_common_vector
from argus.core.layout.images.interpolate import interpolating_layout, solve_integers
from argus.core.layout.inverse import (
    left_inverse,
    left_inverse_of_layout,
    nullspace,
    pseudo_inverse,
    right_inverse,
)


@pytest.mark.parametrize(
    ("layout", "result"),
    [
        (Layout(1, 0), Layout(1, 0)),
        (Layout((1, 1), (0, 0)), Layout(1, 0)),
        (Layout((4, 8), (8, 1)), Layout((8, 4), (4, 1))),
        (Layout((2, 4, 6), (4, 1, 8)), Layout((4, 2, 6), (2, 1, 8))),
        (Layout((4, 2), (1, 16)), Layout(4, 1)),
        (Layout(4, 2), Layout(1, 0)),
        (Layout((4, 3), (1, -4)), Layout(4, 1)),
        # A mode of stride 0 does not end the chain, and of two modes with one stride the longer one goes on.
        (Layout((3, 4), (0, 1)), Layout(4, 3)),
        (Layout((2, 4, 3), (1, 1, 4)), Layout(12, 2)),
    ],
)
def test_right_inverses(layout: Layout, result: Layout) -> None:
    assert right_inverse(layout) == result
    assert [layout(result(index)) for index in range(result.size())] == list(range(result.size()))
    assert int(result.table().max()) < layout.size()


@pytest.mark.parametrize(
    "layout",
    [
        Layout((4, 8), (8, 1)),
        Layout(4, 2),
        Layout((2, 4, 6), (4, 1, 8)),
        Layout((4, 2), (1, 16)),
        # No nesting: the inverse has no complement to lean on. Other libraries answer wrongly here.
        Layout((2, 2), (6, 11)),
        Layout((2, 2), (2, 3)),
        Layout((2, 3), (3, 2)),
        Layout(4, -1),
        Layout((3, 2), (-1, 5)),
        # Indices below 0 need extents beyond the largest image.
        Layout(2, -2),
        Layout((2, 2), (1, -2)),
        Layout((3, 2), (-5, 2)),
    ],
)
def test_left_inverses_undo_the_layout(layout: Layout) -> None:
    inverse = left_inverse_of_layout(layout)

    assert [inverse(layout(index)) for index in range(layout.size())] == list(range(layout.size()))


def test_nested_strides_have_a_bijection_as_inverse() -> None:
    assert left_inverse_of_layout(Layout(4, 2)) == Layout((2, 4), (4, 1))
    assert left_inverse_of_layout(Layout((1 << 30, 1 << 30), (1 << 30, 1))) == Layout((1 << 30, 1 << 30), (1 << 30, 1))


def test_two_elements_of_one_image_have_no_left_inverse() -> None:
    with pytest.raises(LayoutError) as refused:
        left_inverse(Layout((2, 2), (1, 1)))

    assert (refused.value.code, refused.value.expected, refused.value.index) == ("E806", 1, 2)


def test_injective_and_yet_without_an_inverse_that_is_a_layout() -> None:
    layout = Layout((3, 3), (3, 2))
    assert len(set(layout.table().tolist())) == 9

    with pytest.raises(LayoutError, match="no layout maps the images"):
        left_inverse(layout)


def test_a_pseudo_inverse_takes_the_smallest_index() -> None:
    for layout in (Layout((3, 4), (0, 1)), Layout((2, 2), (1, 1)), Layout((4, 2), (2, 0)), Layout(5, 0)):
        back = pseudo_inverse(layout)
        images = layout.table().tolist()

        assert [back(image) for image in images] == [images.index(image) for image in images]


def test_the_nullspace_has_the_image_zero() -> None:
    layout = Layout((2, 3, 4, 5), (0, 1, 0, 3))
    space = nullspace(layout)

    assert space == Layout((2, 4), (1, 6))
    assert {layout(space(index)) for index in range(space.size())} == {0}
    assert nullspace(Layout(4)) == Layout(1, 0)


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        (Layout((4, 8)), Layout((4, 8)), Layout(32, 1)),
        (Layout((4, 8), (8, 1)), Layout((4, 8)), Layout(1, 0)),
        (Layout((4, 8), (8, 1)), Layout((4, 8), (16, 1)), Layout(8, 4)),
        (Layout((2, 8), (1, 4)), Layout((2, 8), (1, 2)), Layout(2, 1)),
        # Their common run of 6 ends within a mode.
        (Layout((6, 4), (1, 12)), Layout(24), Layout(6, 1)),
        (Layout(4), Layout(24), Layout(4, 1)),
    ],
)
def test_what_two_layouts_have_in_common(a: Layout, b: Layout, result: Layout) -> None:
    assert max_common_layout(a, b) == result
    assert max_common_vector(a, b) == result.size()
    for index in range(result.size()):
        assert a(result(index)) == index == b(result(index))


@pytest.mark.parametrize("offset", [0, 2])
@pytest.mark.parametrize("swizzle", [Swizzle(2, 0, 2), Swizzle(2, 1, -3), Swizzle(0, 0, 0)])
def test_composed_layouts_have_composed_inverses(swizzle: Swizzle, offset: int) -> None:
    layout = ComposedLayout(swizzle, offset, Layout((8, 8), (8, 1)))
    left = left_inverse(layout)

    assert [left(layout(index)) for index in range(64)] == list(range(64))
    again = left_inverse(ComposedLayout(Layout((16, 64), (64, 1)), 0, layout))
    assert [again(Layout((16, 64), (64, 1))(layout(index))) for index in range(64)] == list(range(64))
    if offset == 0:
        right = right_inverse(layout)
        assert right.size() == 64
        assert [layout(right(index)) for index in range(64)] == list(range(64))


def test_a_composed_layout_that_misses_zero_has_no_right_inverse() -> None:
    with pytest.raises(LayoutError) as refused:
        right_inverse(ComposedLayout(Swizzle(1, 1, 1), 100, Layout(8)))

    assert (refused.value.code, refused.value.index) == ("E806", 0)


def test_a_composed_layout_whose_parts_have_no_inverse_may_have_one() -> None:
    right = ComposedLayout(Layout((2, 2), (0, 1)), 1, Layout(2))
    left = ComposedLayout(ComposedLayout(Layout(6), 0, Layout(1, 7)), 0, Layout(5))

    assert [right(right_inverse(right)(index)) for index in range(2)] == [0, 1]
    assert [left_inverse(left)(left(index)) for index in range(5)] == list(range(5))


def test_the_smallest_repetition_of_the_whole_is_named() -> None:
    layout = ComposedLayout(Layout((3, (1, 1)), (1, (1, 1))), 0, Layout(((5, 2), 3, 1), ((7, 2), 2, 2)))
    images = layout.table().tolist()
    with pytest.raises(LayoutError) as refused:
        left_inverse(layout)

    later = next(index for index in range(len(images)) if images[index] in images[:index])
    assert (refused.value.expected, refused.value.index) == (images.index(images[later]), later)


def test_many_modes_of_one_stride_take_no_time() -> None:
    layout = Layout((2,) * 60, tuple(1 << (place // 3) for place in range(60)))

    assert right_inverse(layout).size() == 1 << 20


def test_inverses_of_what_is_too_large_to_look_at_are_refused() -> None:
    huge = ComposedLayout(Layout(1 << 40), 0, Layout(1 << 40))
    for inverse in (left_inverse, right_inverse):
        with pytest.raises(LayoutError) as refused:
            inverse(huge)
        assert refused.value.code == "E810"


def test_a_swizzle_is_its_own_inverse_and_an_int_is_a_layout() -> None:
    assert right_inverse(Swizzle(2, 1, 3)) == left_inverse(Swizzle(2, 1, 3)) == Swizzle(2, 1, 3)
    assert right_inverse(4) == left_inverse(4) == Layout(4)


def test_the_layout_through_points() -> None:
    layout = interpolating_layout({0: 0, 6: 1, 11: 2, 17: 3})

    assert layout is not None
    assert [layout(index) for index in (0, 6, 11, 17)] == [0, 1, 2, 3]
    assert interpolating_layout({0: 1}) is None
    assert interpolating_layout({1: 1, 2: 2, 3: 4, 4: 1}) is None


def test_a_search_reports_its_limit() -> None:
    with pytest.raises(LayoutError) as refused:
        interpolating_layout(dict.fromkeys(range(5000), 0))

    assert refused.value.code == "E810"


def test_integer_equations() -> None:
    assert solve_integers([[2, 0, 1]], 2) is None
    assert solve_integers([[2, 3, 1], [4, 6, 3]], 2) is None
    x, y = solve_integers([[2, 3, 1]], 2) or (0, 0)
    assert 2 * x + 3 * y == 1
    assert solve_integers([[1, 1, 5], [1, -1, 1]], 2) == [3, 2]


@pytest.mark.parametrize(
    ("layout", "inverse"),
    [
        (Layout((64, 64), (72, 1)), Layout((72, 64), (64, 1))),
        (Layout((4, 8), (1, 5)), Layout((5, 8), (1, 4))),
        (Layout((128, 64), (72, 1)), Layout((72, 128), (128, 1))),
        (Layout((4, 8), (2, 10)), Layout((2, 5, 8), (32, 1, 4))),
        (Layout((512, 64), (80, 1)), Layout((80, 512), (512, 1))),
    ],
)
def test_padded_tiles_are_inverted_by_digits(layout: Layout, inverse: Layout) -> None:
    assert left_inverse(layout) == inverse
    assert np.array_equal(inverse.images(layout.table()), np.arange(layout.size()))


def test_common_vectors_of_swizzled_layouts_end_where_the_swizzle_begins() -> None:
    rows = Layout((8, 64), (64, 1))
    swizzled = ComposedLayout(Swizzle(3, 3, 3), 0, rows)

    assert max_common_vector(rows, swizzled) == max_common_vector(swizzled, rows) == 8
    assert max_common_layout(swizzled, rows) == Layout(8, 8)
    assert max_common_vector(swizzled, swizzled) == 512
    assert max_common_vector(ComposedLayout(Swizzle(3, 3, 3), 64, rows), rows) == 1
    late = ComposedLayout(Swizzle(2, 1, 3), 0, Layout((4, 32), (1, 4)))
    assert max_common_vector(late, Layout(128)) == 2
    common = max_common_layout(swizzled, swizzled)
    assert np.array_equal(swizzled.images(common.table()), np.arange(512))
