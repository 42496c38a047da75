"""Property: symbolic and tabulated evaluation of layouts, swizzles and thread-value layouts agree."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from argus.core.algebra import sym
from argus.core.index import Symbol
from argus.core.layout import TV, IntTuple, Layout, Swizzle, column_major, row_major
from argus.core.walk import IntArray, evaluate
from argus.testing.strategies import layouts, swizzles
from property_tests.depth import examples

extents = st.integers(1, 5)


@st.composite
def thread_value_layouts(draw: DrawFn) -> TV:
    """Disjoint digits of every axis, assigned to threads and values in any order, with replication among threads."""
    tile = tuple(draw(st.lists(st.sampled_from((1, 2, 4, 6, 8, 12)), min_size=1, max_size=3)))
    modes: list[tuple[int, int]] = []
    below = 1
    for extent in tile:
        rest, unit = extent, below
        while rest > 1:
            part = draw(st.sampled_from([n for n in range(2, rest + 1) if rest % n == 0]))
            modes.append((part, unit))
            rest, unit = rest // part, unit * part
        below *= extent
    order = draw(st.permutations(modes))
    cut = draw(st.integers(0, len(order)))
    copies = draw(st.lists(st.just((2, 0)), max_size=1))
    return TV(_layout([*order[:cut], *copies]), _layout(order[cut:]), tile)


def _layout(modes: list[tuple[int, int]]) -> Layout:
    shape: IntTuple = tuple(extent for extent, _ in modes) or 1
    stride: IntTuple = tuple(unit for _, unit in modes) or 0
    return Layout(shape, stride)


@given(layouts())
def test_table_is_the_function(layout: Layout) -> None:
    table = layout.table()
    assert table.tolist() == [layout(index) for index in range(layout.size())]
    assert layout.cosize() == 1 + int(table.max())


@given(layouts())
def test_symbolic_image_is_the_table(layout: Layout) -> None:
    at = Symbol("at", "fresh", 0, layout.size() - 1)
    indices = np.arange(layout.size(), dtype=np.int64)
    found = evaluate(layout.at(sym(at)), {at: indices})
    assert np.array_equal(np.broadcast_to(found, indices.shape), layout.table())


@given(st.lists(extents, min_size=1, max_size=4).map(tuple))
def test_compact_layouts_enumerate(shape: tuple[int, ...]) -> None:
    assert column_major(shape).table().tolist() == list(range(prod(shape)))
    table = row_major(shape).table().reshape(shape, order="F")
    assert np.array_equal(table, np.arange(prod(shape)).reshape(shape))


@given(swizzles())
def test_a_swizzle_permutes_each_period(swizzle: Swizzle) -> None:
    offsets = np.arange(2 * swizzle.period, dtype=np.int64)
    images = swizzle.images(offsets)
    assert np.array_equal(np.sort(images.reshape(2, -1), axis=1), offsets.reshape(2, -1))
    assert np.array_equal(swizzle.images(images), offsets)

    at = Symbol("at", "fresh", 0, 2 * swizzle.period - 1)
    assert np.array_equal(evaluate(swizzle.at(sym(at)), {at: offsets}), images)


@pytest.mark.share(3)
@settings(max_examples=examples(200))
@given(thread_value_layouts())
def test_coordinates_of_a_symbolic_thread_are_the_table(tv: TV) -> None:
    count = tv.threads.size()
    thread = Symbol("thread", "thread", 0, count - 1)
    lanes = np.arange(count, dtype=np.int64)
    table = tv.coordinates()
    for value in range(tv.values.size()):
        for axis, expression in enumerate(tv.coordinates_at(sym(thread), value)):
            found = np.broadcast_to(np.asarray(evaluate(expression, {thread: lanes})), lanes.shape)
            assert np.array_equal(found, table[axis][:, value])


@given(thread_value_layouts())
def test_every_element_is_held(tv: TV) -> None:
    elements: IntArray = tv.elements()
    assert set(elements.ravel().tolist()) == set(range(prod(tv.tile)))
    numbers = np.ravel_multi_index(tv.coordinates(), tv.tile, order="F")
    assert np.array_equal(numbers, elements)
