from __future__ import annotations

import pytest

from argus.core.layout import Layout, LayoutError
from argus.core.layout import divide as d
from argus.core.layout.inttuple import compatible

MATRIX = Layout((9, (4, 8)), (59, (13, 1)))
TILER = (Layout(3, 3), Layout((2, 4), (1, 8)))


def test_a_divide_of_one_mode() -> None:
    """The example of CuTe's manual: 24 elements in tiles of 4."""
    result = d.logical_divide(Layout((4, 2, 3), (2, 1, 8)), Layout(4, 2))

    assert result == Layout(((2, 2), (2, 3)), ((4, 1), (2, 8)))


def test_a_divide_of_two_modes_and_its_groupings() -> None:
    logical = d.logical_divide(MATRIX, TILER)
    zipped = d.zipped_divide(MATRIX, TILER)

    assert logical == Layout(((3, 3), ((2, 4), (2, 2))), ((177, 59), ((13, 2), (26, 1))))
    assert zipped == Layout(((3, (2, 4)), (3, (2, 2))), ((177, (13, 2)), (59, (26, 1))))
    assert d.tiled_divide(MATRIX, TILER) == Layout(((3, (2, 4)), 3, (2, 2)), ((177, (13, 2)), 59, (26, 1)))
    assert d.flat_divide(MATRIX, TILER) == Layout((3, (2, 4), 3, (2, 2)), (177, (13, 2), 59, (26, 1)))


def test_modes_without_a_tile() -> None:
    layout = Layout((8, 16, 3))

    assert d.logical_divide(layout, (4, None)) == Layout(((4, 2), 16, 3), ((1, 4), 8, 128))
    assert d.zipped_divide(layout, (4, None)) == Layout(((4, 1), (2, 16, 3)), ((1, 0), (4, 8, 128)))
    assert d.tiled_divide(layout, (4, 8)) == Layout(((4, 8), 2, 2, 3), ((1, 8), 4, 64, 128))
    assert d.logical_divide(layout, None) == layout
    assert d.logical_product(layout, None) == layout
    with pytest.raises(LayoutError) as refused:
        d.zipped_divide(layout, (1, 2, 3, 4))
    assert refused.value.code == "E803"


def test_a_product_repeats_the_block_without_overlap() -> None:
    block, tiler = Layout((2, 2), (4, 1)), Layout(6, 1)
    result = d.logical_product(block, tiler)

    assert result == Layout(((2, 2), (2, 3)), ((4, 1), (2, 8)))
    assert sorted(result.table().tolist()) == list(range(24))


def test_a_product_with_a_number_multiplies() -> None:
    """pycute divides here."""
    assert d.logical_product(Layout(8), 4) == Layout((8, 4))
    assert d.zipped_product(Layout((2, 5), (5, 1)), (4, None)) == Layout(((2, 1), (4, 5)), ((5, 0), (1, 1)))


def test_products_mode_by_mode() -> None:
    block, tiler = Layout((2, 5), (5, 1)), Layout((3, 4))

    assert d.blocked_product(block, tiler) == Layout(((2, 3), (5, 4)), ((5, 10), (1, 30)))
    assert d.raked_product(block, tiler) == Layout(((3, 2), (4, 5)), ((10, 5), (30, 1)))
    assert d.tiled_product(block, tiler) == Layout(((2, 5), 3, 4), ((5, 1), 10, 30))
    assert d.flat_product(block, tiler) == Layout((2, 5, 3, 4), (5, 1, 10, 30))
    assert d.blocked_product(block, Layout(3)) == Layout(((2, 3), (5, 1)), ((5, 10), (1, 0)))


def test_a_block_fills_a_shape() -> None:
    block = Layout((8, 8), (8, 1))
    result = d.tile_to_shape(block, (16, 32))

    assert result == Layout(((8, 2), (8, 4)), ((8, 64), (1, 128)))
    assert compatible((16, 32), result.shape)
    assert d.tile_to_shape(block, (16, 32), (1, 0)) == Layout(((8, 2), (8, 4)), ((8, 256), (1, 64)))
    assert d.tile_to_shape(block, (16, 32, 3))[2] == Layout((1, 3), (0, 512))
    assert d.tile_to_shape(Layout(4), 12) == Layout(((4, 3),), ((1, 4),))


@pytest.mark.parametrize(("target", "code"), [((12, 32), "E807"), (64, "E803")])
def test_a_shape_that_a_block_does_not_fill_is_refused(target: int | tuple[int, ...], code: str) -> None:
    with pytest.raises(LayoutError) as refused:
        d.tile_to_shape(Layout((8, 8)), target)

    assert refused.value.code == code


def test_copies_below_zero_are_refused() -> None:
    with pytest.raises(LayoutError) as refused:
        d.logical_product(Layout(1, 0), Layout(2, -1))

    assert refused.value.code == "E805"


def test_no_divide_without_a_complement() -> None:
    with pytest.raises(LayoutError) as refused:
        d.logical_divide(Layout(24), Layout((2, 2), (2, 3)))

    assert refused.value.code == "E805"
