"""Property: relations and predicates of layouts agree with brute force over every index of small functions."""

from __future__ import annotations

from itertools import product as tuples

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from argus.core.layout import ComposedLayout, IntTuple, Layout, LayoutError, LayoutLike
from argus.core.layout.coalesce import coalesce
from argus.core.layout.compose import composition
from argus.core.layout.images.tables import first_repeated
from argus.core.layout.inttuple import compatible
from argus.core.layout.predicates import (
    are_complementary,
    functionally_equal,
    is_admissible,
    is_bijective,
    is_compact,
    is_contiguous,
    is_disjoint,
    is_injective,
    is_surjective,
)
from argus.core.layout.relation import Relation
from argus.core.layout.witness import Disagreement, Refusal, Shared, Sizes, Witness
from property_tests.depth import examples
from property_tests.functions import (
    binary,
    collision,
    compact,
    factorisations,
    functions,
    hole,
    images,
    layouts,
    not_onto,
    some_layout,
    swizzles,
    trees,
    upward,
)

pytestmark = pytest.mark.share(3, among="layouts: views")

# -- predicates ----------------------------------------------------------------------------------------------


@settings(max_examples=examples(400))
@given(functions)
def test_injective_contiguous_and_compact_are_those_of_the_table(f: LayoutLike) -> None:
    values = images(f)

    assert is_injective(f).witness == collision(values)
    assert is_contiguous(f).witness == hole(values)
    assert is_compact(f).witness == (not_onto(values, len(values)) or collision(values))
    for answer in (is_injective(f), is_contiguous(f), is_compact(f)):
        assert bool(answer) == answer.holds == (answer.witness is None)
        assert answer.reason


@settings(max_examples=examples(300))
@given(functions, st.data())
def test_onto_is_that_of_the_table(f: LayoutLike, data: st.DataObject) -> None:
    values = images(f)
    onto = data.draw(st.integers(0, 40) | st.just(max(values) + 1))

    assert is_surjective(f, onto).witness == not_onto(values, onto)
    assert is_bijective(f, onto).witness == (not_onto(values, onto) or collision(values))


@settings(max_examples=examples(300))
@given(functions, functions, st.booleans())
def test_equality_of_functions_is_that_of_tables(f: LayoutLike, g: LayoutLike, one_function: bool) -> None:
    if one_function and isinstance(f, Layout):
        g = coalesce(f)
    left, right = images(f), images(g)
    expected: Witness | None = None
    if len(left) != len(right):
        expected = Sizes(len(left), len(right))
    elif left != right:
        expected = next(Disagreement(i, a, b) for i, (a, b) in enumerate(zip(left, right, strict=True)) if a != b)

    assert functionally_equal(f, g).witness == expected


@settings(max_examples=examples(300))
@given(trees(st.integers(1, 3), st.integers(-2, 3)), trees(st.integers(1, 3), st.integers(-2, 3)))
def test_near_layouts_are_equal_where_their_tables_are(
    a: tuple[IntTuple, IntTuple], b: tuple[IntTuple, IntTuple]
) -> None:
    f, g = Layout(*a), Layout(*b)
    assume(f.size() == g.size())
    left, right = images(f), images(g)
    first = next((i for i in range(len(left)) if left[i] != right[i]), None)

    found = functionally_equal(f, g).witness
    assert found == (None if first is None else Disagreement(first, left[first], right[first]))


@settings(max_examples=examples(200))
@given(functions, functions)
def test_disjoint_is_that_of_tables(f: LayoutLike, g: LayoutLike) -> None:
    left, right = images(f), images(g)
    shared = [(i, right.index(value), value) for i, value in enumerate(left) if value != 0 and value in right]

    assert is_disjoint(f, g).witness == (Shared(*shared[0]) if shared else None)


@settings(max_examples=examples(200))
@given(st.data())
def test_complements_are_those_of_tables(data: st.DataObject) -> None:
    whole = data.draw(compact())
    cut = data.draw(st.integers(0, len(whole)))
    a: LayoutLike = Layout(tuple(m.shape for m in whole)[:cut], tuple(m.stride for m in whole)[:cut])
    r: LayoutLike = Layout(tuple(m.shape for m in whole)[cut:], tuple(m.stride for m in whole)[cut:])
    if data.draw(st.booleans()):
        r = ComposedLayout(data.draw(swizzles()), 0, r)
    n = data.draw(st.sampled_from([whole.size(), whole.size(), whole.size() + 1, whole.size() - 1]))
    sums = [a(i) + r(j) for j in range(r.size()) for i in range(a.size())]

    assert are_complementary(a, r, n).witness == (not_onto(sums, n) or collision(sums))


@given(layouts, layouts)
def test_admissible_is_what_composition_decides(a: Layout, b: Layout) -> None:
    answer = is_admissible(a, b)

    if answer:
        assert images(composition(a, b)) == [a(b(i)) for i in range(b.size())]
    else:
        witness = answer.witness
        assert isinstance(witness, Refusal)
        assert witness.code == "E804"
        assert witness.index is not None
        assert witness.expected == a(b(witness.index)) != witness.found


# -- relations -----------------------------------------------------------------------------------------------


@settings(max_examples=examples(300))
@given(functions)
def test_a_relation_says_what_its_function_does(f: LayoutLike) -> None:
    relation, values = Relation.of(f), images(f)

    assert relation == Relation(enumerate(values)) == Relation.of_values(values)
    assert relation.is_function()
    assert relation.collision() == collision(values)
    assert relation.image().tolist() == sorted(set(values))
    assert relation.inverse().inverse() == relation
    assert all(relation(i) == (value,) for i, value in enumerate(values))


@settings(max_examples=examples(300))
@given(layouts)
def test_a_table_of_a_layout_gives_its_coalesced_form(layout: Layout) -> None:
    assert Relation.of(layout).to_layout() == coalesce(layout)
    found = Relation.of(layout).to_layout(layout.shape)
    assert compatible(layout.shape, found.shape)
    assert images(found) == images(layout)


@settings(max_examples=examples(300))
@given(upward | binary, st.data())
def test_a_spoiled_table_is_refused_where_no_layout_of_any_factorisation_agrees(
    layout: Layout, data: st.DataObject
) -> None:
    values = images(layout)
    assume(len(values) <= 96)
    for place in data.draw(st.lists(st.integers(0, len(values) - 1), min_size=1, max_size=2)):
        values[place] += data.draw(st.integers(-2, 2))
    agree = some_layout(values) if values[0] == 0 else 0

    if agree == len(values):
        assert images(Relation.of_values(values).to_layout()) == values
    else:
        with pytest.raises(LayoutError) as caught:
            Relation.of_values(values).to_layout()
        fault = caught.value
        assert (fault.code, fault.index, fault.expected) == ("E804", agree, values[agree])
        assert fault.expected != fault.found
        if fault.found is not None and agree:
            repaired = [*values[:agree], fault.found, *values[agree + 1 :]]
            assert some_layout(repaired) > agree


@settings(max_examples=examples(200))
@given(layouts, st.data())
def test_a_layout_through_a_shape_is_refused_only_where_there_is_none(layout: Layout, data: st.DataObject) -> None:
    values = images(layout)
    assume(len(values) <= 96)
    shape = data.draw(st.sampled_from([s for s in [*factorisations(len(values)), (1, len(values))] if s] or [(1,)]))
    if data.draw(st.booleans()):
        values[data.draw(st.integers(0, len(values) - 1))] += 1
    refined = [tuple(inner) for inner in tuples(*[[f or (1,) for f in factorisations(n)] for n in shape])]

    def strides(extents: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(values[int(np.prod(extents[:k]))] if extents[k] > 1 else 0 for k in range(len(extents)))

    candidates = [Layout(flat, strides(flat)) for flat in [sum(each, ()) for each in refined]]
    agreements = [[c(i) == value for i, value in enumerate(values)] for c in candidates]
    best = max(len(values) if all(a) else a.index(False) for a in agreements)
    if best == len(values):
        found = Relation.of_values(values).to_layout(shape)
        assert compatible(shape, found.shape)
        assert images(found) == values
    else:
        with pytest.raises(LayoutError) as caught:
            Relation.of_values(values).to_layout(shape)
        assert (caught.value.code, caught.value.index, caught.value.expected) == ("E804", best, values[best])


pairs = st.frozensets(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), max_size=12)


@pytest.mark.share(4)
@settings(max_examples=examples(300))
@given(pairs, pairs)
def test_relations_are_sets_of_pairs(a: frozenset[tuple[int, int]], b: frozenset[tuple[int, int]]) -> None:
    left, right = Relation(a), Relation(b)

    assert left.union(right) == Relation(a | b)
    assert left.intersect(right) == Relation(a & b)
    assert left.compose(right) == Relation({(x, z) for x, y in b for w, z in a if y == w})
    assert left.inverse() == Relation({(y, x) for x, y in a})
    assert left.restrict([0, 1, 7]) == Relation({(x, y) for x, y in a if x in {0, 1, 7}})
    assert (left == right) == (a == b) == (left.first_difference(right) is None)
    difference = left.first_difference(right)
    if difference is not None:
        assert difference.index == min(x for x, _ in a ^ b)
        assert set(difference.left) == {y for x, y in a if x == difference.index}
        assert set(difference.right) == {y for x, y in b if x == difference.index}
    assert left.is_function() == (len({x for x, _ in a}) == len(a))
    assert left.is_injective() == all(u == x for u, v in a for x, y in a if v == y)
    meeting = left.collision()
    if meeting is not None:
        assert {(meeting.first, meeting.image), (meeting.second, meeting.image)} <= a
        assert meeting.second == min(x for x, y in a for u, v in a if v == y and u < x)


@given(st.lists(st.integers(-3, 3), min_size=1))
def test_the_first_repeated_value_of_a_table(values: list[int]) -> None:
    found = first_repeated(np.array(values, np.int64))
    expected = collision(values)

    assert found == (None if expected is None else (expected.first, expected.second))
