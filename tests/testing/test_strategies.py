"""Strategies draw what they document, and shrink to the smallest failing case."""

from __future__ import annotations

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject, SearchStrategy

from argus.layout import ComposedLayout, IntTuple, Layout, Swizzle, composition, depth, flatten, logical_divide
from argus.testing.laws import LAWS
from argus.testing.operands import operands
from argus.testing.strategies import (
    compact_layouts,
    composable_pairs,
    cotargets,
    flat_layouts,
    in_domain_pairs,
    inner_layouts,
    int_tuples,
    layouts,
    nested_layouts,
    power_of_two_layouts,
    shapes,
    swizzled_layouts,
    swizzles,
    tilers,
)
from property_tests.depth import examples

QUICK = settings(max_examples=examples(300))


def is_power(number: int) -> bool:
    return number & (number - 1) == 0


@given(int_tuples(), shapes(2, 5))
def test_trees_keep_their_bounds(tree: IntTuple, shape: IntTuple) -> None:
    assert 1 <= len(flatten(tree)) <= 5
    assert 1 <= len(flatten(shape)) <= 2
    assert all(1 <= extent <= 5 for extent in flatten(shape))


@given(layouts(2, 5, st.integers(-3, 4)), flat_layouts(), nested_layouts())
def test_layouts_keep_their_bounds(layout: Layout, flat: Layout, nested: Layout) -> None:
    assert 1 <= len(layout.flat_modes) <= 2
    assert all(1 <= extent <= 5 and -3 <= stride <= 4 for extent, stride in layout.flat_modes)
    assert depth(flat) == 1
    assert depth(nested) > 1


@given(compact_layouts(), power_of_two_layouts())
def test_special_layouts(compact: Layout, power: Layout) -> None:
    assert sorted(compact.table().tolist()) == list(range(compact.size()))
    assert all(is_power(number) for mode in power.flat_modes for number in mode)


@given(swizzles(), swizzled_layouts())
def test_swizzles(swizzle: Swizzle, swizzled: ComposedLayout) -> None:
    assert swizzle.bits <= abs(swizzle.shift) <= swizzle.bits + 2
    assert isinstance(swizzled.outer, Swizzle)
    assert swizzled.offset % swizzled.outer.period == 0


@given(in_domain_pairs())
def test_pairs_lie_in_the_domain(pair: tuple[Layout, Layout]) -> None:
    a, b = pair

    assert 0 <= b.table().min() <= b.table().max() < a.size()


@given(composable_pairs())
def test_composable_pairs_compose(pair: tuple[Layout, Layout]) -> None:
    assert composition(*pair).size() == pair[1].size()


@given(st.data())
def test_tilers_divide_a_column_major_layout(data: DataObject) -> None:
    layout = Layout(data.draw(shapes()))

    assert logical_divide(layout, data.draw(tilers(layout))).size() == layout.size()
    assert data.draw(cotargets(layout)) >= 1


@pytest.mark.parametrize(
    ("strategy", "smallest"),
    [
        (layouts(), Layout((2,), (0,))),
        (compact_layouts(), Layout((2,), (1,))),
        (inner_layouts(Layout(8)), Layout((2,), (0,))),
    ],
)
def test_small_cases_are_found(strategy: SearchStrategy[Layout], smallest: Layout) -> None:
    found = find(strategy, lambda layout: layout.size() > 1, settings=QUICK)

    assert found.flat_modes == smallest.flat_modes


@pytest.mark.share(4)
def test_a_carry_shrinks_to_few_modes() -> None:
    def carries(pair: tuple[Layout, Layout]) -> bool:
        a, b = pair
        return any(a(b(x)) != x * a(b(1)) for x in range(2, b.size()))

    a, b = find(in_domain_pairs(), carries, settings=settings(max_examples=2000))

    assert len(a.flat_modes) + len(b.flat_modes) <= 3
    assert a.size() <= 8


@given(st.data())
def test_operands_are_of_the_kinds_of_the_law(data: DataObject) -> None:
    law = data.draw(st.sampled_from(LAWS))
    drawn = data.draw(operands(law))

    assert len(drawn) == len(law.operands)
    for kind, operand, before in zip(law.operands, drawn, (None, *drawn), strict=False):
        assert kind not in {"layout", "inner"} or isinstance(operand, Layout)
        assert kind not in {"count", "cotarget"} or isinstance(operand, int)
        assert kind != "swizzle" or isinstance(operand, Swizzle)
        if kind == "inner":
            assert isinstance(operand, Layout)
            assert isinstance(before, Layout)
            assert operand.cosize() <= before.size()
