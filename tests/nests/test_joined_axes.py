"""Neighbouring axes that all reads run through together are one, and the nest has the same numbers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from attrs import evolve

from argus.core import algebra
from argus.core.index import Const
from argus.nests.convolution import Convolution, Taps, convolution_nest, convolution_of
from argus.nests.evaluate import nest_value
from argus.nests.joined_axes import with_joined_axes
from argus.nests.nest import Apply, Coordinate, Expr, Nest, Read, TensorType

POINT = Taps(1)
Types = Mapping[str, TensorType]


def of(shape: tuple[int, ...], name: str) -> TensorType:
    return TensorType(name, tuple(map(algebra.const, shape)), "f32")


def convolution(*axes: Taps, x: tuple[int, ...], y: tuple[int, ...]) -> tuple[Nest, dict[str, TensorType]]:
    taps = tuple(axis.taps for axis in axes if axis.taps > 1)
    types = {"X": of((2, 3, *x), "X"), "F": of((4, 3, *taps), "F"), "Y": of((2, 4, *y), "Y")}
    return convolution_nest(Convolution(axes), types["X"], types["F"], types["Y"]), types


def numbers(of: TensorType) -> tuple[int, ...]:
    return tuple(each.value for each in of.shape if isinstance(each, Const))


def have_equal_numbers(nest: Nest, types: Types, found: Nest, shaped: Types) -> None:
    drawn = np.random.default_rng(0)
    arrays = {name: drawn.normal(size=numbers(each)) for name, each in types.items() if name != nest.output}
    others = {name: each.reshape(numbers(shaped[name])) for name, each in arrays.items()}
    np.testing.assert_array_equal(nest_value(found, others, {}).ravel(), nest_value(nest, arrays, {}).ravel())


def test_a_convolution_of_single_elements_is_a_product_of_all_places() -> None:
    """With what is added to each sum at its own place."""
    nest, types = convolution(POINT, POINT, POINT, x=(2, 3, 5), y=(2, 3, 5))
    types["R"] = of((2, 4, 2, 3, 5), "R")
    residual = Read("R", tuple(axis.index for axis in nest.domain), "f32")
    whole = evolve(nest, body=Apply("add", (nest.body, residual)))

    found, shaped = with_joined_axes(whole, types)

    assert [axis.extent for axis in found.domain] == list(map(algebra.const, (2, 4, 30)))
    assert numbers(shaped["X"]) == (2, 3, 30)
    assert numbers(shaped["R"]) == (2, 4, 30)
    have_equal_numbers(whole, types, found, shaped)
    sums = convolution_of(with_joined_axes(nest, types)[0], shaped)
    assert sums is not None
    assert sums[0] == Convolution((POINT,))


def test_axes_that_a_window_is_of_stay() -> None:
    nest, types = convolution(Taps(3, pad=1), POINT, POINT, x=(4, 3, 5), y=(4, 3, 5))
    found, shaped = with_joined_axes(nest, types)
    assert [axis.extent for axis in found.domain] == list(map(algebra.const, (2, 4, 4, 15)))
    have_equal_numbers(nest, types, found, shaped)


def test_steps_and_parts_of_a_tensor_stay() -> None:
    for axis, x in ((Taps(1, stride=2), (8, 10)), (Taps(1, pad=1), (2, 3)), (POINT, (5, 5)), (POINT, (4, 6))):
        nest, types = convolution(axis, axis, x=x, y=(4, 5))
        assert with_joined_axes(nest, types) == (nest, types)


@pytest.mark.parametrize("place", ["exchanged", "another place", "a number", "two places of one tensor"])
def test_other_reads_of_both_axes_keep_them_apart(place: str) -> None:
    nest, types = convolution(POINT, POINT, x=(4, 4), y=(4, 4))
    n, o, y, x = (axis.index for axis in nest.domain)
    types["R"] = of((2, 4, 4, 4), "R")
    beside: dict[str, Expr] = {
        "exchanged": Read("R", (n, o, x, y), "f32"),
        "another place": Read("R", (n, o, y, algebra.sub(3, x)), "f32"),
        "a number": Coordinate(x),
        "two places of one tensor": Read("X", (n, y, x, o), "f32"),
    }
    if place == "two places of one tensor":
        nest, types = convolution(POINT, POINT, x=(4, 4), y=(4, 4))
        types["X"] = of((2, 4, 4, 4), "X")
    whole = evolve(nest, body=Apply("add", (nest.body, beside[place])))
    assert with_joined_axes(whole, types) == (whole, types)
