"""Index maps: reshapes agree with NumPy's at every element, and quotients by symbolic sizes vanish."""

from __future__ import annotations

import numpy as np
import pytest

from argus.core import algebra
from argus.core.index import Index
from argus.core.walk import symbols
from argus.nests.affine import (
    bound,
    computed,
    extents_of,
    flattened,
    in_range,
    quotient,
    recombined,
    remainder,
    reshaped,
)
from argus.nests.nest import Axis, size

SHAPES = [((2, 3, 4), (6, 4)), ((6, 4), (2, 3, 4)), ((4, 6), (3, 8)), ((5, 1, 2), (10,)), ((1, 7), (7, 1, 1))]


@pytest.mark.parametrize(("old", "new"), SHAPES)
def test_a_reshape_reads_the_elements_that_numpys_has(old: tuple[int, ...], new: tuple[int, ...]) -> None:
    axes = [Axis(f"i{number}", algebra.const(extent)) for number, extent in enumerate(new)]
    places = reshaped([axis.index for axis in axes], _constants(new), _constants(old), extents_of(axes))
    data = np.arange(np.prod(old)).reshape(old)
    grid = np.meshgrid(*map(np.arange, new), indexing="ij")
    values = {axis.name: each for axis, each in zip(axes, grid, strict=True)}
    found = data[tuple(np.broadcast_to(computed(place, values), new) for place in places)]
    assert (found == data.reshape(new)).all()


def _constants(shape: tuple[int, ...]) -> tuple[Index, ...]:
    return tuple(map(algebra.const, shape))


def test_merging_and_splitting_symbolic_axes_gives_the_axes_back() -> None:
    n, m, k = size("N"), size("M"), size("K")
    axes = [Axis("i", n), Axis("j", m), Axis("l", k)]
    extents = extents_of(axes)
    index = tuple(axis.index for axis in axes)
    merged = reshaped(index, (n, m, k), (algebra.mul(n, m), k), extents)
    assert merged == (flattened(index[:2], (n, m)), index[2])
    assert reshaped(merged, (algebra.mul(n, m), k), (n, m, k), extents) == index


def test_a_quotient_stays_where_the_extents_do_not_explain_it() -> None:
    n, m = size("N"), size("M")
    axis = Axis("i", algebra.mul(n, m))
    found = quotient(axis.index, m, extents_of([axis]))
    assert {s.name for s in symbols(found)} == {"i", "M"}
    assert computed(found, {"i": 11, "M": 4, "N": 3}) == 2
    assert computed(remainder(axis.index, m, extents_of([axis])), {"i": 11, "M": 4, "N": 3}) == 3


def test_bounds_of_a_window() -> None:
    n = size("N")
    i, w = Axis("i", n), Axis("w", algebra.const(3))
    place = algebra.add(algebra.mul(i.index, 2), w.index, -1)
    extents = extents_of([i, w])
    assert bound(place, extents, upper=True) is algebra.add(algebra.mul(n, 2), -1)
    assert bound(place, extents, upper=False) is algebra.const(-1)
    assert not in_range(place, algebra.mul(n, 2), extents)
    assert in_range(algebra.add(place, 1), algebra.add(algebra.mul(n, 2), 1), extents)


def test_the_extent_of_a_prefix_depends_on_the_axis_around_it() -> None:
    n = size("N")
    i = Axis("i", n)
    j = Axis("j", algebra.add(i.index, 1))
    assert in_range(j.index, n, extents_of([i, j]))
    assert not in_range(algebra.add(j.index, 1), n, extents_of([i, j]))


def test_a_remainder_and_its_multiple_are_the_number() -> None:
    n, c = Axis("i", size("N")).index, size("C")
    parts = algebra.add(algebra.mul(algebra.floordiv(n, 8), 16), algebra.mul(algebra.mod(n, 8), 2), c)
    assert recombined(parts) is algebra.add(algebra.mul(n, 2), c)
    symbolic = algebra.add(algebra.mul(algebra.floordiv(n, c), c), algebra.mod(n, c))
    assert recombined(symbolic) is n
    assert recombined(algebra.mod(n, 8)) is algebra.mod(n, 8)
