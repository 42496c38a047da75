"""Convolutions get back the axes of one element that their nests leave out, and have the same numbers."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

from argus.core import algebra
from argus.core.index import Const
from argus.nests.axes_of_one import whole_convolution
from argus.nests.canonical import Canonical, canonical
from argus.nests.convolution import Taps, convolution_of
from argus.nests.evaluate import nest_value
from argus.nests.nest import Apply, Axis, Expr, Nest, Read, TensorType
from argus.nests.rewrite import reads, with_reads
from argus.nests.text import canonical_text
from tests.nests.convolutions_of_one import (
    ONE_CHANNEL,
    PADDED,
    SHAPES,
    Shape,
    Types,
    at_zero,
    extents,
    nest_of,
    of,
    turned,
)

ALL = {**SHAPES, **ONE_CHANNEL}


def whole_form(nest: Nest, types: Types) -> Canonical:
    made = whole_convolution(nest, types)
    return canonical((nest if made is None else made,), types, {}, 5, join=False, ones=made is not None)


@pytest.mark.parametrize("name", SHAPES)
def test_a_form_is_that_of_several_elements_along_each_axis(name: str) -> None:
    """So that one kernel is for both. A graph that reads at 0, or has dropped the axes, has the same one."""
    several, one = nest_of(SHAPES[name].several), nest_of(SHAPES[name])
    wanted = canonical_text(whole_form(*several))

    assert whole_convolution(*several) is None
    assert canonical_text(whole_form(*one)) == wanted
    assert canonical_text(whole_form(at_zero(one[0]), one[1])) == wanted
    assert canonical_text(whole_form(at_zero(one[0], "n"), one[1])) == wanted


@pytest.mark.parametrize("name", ALL)
def test_the_numbers_are_the_same(name: str) -> None:
    shape = evolve(ALL[name], c=min(ALL[name].c, 3))
    nest, types = nest_of(shape)
    drawn = np.random.default_rng(0)
    arrays = {each: drawn.normal(size=numbers(of)) for each, of in types.items()}

    found = whole_convolution(at_zero(nest), types)

    assert found is not None
    assert numbers(found.type) == shape.outputs
    np.testing.assert_array_equal(nest_value(found, arrays, {}), nest_value(nest, arrays, {}))
    assert convolution_of(found, types) is not None


@pytest.mark.parametrize("name", ONE_CHANNEL)
def test_an_axis_of_one_channel_stays_in_the_form(name: str) -> None:
    form = whole_form(*nest_of(ONE_CHANNEL[name]))
    found = convolution_of(form.nests[0], {each.type.name: each.type for each in form.parameters})
    assert found == (ONE_CHANNEL[name].conv, "X0", "X1")


def numbers(of: TensorType) -> tuple[int, ...]:
    return tuple(each.value for each in of.shape if isinstance(each, Const))


def added(nest: Nest, *beside: Read) -> Nest:
    body: Expr = nest.body
    for each in beside:
        body = Apply("add", (body, each))
    return evolve(nest, body=body)


def test_a_tensor_in_the_shape_of_the_output_is_read_at_all_axes() -> None:
    """One of other extents is read as it was."""
    nest, types = nest_of(Shape(PADDED, (1, 9), n=1))
    zero, (_, o, _, x) = algebra.const(0), (axis.index for axis in nest.domain)
    residual, bias = Read("R", (zero, o, zero, x), "bf16"), Read("B", (zero, o, zero, zero), "bf16")
    types = {
        **types,
        "R": TensorType("R", extents(1, 11, 1, 9), "bf16"),
        "B": TensorType("B", extents(1, 11, 1, 1), "bf16"),
    }

    found = whole_convolution(at_zero(added(nest, residual, bias)), types)

    assert found is not None
    index = {read.tensor: read.index for read in reads(found.body)}
    assert index["R"] == tuple(axis.index for axis in found.domain)
    assert index["B"] == bias.index


@pytest.mark.parametrize("groups", [2, 4])
def test_groups_stay(groups: int) -> None:
    nest, types = nest_of(Shape(of(Taps(3), groups=groups), (9,), n=1, c=8, o=12))
    assert whole_convolution(nest, types) is None
    assert whole_convolution(at_zero(nest), types) is None


def test_one_output_of_a_transposed_step_stays() -> None:
    """The step along its axis is not known from it."""
    shape = Shape(of(turned(3, 2, 1), turned(3, 2, 1)), (5, 1))
    nest, types = nest_of(shape)
    assert shape.outputs[-1] == 1
    assert whole_convolution(nest, types) is None


def test_other_nests_stay() -> None:
    nest, types = nest_of(SHAPES["one input, two axes"])
    assert whole_convolution(evolve(nest, body=evolve(nest.body, op="max")), types) is None
    assert whole_convolution(evolve(nest, domain=(*nest.domain, Axis("more", algebra.const(3)))), types) is None


def test_a_tap_that_is_read_elsewhere_is_no_convolution() -> None:
    """Filters one after the tap, and inputs of the next channel."""
    nest, types = nest_of(SHAPES["one input, two axes"])

    def moved(tensor: str, axis: int) -> Nest:
        def other(read: Read) -> Read:
            at = tuple(algebra.add(each, int(k == axis)) for k, each in enumerate(read.index))
            return evolve(read, index=at) if read.tensor == tensor else read

        return evolve(nest, body=with_reads(nest.body, other))

    assert whole_convolution(moved("F", 3), types) is None
    assert whole_convolution(moved("F", 1), types) is None
    assert whole_convolution(moved("X", 1), types) is None


def test_one_channel_without_its_axis_is_no_error() -> None:
    """As the canonical form has filters of one element and one channel."""
    nest, types = nest_of(Shape(of(Taps(1), Taps(1)), (4, 5), c=1))
    form = canonical((nest,), types, {}, 5, join=False)
    assert convolution_of(form.nests[0], {each.type.name: each.type for each in form.parameters}) is None
