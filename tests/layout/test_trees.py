"""Operations on int-tuples and layouts alike, and CuTe's small operations on modes."""

from __future__ import annotations

import pytest

from argus.layout import (
    ComposedLayout,
    Layout,
    LayoutError,
    Swizzle,
    composition,
    concat,
    hier_unzip,
    idx2crd,
    logical_divide,
    mode,
    slice_,
    sort,
    squeeze,
    with_shape,
    zipped_divide,
)

SWIZZLED = composition(Swizzle(2, 0, 3), Layout((8, 8), (8, 1)))


def test_mode_of_a_tree() -> None:
    assert mode((1, (2, 3)), 1) == (2, 3)
    assert mode((1, (2, 3)), 1, 0) == 2
    assert mode(7, 0) == 7
    assert mode(Layout((4, 8)), 1) == Layout(8, 4)
    with pytest.raises(LayoutError, match="E803"):
        mode((1, 2), 2)


def test_concat_of_a_composed_layout_is_refused() -> None:
    tile = ComposedLayout(Swizzle(2, 0, 3), 0, Layout(32))
    with pytest.raises(LayoutError, match="ComposedLayout") as refused:
        concat(Layout(2), tile)  # pyright: ignore[reportCallIssue, reportArgumentType] reason: that is what is refused

    assert refused.value.code == "E801"


def test_concat() -> None:
    assert concat((3, 4), (5, (6,))) == (3, 4, 5, (6,))
    assert concat(Layout(3), Layout((7, 2), (2, 1)), Layout(4, 9)) == Layout((3, 7, 2, 4), (1, 2, 1, 9))
    with pytest.raises(LayoutError, match="E801"):
        concat(Layout(3), (4,))  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]


def test_sort_and_squeeze() -> None:
    assert sort(Layout((5, 32, (16, 2)), (1, 5, (5, 0)))) == Layout((2, 5, 16, 32), (0, 1, 5, 5))
    assert sort(Layout(4, 2)) == Layout(4, 2)
    assert squeeze(Layout((64, (1, 8), 1), (1, (5, 64), 0))) == Layout((64, 8), (1, 64))
    assert squeeze(Layout((1, 1))) == Layout(1, 0)
    assert isinstance(SWIZZLED, ComposedLayout)
    assert squeeze(SWIZZLED) == SWIZZLED
    assert sort(SWIZZLED) == composition(Swizzle(2, 0, 3), Layout((8, 8), (1, 8)))


def test_with_shape_and_coordinates_of_layouts() -> None:
    layout = Layout((4, 6), (6, 1))

    assert with_shape(layout, (2, 2, 6)) == Layout((2, 2, 6), (6, 12, 1))
    assert with_shape(SWIZZLED, 64) == ComposedLayout(Swizzle(2, 0, 3), 0, Layout(((8, 8),), ((8, 1),))[0])
    assert idx2crd(9, layout) == (1, 2)
    assert idx2crd((1, 5), (3, (2, 3))) == (1, (1, 2))
    with pytest.raises(LayoutError, match=r"no layout whose shape refines \(3,8\)"):
        with_shape(layout, (3, 8))


def test_slices_of_swizzled_layouts_keep_the_fixed_coordinates() -> None:
    assert isinstance(SWIZZLED, ComposedLayout)
    row = slice_((3, None), SWIZZLED)

    assert [row(column) for column in range(8)] == [SWIZZLED(3, column) for column in range(8)]
    with pytest.raises(LayoutError, match="E803"):
        slice_((None,), ComposedLayout(Layout(8), 0, Swizzle(1, 0, 1)))


def test_hier_unzip_gathers_what_a_splitter_made() -> None:
    matrix = Layout((128, 64), (64, 1))

    assert hier_unzip(logical_divide, matrix, (32, 16)) == zipped_divide(matrix, (32, 16))
    assert isinstance(SWIZZLED, ComposedLayout)
    assert hier_unzip(logical_divide, SWIZZLED, (2, 4)) == zipped_divide(SWIZZLED, (2, 4))
