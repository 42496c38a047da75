from __future__ import annotations

import pytest

from argus.core.layout import Layout, LayoutError
from argus.core.layout.complement import complement
from argus.core.layout.inttuple import IntTuple


@pytest.mark.parametrize(
    ("layout", "cotarget", "result"),
    [
        (Layout(4, 1), 24, Layout(6, 4)),
        (Layout(6, 4), 24, Layout(4, 1)),
        (Layout((4, 6)), 24, Layout(1, 0)),
        (Layout(4, 2), 24, Layout((2, 3), (1, 8))),
        (Layout((2, 4), (1, 6)), 24, Layout(3, 2)),
        (Layout((2, 2), (1, 6)), 24, Layout((3, 2), (2, 12))),
        (Layout((2, 2), (1, 6)), (4, 6), Layout((3, 2), (2, 12))),
        (Layout(4, 2), 20, Layout((2, 3), (1, 8))),
        (Layout(8, 1), (5, 6), Layout(4, 8)),
        (Layout((4, 3), (1, 0)), 24, Layout(6, 4)),
        (Layout(3, 0), 24, Layout(24, 1)),
        (Layout(4, 2), None, Layout(2, 1)),
        # Images 0, 1, 2, one of them twice: as a set they tile.
        (Layout((2, 2), (1, 1)), 24, Layout(8, 3)),
        # Images 0, 1, 4, 5, 8, 9, given by modes that overlap.
        (Layout((2, 2, 2), (1, 4, 4)), 24, Layout((2, 2), (2, 12))),
    ],
)
def test_the_sum_fills_an_interval(layout: Layout, cotarget: IntTuple | None, result: Layout) -> None:
    assert complement(layout, cotarget) == result

    images = sorted({a + b for a in layout.table().tolist() for b in result.table().tolist()})
    assert images == list(range(len(images)))
    assert len(images) == len(set(layout.table().tolist())) * result.size()


def test_an_int_is_a_contiguous_layout() -> None:
    assert complement(4, 24) == Layout(6, 4)


@pytest.mark.parametrize(
    ("layout", "index", "found"),
    [
        # pycute answers (2,0,4):(1,2,6), a mode of extent 0. To cover 1 takes 1, and 1 + 2 is 3.
        (Layout((2, 2), (2, 3)), 1, 3),
        (Layout((2, 2), (6, 11)), 1, 11),
        (Layout((2, 2, 2), (2, 2, 5)), 3, 5),
        # Runs of four, six apart: 4 + 2 is 6.
        (Layout((4, 6), (1, 6)), 2, 6),
    ],
)
def test_what_does_not_tile_is_refused(layout: Layout, index: int, found: int) -> None:
    with pytest.raises(LayoutError) as refused:
        complement(layout, 24)

    assert (refused.value.code, refused.value.index, refused.value.found) == ("E805", index, found)
    assert found in layout.table()


def test_what_does_not_tile_may_still_cover() -> None:
    assert complement(Layout((4, 6), (1, 6)), 4) == Layout(1, 0)
    assert complement(Layout((2, 2), (2, 3))) == Layout(1, 0)
    # Images 0, 5, 7, 12: 0 .. 4 take five translations, and 5 is there.
    assert complement(Layout((2, 2), (5, 7)), 2) == Layout(2, 1)


def test_a_cover_goes_on_until_it_is_a_layout() -> None:
    """0, 1 and 6 cover [0, 7) with images 0, 2, 4, 16, ..., and no layout has just these; the next one is 7."""
    assert complement(Layout((4, 3), (16, 2)), 7) == Layout((2, 2), (1, 6))


def test_a_cover_that_is_no_layout_is_refused() -> None:
    with pytest.raises(LayoutError) as refused:
        complement(Layout((2, 5), (2, 7)), 5)

    assert (refused.value.code, refused.value.index, refused.value.expected) == ("E805", 2, 4)


def test_overlapping_modes_of_any_size_are_runs() -> None:
    assert complement(Layout((1 << 20, 1 << 20), (1, 1))) == Layout(1, 0)
    assert complement(Layout((1 << 30, 3), (2, 1)), 1 << 31) == Layout(1, 0)
    with pytest.raises(LayoutError) as refused:
        complement(Layout((2, 2), (1, 3)), 1 << 40)
    assert refused.value.code == "E805"


def test_images_below_zero_are_refused() -> None:
    with pytest.raises(LayoutError) as refused:
        complement(Layout(4, -1), 24)

    assert (refused.value.code, refused.value.found) == ("E805", -3)


def test_a_cotarget_is_positive() -> None:
    with pytest.raises(LayoutError) as refused:
        complement(Layout(4), (4, 0))

    assert refused.value.code == "E801"


def test_large_nested_layouts_need_no_table() -> None:
    assert complement(Layout(1 << 40, 1 << 20), 1 << 70) == Layout((1 << 20, 1 << 10), (1, 1 << 60))
