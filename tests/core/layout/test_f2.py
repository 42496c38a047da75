from __future__ import annotations

import pickle

import numpy as np
import pytest

from argus.core.layout import ComposedLayout, Layout, LayoutError, LayoutLike, Swizzle
from argus.core.layout.f2.matrix import BinaryMatrix, equal


def fault_of(f: LayoutLike) -> tuple[str, int | None, int | None, int | None]:
    with pytest.raises(LayoutError) as caught:
        BinaryMatrix.of(f)
    return caught.value.code, caught.value.index, caught.value.expected, caught.value.found


def test_columns_are_the_images_of_single_bits() -> None:
    matrix = BinaryMatrix.of(Layout((4, 2), (2, 1)))

    assert matrix.columns == (2, 4, 1)
    assert matrix.rows == 3
    assert [matrix(i) for i in range(8)] == [0, 2, 4, 6, 1, 3, 5, 7]
    assert matrix.to_array().tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    assert str(matrix) == "001\n100\n010"


def test_a_swizzle_is_a_matrix_over_its_period() -> None:
    assert BinaryMatrix.of(Swizzle(1, 0, 2)).columns == (1, 2, 5)
    assert BinaryMatrix.of(Swizzle(1, 0, -2)).columns == (5, 2, 4)
    assert BinaryMatrix.of(Swizzle(0, 2, 0)) == BinaryMatrix.identity(2)


def test_a_layout_that_is_not_linear_is_refused_at_the_first_such_index() -> None:
    assert fault_of(Layout((2, 2), (1, 1))) == ("E809", 3, 0, 2)
    assert fault_of(Layout((2, 2, 2), (1, 6, 2))) == ("E809", 6, 4, 8)
    assert fault_of(Layout((2, 4), (1, -2))) == ("E809", 2, None, -2)
    assert fault_of(Layout((2, 2, 2), (1, 1, -2))) == ("E809", 3, 0, 2)
    assert fault_of(Layout(6)) == ("E809", None, None, None)


def test_a_composed_layout_that_is_not_linear_is_refused_at_the_first_such_index() -> None:
    assert fault_of(ComposedLayout(Swizzle(1, 0, 2), 3, Layout(4))) == ("E809", 0, 0, 3)
    assert fault_of(ComposedLayout(Layout((3, 5), (1, 4)), 0, Layout(8))) == ("E809", 3, 3, 4)
    assert fault_of(ComposedLayout(Layout(8, -1), 0, Layout(8))) == ("E809", 1, None, -1)


def test_parts_that_are_not_linear_may_compose_to_what_is() -> None:
    f = ComposedLayout(Layout((3, 5), (1, 4)), 0, Layout(4, 3))

    assert BinaryMatrix.of(f).columns == (4, 8)


def test_an_offset_that_the_outer_part_maps_to_0_leaves_a_matrix() -> None:
    f = ComposedLayout(Layout((4, 2), (1, 0)), 4, Layout(4))

    assert BinaryMatrix.of(f).columns == (1, 2)


def test_large_functions_need_no_table() -> None:
    layout = Layout((1 << 40, 1 << 40), (1 << 40, 1))
    f = ComposedLayout(Swizzle(3, 4, 3), 0, layout)

    assert BinaryMatrix.of(layout).is_permutation()
    assert BinaryMatrix.of(f).rank() == 80
    assert BinaryMatrix.of(f).to_layout_like() == f
    assert not equal(f, layout)


def test_a_large_function_of_no_linear_parts_is_too_large() -> None:
    doubling = ComposedLayout(Layout((3, 1 << 40), (1, 3)), 0, Layout(1 << 30))

    assert fault_of(doubling)[0] == "E810"


def test_disjoint_columns_are_a_coalesced_layout() -> None:
    assert BinaryMatrix((8, 16, 1, 2, 4), 5).to_layout() == Layout((4, 8), (8, 1))
    assert BinaryMatrix((0, 0), 0).to_layout() == Layout(4, 0)
    assert BinaryMatrix((), 0).to_layout() == Layout(1, 0)


def test_overlapping_columns_are_no_layout() -> None:
    with pytest.raises(LayoutError, match="columns 1 and 2, 2 and 3") as caught:
        BinaryMatrix((4, 2, 3), 3).to_layout()

    assert (caught.value.code, caught.value.index, caught.value.expected, caught.value.found) == ("E809", 6, 1, 5)


@pytest.mark.parametrize("swizzle", [Swizzle(3, 4, 3), Swizzle(2, 0, 3), Swizzle(2, 1, -3), Swizzle(1, 3, -1)])
def test_a_swizzled_layout_is_read_off_its_matrix(swizzle: Swizzle) -> None:
    f = ComposedLayout(swizzle, 0, Layout((16, 64), (64, 1)))

    assert BinaryMatrix.of(f).to_layout_like() == f


def test_a_swizzle_that_reads_beyond_the_images_is_found_as_narrow_as_it_acts() -> None:
    f = ComposedLayout(Swizzle(3, 4, 3), 0, Layout((8, 64), (64, 1)))

    assert BinaryMatrix.of(f).to_layout_like() == ComposedLayout(Swizzle(2, 4, 3), 0, f.inner)


def test_two_swizzles_are_not_always_one() -> None:
    with pytest.raises(LayoutError, match="no swizzled one") as caught:
        BinaryMatrix.of(ComposedLayout(Swizzle(1, 0, 1), 0, Swizzle(1, 1, 1))).to_layout_like()

    assert caught.value.code == "E809"


def test_product_is_composition() -> None:
    a, b = Layout((4, 4), (4, 1)), Layout((2, 8), (8, 1))
    composed = BinaryMatrix.of(ComposedLayout(a, 0, b))

    assert BinaryMatrix.of(a) @ BinaryMatrix.of(b) == composed
    with pytest.raises(LayoutError, match="takes no images of 4 bits") as caught:
        _ = BinaryMatrix.identity(2) @ BinaryMatrix.of(b)
    assert caught.value.code == "E803"


def test_inverse_names_an_index_that_has_the_image_0() -> None:
    with pytest.raises(LayoutError, match="index 3 has the image 0") as caught:
        BinaryMatrix((1, 1), 2).inverse()
    assert (caught.value.code, caught.value.index) == ("E806", 3)

    with pytest.raises(LayoutError, match="2 is no image") as caught:
        BinaryMatrix((1, 4), 3).inverse()
    assert (caught.value.index, caught.value.expected) == (None, 2)


def test_a_swizzle_is_its_own_inverse() -> None:
    matrix = BinaryMatrix.of(Swizzle(3, 4, 3))

    assert matrix.inverse() == matrix
    assert matrix @ matrix == BinaryMatrix.identity(10)


def test_pseudo_inverse_gives_the_smallest_index_of_each_image() -> None:
    matrix = BinaryMatrix((0, 2, 2, 4), 3)

    assert matrix.pseudo_inverse().columns == (0, 2, 8)
    assert matrix.kernel() == (1, 6)
    assert matrix.image() == (2, 4)
    assert not matrix.is_injective()
    assert not matrix.is_surjective()


def test_registers_find_their_place_in_shared_memory() -> None:
    registers = BinaryMatrix.of(Layout((8, 4), (1, 8)))
    shared = BinaryMatrix.of(ComposedLayout(Swizzle(2, 0, 3), 0, Layout((4, 8), (8, 1))))
    place = registers.invert_and_compose(shared)

    assert place == shared.solve(registers)
    assert [shared(place(i)) for i in range(32)] == [registers(i) for i in range(32)]


def test_solve_names_the_value_that_is_no_image() -> None:
    with pytest.raises(LayoutError, match="4, the other's image of 2, is no image") as caught:
        BinaryMatrix((1, 2), 3).solve(BinaryMatrix((3, 4), 3))

    assert (caught.value.code, caught.value.index, caught.value.found) == ("E806", 2, 4)


def test_a_matrix_from_an_array_and_from_rows() -> None:
    array = np.array([[1, 0, 1], [0, 1, 1]])
    matrix = BinaryMatrix.from_array(array)

    assert matrix == BinaryMatrix((1, 2, 3), 2) == BinaryMatrix.from_rows([0b101, 0b110], 3)
    assert np.array_equal(matrix.to_array(), array)
    assert matrix.transpose() == BinaryMatrix.from_array(array.T)
    assert pickle.loads(pickle.dumps(matrix)) == matrix  # noqa: S301 reason: bytes of this test
    assert BinaryMatrix.zeros(2, 3).rank() == 0


@pytest.mark.parametrize("entries", [[1, 0], [[2]], [[-1]]])
def test_arrays_of_something_else_are_refused(entries: list[object]) -> None:
    with pytest.raises(LayoutError, match="no matrix of 0 and 1") as caught:
        BinaryMatrix.from_array(np.array(entries))
    assert caught.value.code == "E809"


def test_columns_fit_the_rows() -> None:
    with pytest.raises(LayoutError, match="a column 4 is no vector of 2 bits"):
        BinaryMatrix((1, 4), 2)
    with pytest.raises(LayoutError, match="a column -1"):
        BinaryMatrix((-1,), 2)
    with pytest.raises(LayoutError, match="a matrix of -1 rows"):
        BinaryMatrix((), -1)
    with pytest.raises(LayoutError, match="index 4 is outside") as caught:
        BinaryMatrix.identity(2)(4)
    assert caught.value.code == "E803"


def test_equality_by_matrices() -> None:
    assert equal(Layout((2, 4), (1, 2)), Layout(8))
    assert equal(ComposedLayout(Swizzle(1, 0, 1), 0, Swizzle(1, 0, 1)), Layout(4))
    assert not equal(Layout(8), Layout(4))
    assert not equal(Layout((2, 2), (1, 1)), Layout(4))
    with pytest.raises(LayoutError) as caught:
        equal(Layout((2, 2), (1, 1)), Layout((2, 2), (3, 1)))
    assert caught.value.code == "E809"
    with pytest.raises(LayoutError, match="expected a power of two"):
        equal(Layout(4), Layout(3))
