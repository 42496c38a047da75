"""Complements and products under a named law: the results, and post-conditions that tables confirm."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus.layout import (
    Layout,
    LayoutError,
    Placement,
    by_law,
    complement,
    is_injective,
    logical_product,
    zipped_product,
)
from argus.testing.strategies import cotargets, layouts

PADDED = Layout((64, 64), (72, 1))


def answers(placed: Placement) -> dict[str, bool]:
    return {each.name: each.answer.holds for each in placed.conditions}


def test_a_padded_tile_has_copies_by_the_law_of_cute_alone() -> None:
    placed = by_law("cute").logical_product(PADDED, Layout(4))

    assert placed.layout == Layout(((64, 64), 4), ((72, 1), 4608))
    assert is_injective(placed.layout)
    assert answers(placed) == {
        "disjoint": True,
        "ordered": True,
        "bounded": True,
        "reaching": True,
        "covering": False,
    }
    assert "covering (A(i) + R(j) cover [0, m)): no: 64 is no sum of images" in str(placed)
    with pytest.raises(LayoutError, match="E805"):
        by_law("covering").logical_product(PADDED, Layout(4))


def test_both_laws_agree_where_tiles_cover() -> None:
    for block, tiler in [(Layout((2, 2), (1, 6)), Layout(6)), (Layout((2, 2), (4, 1)), Layout((3, 2), (2, 1)))]:
        product = by_law("cute").logical_product(block, tiler)

        assert product.layout == logical_product(block, tiler)
        assert all(answers(product).values())


def test_documented_conditions_may_fail_and_say_so() -> None:
    placed = by_law("cute").complement(Layout(2, 4), 9)

    assert placed.layout == complement(Layout(2, 4), 9) == Layout((4, 2), (1, 8))
    assert not answers(placed)["bounded"]
    assert "12 > 10" in str(placed)
    padded = by_law("cute").complement(Layout((6, 2), (2, 13)), 26)
    assert padded.layout == Layout(2)
    assert "reaching (cosize((A, R)) >= m): no: 25 < 26" in str(padded)


def test_more_copies_than_the_length_has_room_for() -> None:
    block = Layout((2, 2, 2), (1, 3, 11))
    placed = by_law("cute").logical_product(block, Layout(2))

    assert placed.layout == Layout(((2, 2, 2), 2), ((1, 3, 11), 22))


def test_other_products() -> None:
    cute, block = by_law("cute"), Layout((8, 8), (9, 1))

    assert cute.tile_to_shape(block, (16, 32)).layout == Layout(((8, 2), (8, 4)), ((9, 72), (1, 144)))
    assert cute.blocked_product(block, Layout((2, 2))).layout == Layout(((8, 2), (8, 2)), ((9, 72), (1, 144)))
    assert cute.raked_product(block, Layout((2, 2))).layout == Layout(((2, 8), (2, 8)), ((72, 9), (144, 1)))
    for name in ("zipped_product", "tiled_product", "flat_product"):
        made: Placement = getattr(cute, name)(Layout((4, 8), (1, 4)), (2, 3))
        assert made.layout.size() == 192
    assert cute.zipped_product(Layout((4, 8), (1, 4)), (2, None)).layout == zipped_product(
        Layout((4, 8), (1, 4)), (2, None)
    )


def test_overlapping_strides_are_refused() -> None:
    with pytest.raises(LayoutError, match="the stride 3 is below 4"):
        by_law("cute").complement(Layout((4, 2), (1, 3)), 24)


def test_a_tile_of_one_element_needs_no_complement() -> None:
    assert logical_product(PADDED, Layout(1, 5)) == Layout(((64, 64), 1), ((72, 1), 0))
    assert by_law("cute").logical_product(PADDED, 1).conditions == ()


@given(layouts(), st.data())
def test_conditions_are_those_of_the_tables(layout: Layout, data: st.DataObject) -> None:
    target = data.draw(cotargets(layout))
    try:
        placed = by_law("cute").complement(layout, target)
    except LayoutError:
        strides = sorted({(d, s) for s, d in layout.flat_modes if s > 1 and d})
        reach = [d * s for d, s in strides]
        assert any(d < end for (d, _), end in zip(strides[1:], reach, strict=False)) or not is_injective(
            Layout(tuple(s for s, d in layout.flat_modes if d) or 1, tuple(d for _, d in layout.flat_modes if d) or 0)
        )
        return
    rest = placed.layout.table()
    sums = (np.unique(layout.table())[:, None] + rest).ravel()
    assert answers(placed) == {
        "disjoint": len(np.unique(sums)) == len(sums),
        "ordered": bool((np.diff(rest) > 0).all()),
        "bounded": 1 + int(rest.max()) <= -(-target // layout.cosize()) * layout.cosize(),
        "reaching": 1 + int(sums.max()) >= target,
        "covering": set(range(target)) <= set(sums.tolist()),
    }
    assert answers(placed)["disjoint"]
    assert answers(placed)["ordered"]


def test_a_law_of_another_name_is_refused() -> None:
    with pytest.raises(LayoutError) as refused:
        by_law("nested")  # pyright: ignore[reportArgumentType] reason: that is what is refused

    assert refused.value.code == "E801"
    assert "'covering' or 'cute'" in refused.value.diagnostic.help
