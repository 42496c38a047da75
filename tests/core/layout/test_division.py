"""`safe_div` and `shape_mod`, with the examples of CuTe's 02_layout_algebra.md."""

from __future__ import annotations

import pytest

from argus.core.layout import IntTuple, LayoutError, product
from argus.core.layout.division import safe_div, shape_mod
from argus.core.layout.inttuple import shape_div


@pytest.mark.parametrize(
    ("shape", "count", "kept"),
    [
        ((6, 2), 2, (2, 1)),
        ((6, 2), 3, (3, 1)),
        ((6, 2), 6, (6, 1)),
        ((6, 2), 12, (6, 2)),
        ((3, 6, 2, 8), 6, (3, 2, 1, 1)),
        ((3, 6, 2, 8), 9, (3, 3, 1, 1)),
        ((1, 2, 2, 8), 2, (1, 2, 1, 1)),
        ((1, 2, 2, 8), 16, (1, 2, 2, 4)),
        (6, 3, 3),
        (3, 6, 3),
        (((2, 3), 4), 12, ((2, 3), 2)),
        (((2, 3), 4), (2, 2), ((2, 1), 2)),
        ((4, 2), (2, (1, 2)), (2, 2)),
    ],
)
def test_the_first_elements_of_a_shape(shape: IntTuple, count: IntTuple, kept: IntTuple) -> None:
    assert shape_mod(shape, count) == kept
    assert product(shape_div(shape, count)) * product(kept) == product(shape)


@pytest.mark.parametrize(("shape", "count"), [(6, 4), (4, 6), ((6, 2), 4), ((6, 2), 0), ((6, 2), -2), (0, 3)])
def test_counts_that_do_not_divide_are_refused(shape: IntTuple, count: int) -> None:
    with pytest.raises(LayoutError) as refused:
        shape_mod(shape, count)

    assert refused.value.code == "E807"


def test_ranks_must_agree() -> None:
    with pytest.raises(LayoutError) as refused:
        shape_mod((6, 2), (2, 1, 1))

    assert refused.value.code == "E801"


def test_safe_div_is_exact() -> None:
    assert [safe_div(12, 3), safe_div(12, -4), safe_div(0, 5)] == [4, -3, 0]
    for whole, part in ((12, 5), (12, 0)):
        with pytest.raises(LayoutError) as refused:
            safe_div(whole, part)
        assert refused.value.code == "E807"
