from __future__ import annotations

import pytest

from argus.core.layout import ComposedLayout, Layout, LayoutError, Swizzle
from argus.core.layout.compose import composition
from argus.core.layout.inttuple import compatible


def _same_values(result: Layout, a: Layout, b: Layout) -> bool:
    return result.table().tolist() == [a(b(index)) for index in range(b.size())]


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        (Layout((128, 64), (64, 1)), Layout((8, 16), (1, 8)), Layout((8, 16), (64, 512))),
        (Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1)), Layout(((2, 2), 3), ((24, 2), 8))),
        (Layout((10, 2), (16, 4)), Layout((5, 4), (1, 5)), Layout((5, (2, 2)), (16, (80, 4)))),
        (Layout(20, 2), Layout((5, 4), (4, 1)), Layout((5, 4), (8, 2))),
        (Layout((4, 8)), Layout((1, 4), (7, 2)), Layout((1, 4), (7, 2))),
        (Layout((4, 8), (8, 1)), Layout(4, 0), Layout(4, 0)),
        (Layout(8, 2), Layout((1, 4)), Layout((1, 4), (2, 2))),
    ],
)
def test_compositions_of_the_papers_and_manuals(a: Layout, b: Layout, result: Layout) -> None:
    assert composition(a, b) == result
    assert _same_values(result, a, b)


@pytest.mark.parametrize(
    ("a", "b", "index", "expected", "found"),
    [
        # NVIDIA/cutlass issue 2955: other libraries answer (3,2):(2,3), which is 7 at index 5.
        (Layout((6, 2), (1, 7)), Layout((3, 2), (2, 3)), 5, 8, 7),
        # NVIDIA/cutlass issue 3177.
        (Layout((4, 6, 8), (2, 3, 5)), Layout(6, 3), 3, 8, 13),
        # pycute answers 4:1, one element short.
        (Layout((4, 6), (1, 7)), Layout(5, 1), 4, 7, 4),
        # A(-1) is 3 - 10: an index below 0 goes on in the last mode, as a call does.
        (Layout((4, 4), (1, 10)), Layout(4, -1), 3, -9, -15),
        # The parts are linear one by one, their sum carries.
        (Layout((4, 4), (1, 16)), Layout((2, 2), (2, 3)), 3, 17, 5),
    ],
)
def test_what_no_layout_says_is_refused_with_the_smallest_index(
    a: Layout, b: Layout, index: int, expected: int, found: int
) -> None:
    with pytest.raises(LayoutError) as refused:
        composition(a, b)

    error = refused.value
    assert (error.code, error.index, error.expected, error.found) == ("E804", index, expected, found)
    assert a(b(index)) == expected


def test_the_apparent_violation_stays_legal() -> None:
    """Divisibility fails for a mode that is never reached [Cecka 2026, section 3.3.3]."""
    a, b = Layout((4, 6, 8), (2, 3, 5)), Layout(4, 1)

    assert composition(a, b) == Layout(4, 2)
    assert composition(Layout((5, 8), (1, 5)), Layout(7, 3)) == Layout(7, 3)


def test_carries_that_cancel_are_no_carries() -> None:
    """The sums of floors at 2 and at 4 cancel: no divisibility rule admits this, the values do."""
    a, b = Layout((2, 2, 8), (1, 3, 5)), Layout(3, 3)

    assert composition(a, b) == Layout(3, 4)
    assert _same_values(composition(a, b), a, b)


def test_the_last_mode_goes_on_even_with_extent_one() -> None:
    a, b = Layout((4, 1), (1, 7)), Layout(2, 4)

    assert composition(a, b) == Layout(2, 7)
    assert a(4) == 7


def test_the_shape_refines_the_right_operands() -> None:
    a, b = Layout((6, 2), (8, 2)), Layout(((4, 1), 3), ((3, 5), 1))
    result = composition(a, b)

    assert compatible(b.shape, result.shape)
    assert _same_values(result, a, b)


@pytest.mark.parametrize(
    ("a", "b", "shape"),
    [
        (Layout((2, 3), (1, 7)), Layout(((2,), 2), ((1,), 2)), ((2,), 2)),
        (Layout((2, 1), (0, 1)), Layout((1, (1,)), (0, (0,))), (1, (1,))),
        (Layout((2, 6), (2, 0)), Layout((3,), (2,)), (3,)),
    ],
)
def test_tuples_of_one_stay(a: Layout, b: Layout, shape: tuple[object, ...]) -> None:
    assert composition(a, b).shape == shape


def test_huge_layouts_need_no_table() -> None:
    a = Layout((1 << 40, 1 << 20), (1 << 20, 1))
    b = Layout((1 << 30, 1 << 25), (1 << 10, 1 << 40))
    result = composition(a, b)

    assert result == Layout((1 << 30, 1 << 25), (1 << 30, 1))
    with pytest.raises(LayoutError) as refused:
        composition(Layout((1 << 40, 1 << 20), (1, 3)), Layout(3 << 34, 1 << 5))
    assert refused.value.index == 1 << 35


def test_tilers_go_mode_by_mode() -> None:
    a = Layout((8, 16), (16, 1))

    assert composition(a, (4, 8)) == Layout((4, 8), (16, 1))
    assert composition(a, (None, 8)) == Layout((8, 8), (16, 1))
    assert composition(a, (Layout(2, 4),)) == Layout((2, 16), (64, 1))
    assert composition(a, ()) == a
    assert composition(a, 4) == Layout(4, 16)
    assert composition(a, None) == a
    with pytest.raises(LayoutError) as refused:
        composition(a, (1, 2, 3))
    assert refused.value.code == "E803"


SWIZZLED = ComposedLayout(Swizzle(2, 1, 3), 3, Layout((8, 8), (8, 1)))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (Swizzle(2, 1, 3), Layout((8, 4))),
        (Layout((8, 8), (8, 1)), Swizzle(2, 1, 3)),
        (Swizzle(2, 1, 3), Swizzle(1, 0, -2)),
        (SWIZZLED, Layout((4, 2), (2, 8))),
        (SWIZZLED, SWIZZLED),
        (Layout((16, 4), (4, 1)), SWIZZLED),
        (SWIZZLED, Layout((3, 2), (2, 3))),
        (Swizzle(0, 3, 0), Layout((8, 4))),
    ],
)
def test_with_swizzles_there_is_always_a_result(
    a: Layout | Swizzle | ComposedLayout, b: Layout | Swizzle | ComposedLayout
) -> None:
    result = composition(a, b)

    assert result.table().tolist() == [a(b(index)) for index in range(b.size())]
    assert [result(index) for index in range(b.size())] == result.table().tolist()


def test_a_tiler_goes_through_a_swizzle() -> None:
    result = composition(SWIZZLED, (4, None))

    assert isinstance(result, ComposedLayout)
    assert [result(i, j) for j in range(8) for i in range(4)] == [SWIZZLED(i, j) for j in range(8) for i in range(4)]
    with pytest.raises(LayoutError) as refused:
        composition(Swizzle(1, 1, 1), (2,))
    assert refused.value.code == "E803"
