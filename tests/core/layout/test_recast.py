from __future__ import annotations

import pytest

from argus.core.layout import Layout, LayoutError
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
