"""A tensor is a layout over a buffer; `local_tile` and `local_partition` are CuTe's."""

from __future__ import annotations

import numpy as np
import pytest

from argus.layout import (
    ComposedLayout,
    Layout,
    LayoutError,
    Swizzle,
    Tensor,
    composition,
    local_partition,
    local_tile,
    slice_and_offset,
    zipped_divide,
)

ROWS = Layout((4, 8), (8, 1))


def test_elements_and_views_share_the_buffer() -> None:
    buffer = list(range(32))
    tensor = Tensor(ROWS, buffer)

    tensor[2, 3] = 99

    assert buffer[19] == tensor[2, 3] == tensor[2, :][3] == tensor[:, None][2, 3] == 99
    assert tensor[5] == 9  # index 5 is the coordinate (1, 1)
    assert tensor(2, 3) == 19
    assert tensor.view(Layout(32))[19] == 99
    assert Tensor(ROWS, np.arange(32))[1, 1] == 9


def test_a_tensor_without_a_buffer_has_its_addresses() -> None:
    tensor = Tensor(ROWS, offset=100)

    assert tensor[2, 3] == tensor(2, 3) == 119
    assert tensor.table().tolist() == (ROWS.table() + 100).tolist()
    assert repr(tensor) == "Tensor((4,8):(8,1), offset=100)"
    assert tensor[None] is tensor
    assert tensor == Tensor(ROWS, offset=100)
    assert tensor != Tensor(ROWS)


def test_a_slice_of_a_swizzled_tensor_moves_before_the_swizzle() -> None:
    layout = composition(Swizzle(2, 0, 2), Layout((4, 4), (4, 1)))
    assert isinstance(layout, ComposedLayout)
    tensor = Tensor(layout, list(range(16)))

    assert [tensor[3, :][column] for column in range(4)] == [tensor[3, column] for column in range(4)]
    assert slice_and_offset((3, None), layout)[1] == 0


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (lambda: Tensor(ROWS, [0] * 31), "E803"),
        (lambda: Tensor(Layout(4, -1), [0] * 4), "E803"),
        (lambda: Tensor(ROWS, np.zeros((4, 8))), "E801"),
        (lambda: Tensor(ROWS)[1:3, 0], "E803"),
        (lambda: Tensor(ROWS).__setitem__((0, 0), 1), "E801"),
        (lambda: Tensor(ROWS, [0] * 32).__setitem__((0, None), 1), "E803"),
        (lambda: Tensor("4:1"), "E801"),  # pyright: ignore[reportArgumentType] reason: tests bad input
        (lambda: local_partition(ROWS, Layout(4, 2), 1), "E803"),
    ],
)
def test_refusals(wrong: object, code: str) -> None:
    assert callable(wrong)
    with pytest.raises(LayoutError, match=code):
        wrong()


def test_local_tile_takes_the_tile_at_a_coordinate() -> None:
    matrix = Tensor(Layout((128, 64), (64, 1)))
    tile = local_tile(matrix, (32, 16), (1, 2))

    assert (tile.layout, tile.offset) == (Layout((32, 16), (64, 1)), 32 * 64 + 32)
    assert local_tile(matrix, (32, 16), 5).offset == tile.offset - 16
    assert local_tile(matrix, (32, 16), (1,)).layout == Layout((32, 16, 4), (64, 1, 16))
    for index in range(512):
        row, column = index % 32, index // 32
        assert tile[row, column] == matrix[32 + row, 32 + column]


def test_projections_drop_the_modes_that_a_tensor_lacks() -> None:
    a = Tensor(Layout((128, 64), (64, 1)))
    tile = local_tile(a, (32, 48, 16), (1, 7, None), (1, None, 1))
    threads = Layout((2, 16, 1), (16, 1, 0))

    assert (tile.layout, tile.offset) == (Layout((32, 16, 4), (64, 1, 16)), 32 * 64)
    assert local_partition(a, threads, 17, (1, None, 1)).offset == 64
    assert local_partition(a, threads, 17, (None, 1, 1)).layout == Layout((8, 64), (1024, 1))


def test_the_parts_of_all_threads_cover_a_tile_once() -> None:
    threads = Layout(((2, 2), 8), ((1, 16), 2))
    parts = [local_partition(ROWS, threads, index) for index in range(32)]

    assert sorted(part.table().tolist() for part in parts) == [[place] for place in range(32)]
    swizzled = composition(Swizzle(2, 0, 3), Layout((8, 8), (8, 1)))
    assert isinstance(swizzled, ComposedLayout)
    columns = [local_partition(swizzled, Layout((2, 4)), index).table() for index in range(8)]
    assert sorted(np.concatenate(columns).tolist()) == list(range(64))
    assert zipped_divide(swizzled, (2, 4)).size() == 64


def test_a_notebook_shows_the_elements() -> None:
    shown = Tensor(Layout((2, 2), (2, 1)), ["a", "<b>", "c", "d"])._repr_html_()  # pyright: ignore[reportPrivateUsage] reason: notebooks call it

    assert "<tr><td>a</td><td>&lt;b&gt;</td></tr><tr><td>c</td><td>d</td></tr>" in shown
    assert "<table>" not in Tensor(Layout(4096))._repr_html_()  # pyright: ignore[reportPrivateUsage]
