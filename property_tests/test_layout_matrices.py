"""Property: linear algebra of layouts over F2 agrees with brute force over every index of small functions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from argus.core.layout import ComposedLayout, Layout, LayoutError, LayoutLike, Swizzle
from argus.core.layout.f2.linear import columns_of
from argus.core.layout.f2.matrix import BinaryMatrix, equal
from property_tests.depth import examples
from property_tests.functions import (
    binary,
    composed,
    images,
    nonlinear,
    swizzles,
)

pytestmark = pytest.mark.share(3, among="layouts: matrices")


@settings(max_examples=examples(500))
@given(binary | swizzles() | composed())
def test_a_function_is_a_matrix_exactly_where_it_is_linear(f: LayoutLike) -> None:
    assume(f.size().bit_count() == 1)
    values = images(f)
    wrong = nonlinear(values)

    if wrong is None:
        matrix = BinaryMatrix.of(f)
        assert [matrix(i) for i in range(matrix.size())] == values
        entries = matrix.to_array()
        assert BinaryMatrix.from_array(entries) == matrix
        bits = (np.arange(matrix.size())[None, :] >> np.arange(len(matrix.columns))[:, None]) & 1
        assert (entries @ bits % 2 == (np.array(values)[None, :] >> np.arange(matrix.rows)[:, None]) & 1).all()
    else:
        with pytest.raises(LayoutError) as caught:
            BinaryMatrix.of(f)
        fault = caught.value
        assert (fault.code, fault.index, fault.found) == ("E809", wrong, values[wrong])


def carries(matrix: BinaryMatrix) -> bool:
    try:
        matrix.to_layout()
    except LayoutError as fault:
        return fault.code == "E809"
    return False


@st.composite
def matrices(draw: DrawFn, rows: int = 4, columns: int = 4) -> BinaryMatrix:
    height, width = draw(st.integers(0, rows)), draw(st.integers(0, columns))
    return BinaryMatrix(draw(st.lists(st.integers(0, (1 << height) - 1), min_size=width, max_size=width)), height)


@settings(max_examples=examples(300))
@given(matrices())
def test_linear_algebra_is_that_of_the_table(m: BinaryMatrix) -> None:
    values = [m(i) for i in range(m.size())]
    zeros = [i for i, value in enumerate(values) if value == 0]

    assert 1 << m.rank() == len(set(values))
    assert span(m.kernel()) == set(zeros)
    assert m.kernel()[:1] == tuple(zeros[1:2])
    assert span(m.image()) == set(values)
    assert m.transpose().transpose() == m
    assert m.transpose().to_array().tolist() == m.to_array().T.tolist()
    assert BinaryMatrix.from_rows(m.transpose().columns, len(m.columns)) == m
    assert m.is_injective() == (len(set(values)) == len(values))
    assert m.is_surjective() == (set(values) == set(range(1 << m.rows)))
    assert m.is_permutation() == (sorted(values) == list(range(1 << m.rows)))
    g = m.pseudo_inverse()
    assert m @ g @ m == m
    assert g @ m @ g == g
    assert all(g(value) == values.index(value) for value in values)


def span(basis: tuple[int, ...]) -> set[int]:
    found = {0}
    for vector in basis:
        found |= {vector ^ other for other in found}
    return found


@settings(max_examples=examples(300))
@given(matrices())
def test_an_inverse_is_refused_exactly_for_what_is_no_permutation(m: BinaryMatrix) -> None:
    if m.is_permutation():
        assert m.inverse() @ m == m @ m.inverse() == BinaryMatrix.identity(m.rows)
        return
    with pytest.raises(LayoutError) as caught:
        m.inverse()
    fault = caught.value
    assert fault.code == "E806"
    if fault.index is None:
        assert fault.expected == min(set(range(1 << m.rows)) - {m(i) for i in range(m.size())})
    else:
        assert fault.index == min(i for i in range(1, m.size()) if m(i) == 0)


@settings(max_examples=examples(300))
@given(matrices(), matrices())
def test_solving_is_refused_exactly_where_a_value_is_no_image(a: BinaryMatrix, b: BinaryMatrix) -> None:
    reached = {a(i): i for i in reversed(range(a.size()))}
    missing = next((i for i in range(b.size()) if b(i) not in reached), None)

    if missing is None:
        x = a.solve(b)
        assert x == b.invert_and_compose(a)
        assert [x(i) for i in range(b.size())] == [reached[b(i)] for i in range(b.size())]
    else:
        with pytest.raises(LayoutError) as caught:
            a.solve(b)
        assert (caught.value.code, caught.value.index, caught.value.found) == ("E806", missing, b(missing))


ALL_SWIZZLES = [Swizzle(b, m, sign * s) for b in (1, 2) for m in range(5) for s in range(b, 5) for sign in (1, -1)]


@settings(max_examples=examples(150))
@given(matrices(rows=5, columns=4))
def test_a_swizzled_layout_is_found_exactly_where_some_swizzle_undoes_all_carries(m: BinaryMatrix) -> None:
    values = [m(i) for i in range(m.size())]
    undone = any(disjoint([swizzle(column) for column in m.columns]) for swizzle in [Swizzle(0, 0, 0), *ALL_SWIZZLES])

    if undone:
        assert images(m.to_layout_like()) == values
        assert images(m.to_layout()) == values if disjoint(list(m.columns)) else carries(m)
    else:
        with pytest.raises(LayoutError) as caught:
            m.to_layout_like()
        assert caught.value.code == "E809"
        assert carries(m)


def disjoint(columns: list[int]) -> bool:
    return sum(columns) == int(np.bitwise_or.reduce(columns)) if columns else True


@settings(max_examples=examples(200))
@given(swizzles(), binary)
def test_a_swizzled_layout_is_found_again(swizzle: Swizzle, layout: Layout) -> None:
    assume(nonlinear(images(layout)) is None)
    f = ComposedLayout(swizzle, 0, layout)

    assert images(BinaryMatrix.of(f).to_layout_like()) == images(f)


@settings(max_examples=examples(200))
@given(binary | swizzles(), binary | swizzles())
def test_matrices_decide_equality(f: LayoutLike, g: LayoutLike) -> None:
    left, right = images(f), images(g)

    if nonlinear(left) is not None and nonlinear(right) is not None:
        with pytest.raises(LayoutError):
            equal(f, g)
    else:
        assert equal(f, g) == (left == right)
        assert equal(f, f) if nonlinear(left) is None else columns_of(g) is not None
