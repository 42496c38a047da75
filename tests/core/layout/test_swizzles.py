from __future__ import annotations

import pickle

import numpy as np
import pytest

from argus.core.algebra import sym
from argus.core.index import Symbol
from argus.core.layout import ComposedLayout, Layout, LayoutError, Swizzle
from argus.core.layout.swizzle import make_swizzle
from argus.core.walk import evaluate

SWIZZLES = [Swizzle(3, 4, 3), Swizzle(2, 0, -3), Swizzle(1, 2, 1), Swizzle(0, 5, 0), Swizzle(0, 0, -2)]


def test_bits_are_read_from_above_or_below() -> None:
    assert Swizzle(2, 0, 3)(0b11000) == 0b11011
    assert Swizzle(2, 0, -3)(0b00011) == 0b11011
    assert Swizzle(2, 1, 2)(0b11110) == 0b11000
    assert Swizzle(0, 3, 0)(13) == 13


@pytest.mark.parametrize("swizzle", [*SWIZZLES[:3], Swizzle(2, 1, 5), Swizzle(1, 0, -1), Swizzle(0, 0, 0)])
def test_masks_say_which_bits_are_read_and_written(swizzle: Swizzle) -> None:
    written = swizzle.source >> swizzle.shift if swizzle.shift > 0 else swizzle.source << -swizzle.shift

    assert make_swizzle(swizzle.source, written) == swizzle


@pytest.mark.parametrize(
    ("read", "written"),
    [(6, 3), (12, 9), (12, 6), (5, 0b101000), (4, 3), (0, 1), (1, 0), (-2, -1), (0b110, 0b110), (0b1010, 0b101)],
)
def test_masks_of_no_swizzle_are_refused(read: int, written: int) -> None:
    with pytest.raises(LayoutError) as refused:
        make_swizzle(read, written)

    assert refused.value.code == "E808"


@pytest.mark.parametrize("swizzle", SWIZZLES)
def test_a_swizzle_is_an_involution_that_permutes_its_period(swizzle: Swizzle) -> None:
    images = swizzle.table()

    assert sorted(images.tolist()) == list(range(swizzle.size()))
    assert swizzle.images(images).tolist() == list(range(swizzle.size()))
    assert [swizzle(index) for index in range(swizzle.size())] == images.tolist()
    assert [swizzle(swizzle(index)) for index in range(-40, 40)] == list(range(-40, 40))


@pytest.mark.parametrize("swizzle", SWIZZLES)
def test_the_expression_of_a_swizzle_is_its_function(swizzle: Swizzle) -> None:
    at = Symbol("at", "fresh", 0, 4095)
    indices = np.arange(4096, dtype=np.int64)

    assert np.array_equal(np.asarray(evaluate(swizzle.at(sym(at)), {at: indices})), swizzle.images(indices))


@pytest.mark.parametrize(("bits", "base", "shift"), [(3, 4, 2), (3, 4, -2), (1, 0, 0), (-1, 0, 3), (1, -1, 3)])
def test_bits_that_overlap_are_refused(bits: int, base: int, shift: int) -> None:
    with pytest.raises(LayoutError) as refused:
        Swizzle(bits, base, shift)

    assert refused.value.code == "E808"


def test_a_composed_layout_is_its_parts_one_after_another() -> None:
    layout = ComposedLayout(Swizzle(2, 1, 3), 5, Layout((8, (2, 4)), (8, (1, 2))))
    expected = [Swizzle(2, 1, 3)(5 + Layout((8, (2, 4)), (8, (1, 2)))(index)) for index in range(64)]

    assert layout.table().tolist() == expected
    assert layout(3, 5) == layout(3, (1, 2)) == expected[3 + 8 * 5]
    assert (layout.size(), layout.cosize(), len(layout)) == (64, 1 + max(expected), 2)
    assert str(layout) == "Sw<2,1,3> o 5 o (8,(2,4)):(8,(1,2))"
    assert pickle.loads(pickle.dumps(layout)) == layout  # noqa: S301 reason: our own bytes


def test_slices_of_a_composed_layout_keep_what_is_fixed_in_the_offset() -> None:
    layout = ComposedLayout(Swizzle(2, 1, 3), 5, Layout((8, (2, 4)), (8, (1, 2))))
    row, column = layout(3, None), layout(None, 6)

    assert [row(index) for index in range(8)] == [layout(3, index) for index in range(8)]
    assert [column(index) for index in range(8)] == [layout(index, 6) for index in range(8)]
    nested = ComposedLayout(Swizzle(1, 0, 1), 2, layout)(3, None)
    assert [nested(index) for index in range(8)] == [Swizzle(1, 0, 1)(2 + layout(3, index)) for index in range(8)]
    assert layout[1].size() == 8


def test_the_expression_of_a_composed_layout_is_its_function() -> None:
    layout = ComposedLayout(Swizzle(2, 1, 3), 5, Layout((8, 8), (8, 1)))
    at = Symbol("at", "fresh", 0, 63)

    found = evaluate(layout.at(sym(at)), {at: np.arange(64, dtype=np.int64)})
    assert np.array_equal(np.asarray(found), layout.table())


def test_a_swizzle_may_come_first() -> None:
    layout = ComposedLayout(Layout((4, 4), (4, 1)), 0, Swizzle(1, 0, 2))

    assert (layout.shape, layout.size(), len(layout)) == (16 // 2, 8, 1)
    assert layout.table().tolist() == [Layout((4, 4), (4, 1))(Swizzle(1, 0, 2)(index)) for index in range(8)]
    assert layout(None) == layout


def test_bits_beyond_an_arrays_are_refused() -> None:
    with pytest.raises(LayoutError) as refused:
        Swizzle(1, 60, 3).images(np.array([1]))
    assert refused.value.code == "E810"
    with pytest.raises(LayoutError):
        ComposedLayout(Swizzle(3, 4, 3), 1 << 70, Layout(8)).table()
    with pytest.raises(LayoutError):
        Swizzle(1, 10**12, 1)
    assert Swizzle(3, 2, -3).images(np.array([31], np.int8)).tolist() == [Swizzle(3, 2, -3)(31)]


@pytest.mark.parametrize("arguments", [("x", 0, Layout(8)), (Layout(8), 1.5, Layout(8)), (Layout(8), 0, 5)])
def test_parts_are_layouts_and_offsets_integers(arguments: tuple[object, ...]) -> None:
    with pytest.raises(LayoutError) as refused:
        ComposedLayout(*arguments)  # pyright: ignore[reportArgumentType] reason: a user may pass anything

    assert refused.value.code == "E801"


def test_modes_of_a_composed_layout_end() -> None:
    layout = ComposedLayout(Swizzle(1, 0, 1), 0, Layout((2, 4)))

    assert list(layout) == [layout[0], layout[1]]
    assert len(list(ComposedLayout(Layout(16), 1, Swizzle(1, 0, 1)))) == 1
    with pytest.raises(LayoutError):
        ComposedLayout(Layout(16), 1, Swizzle(1, 0, 1))[5]
    with pytest.raises(LayoutError):
        ComposedLayout(Layout(16), 1, Swizzle(1, 0, 1))(1, 2)
