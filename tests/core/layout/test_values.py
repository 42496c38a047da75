from __future__ import annotations

import pickle

import numpy as np
import pytest

from argus.core.layout.faults import LayoutError
from argus.core.layout.values import Layout, make_layout, make_layout_like, make_ordered_layout, row_major


@pytest.mark.parametrize(
    ("shape", "stride"),
    [
        ((4, 8), (1,)),
        ((4, 8), 1),
        ((4, (2, 2)), (1, 4)),
        ((4, 0), (1, 4)),
        (-3, 1),
        (True, 1),
        ("4", 1),
        (4.0, 1),
        ([4, 8], (1, 4)),
    ],
)
def test_what_is_no_layout_is_refused(shape: object, stride: object) -> None:
    with pytest.raises(LayoutError) as refused:
        Layout(shape, stride)  # pyright: ignore[reportArgumentType] reason: a user may pass anything

    assert refused.value.code == "E801"


def test_a_layout_is_column_major_by_default() -> None:
    assert Layout((4, (2, 3), 1)).stride == (1, (4, 8), 24)


def test_an_index_goes_on_in_the_last_mode() -> None:
    assert Layout((2, 3))(7) == 7
    assert Layout(4)(9) == 9
    assert Layout((4, 4), (1, 10))(-1) == 3 - 10


def test_coordinates_may_stop_at_any_level() -> None:
    layout = Layout(((4, 8), 2), ((8, 1), 4))

    assert layout(5, 1) == layout((1, 1), 1) == layout(((1, 1), 1)) == layout(5 + 32) == 8 + 1 + 4


def test_numpy_integers_are_integers() -> None:
    layout = Layout((np.int64(4), 8), (np.int32(8), 1))  # pyright: ignore[reportArgumentType] reason: has __index__

    assert [type(extent) for extent, _ in layout.flat_modes] == [int, int]
    assert layout(np.int64(5)) == 8 + 1  # pyright: ignore[reportCallIssue, reportArgumentType] reason: has __index__


@pytest.mark.parametrize("coord", [(1, 2, 3), ((0, 0), 0, 0), ((1, 1), (1, 1))])
def test_a_coordinate_of_another_profile_is_refused(coord: tuple[int, ...]) -> None:
    with pytest.raises(LayoutError) as refused:
        Layout(((4, 8), 2))(*coord)

    assert refused.value.code == "E803"


def test_none_slices_as_in_cute() -> None:
    layout = Layout(((4, 8), 2), ((8, 1), 4))

    assert layout(None, 1) == Layout(((4, 8),), ((8, 1),))
    assert layout((None, 3), 0) == Layout((4,), (8,))
    assert layout((None, 3), None) == Layout((4, 2), (8, 4))
    assert Layout((2, 3))(None, 1) == Layout((2,), (1,))


def test_modes_are_layouts() -> None:
    layout = Layout(((4, 8), 2), ((8, 1), 4))

    assert list(layout) == [layout[0], layout[1]] == [Layout((4, 8), (8, 1)), Layout(2, 4)]
    assert layout[-1] == Layout(2, 4)
    assert make_layout(layout[0], layout[1]) == make_layout(list(layout)) == layout
    assert layout[0:1] == Layout(((4, 8),), ((8, 1),))
    with pytest.raises(LayoutError, match="has no mode 2"):
        layout[2]


def test_an_int_and_a_tuple_of_one_differ() -> None:
    assert Layout(4) != Layout((4,))
    assert (str(Layout(4)), str(Layout((4,)))) == ("4:1", "(4,):(1,)")


def test_layouts_are_values() -> None:
    layout = Layout((4, (2, 2)), (1, (8, 4)))
    same = Layout((4, (2, 2)), (1, (8, 4)))
    layout(3)  # fills what is computed once

    assert layout == same
    assert hash(layout) == hash(same)
    assert pickle.loads(pickle.dumps(layout)) == layout  # noqa: S301 reason: our own bytes
    assert layout != (layout.shape, layout.stride)
    with pytest.raises(AttributeError):
        layout.shape = 3  # pyright: ignore[reportAttributeAccessIssue] reason: that it fails is the point


def test_cosize_counts_from_zero_to_the_largest_image() -> None:
    assert Layout(4, -1).cosize() == 1
    assert Layout((4, 3), (-1, 5)).cosize() == 11
    assert Layout(1, 7).cosize() == 1


def test_rank_zero_has_one_element() -> None:
    empty = Layout(())

    assert (empty.size(), empty.cosize(), empty(0), len(empty)) == (1, 1, 0, 0)


def test_an_order_says_which_mode_is_fastest() -> None:
    assert make_ordered_layout((4, (2, 3)), (2, (0, 1))) == Layout((4, (2, 3)), (6, (1, 2)))
    assert make_ordered_layout((4, 8)) == Layout((4, 8))
    assert row_major((4, 8)) == Layout((4, 8), (8, 1))


def test_a_layout_like_another_is_compact_in_the_same_order() -> None:
    assert make_layout_like(Layout((2, 2, 2, 2), (0, 2, 4, 1))) == Layout((2, 2, 2, 2), (0, 2, 4, 1))
    assert make_layout_like(Layout((2, 3, 4, 5), (0, 42, 1, 0))) == Layout((2, 3, 4, 5), (0, 4, 1, 0))
    assert make_layout_like(Layout((64, (8, 8)), (72, (1, 9)))) == Layout((64, (8, 8)), (64, (1, 8)))
    assert make_layout_like(Layout((4, 2), (5, 5))) == Layout((4, 2), (1, 4))


def test_a_table_too_large_is_refused() -> None:
    with pytest.raises(LayoutError) as refused:
        Layout((1 << 20, 1 << 20)).table()

    assert refused.value.code == "E810"


def test_images_beyond_64_bits_are_never_wrapped() -> None:
    layout = Layout((2, 2), (1, 1 << 63))

    assert layout(3) == 1 + (1 << 63)
    with pytest.raises(LayoutError) as refused:
        layout.table()
    assert refused.value.code == "E810"
    with pytest.raises(LayoutError):
        Layout((2, 2), (1, 1 << 61)).images(np.array([3, 6]))


def test_indices_of_any_integer_type_count_in_64_bits() -> None:
    layout = Layout((4, 8), (1, 100))

    assert layout.images(np.array([31], np.int8)).tolist() == [layout(31)]
    assert layout.images(np.array([31], np.uint8)).tolist() == [layout(31)]
    with pytest.raises(LayoutError) as refused:
        layout.images(np.array([1.5]))
    assert refused.value.code == "E801"
    with pytest.raises(LayoutError) as refused:
        Layout((4, 2), (1, (1 << 61) - 1)).images(np.array([-(1 << 63)]))
    assert refused.value.code == "E810"


@pytest.mark.parametrize("junk", ["x", 1.5, True, [1]])
def test_a_slice_reads_all_of_its_coordinates(junk: object) -> None:
    with pytest.raises(LayoutError) as refused:
        Layout(((2, 2), 8))(None, junk)  # pyright: ignore[reportCallIssue, reportArgumentType] reason: a user may pass anything

    assert refused.value.code == "E801"


@pytest.mark.parametrize("place", ["a", [0], 5, slice(0, 1)])
def test_a_mode_that_is_none_is_refused(place: object) -> None:
    with pytest.raises(LayoutError) as refused:
        Layout(4)[place]  # pyright: ignore[reportArgumentType] reason: a user may pass anything

    assert refused.value.code == "E803"


def test_an_error_is_data_that_survives_a_process() -> None:
    with pytest.raises(LayoutError) as refused:
        Layout((4, 8), 1)
    again = pickle.loads(pickle.dumps(refused.value))  # noqa: S301 reason: our own bytes

    assert again.diagnostic == refused.value.diagnostic
    assert refused.value.diagnostic.help == "give a stride for each extent, in the same nesting"
