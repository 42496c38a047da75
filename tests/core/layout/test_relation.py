from __future__ import annotations

import pickle

import numpy as np
import pytest

from argus.core.layout import ComposedLayout, IntTuple, Layout, LayoutError, Swizzle
from argus.core.layout.relation import Images, Relation
from argus.core.layout.witness import Collision


def refusal(values: list[int], shape: IntTuple | None = None) -> tuple[str, int | None, int | None, int | None]:
    with pytest.raises(LayoutError) as caught:
        Relation.of_values(values).to_layout(shape)
    return caught.value.code, caught.value.index, caught.value.expected, caught.value.found


def test_pairs_are_sorted_once_and_read_only() -> None:
    relation = Relation([(2, 5), (0, 1), (2, 5), (0, -1)])

    assert relation.pairs.tolist() == [[0, -1], [0, 1], [2, 5]]
    assert len(relation) == 3
    assert not relation.pairs.flags.writeable
    assert not pickle.loads(pickle.dumps(relation)).pairs.flags.writeable  # noqa: S301 reason: bytes of this test
    assert hash(relation) == hash(Relation(np.array([[2, 5], [0, -1], [0, 1]])))
    assert repr(relation) == "Relation(0 -> -1, 0 -> 1, 2 -> 5; 3 pairs)"
    assert relation != "relation"


def test_a_relation_copies_its_array() -> None:
    array = np.array([[0, 1]])
    relation = Relation(array)
    array[0, 1] = 7

    assert relation(0) == (1,)


def test_what_composition_refuses_is_still_answered() -> None:
    a, b = Layout((6, 2), (1, 7)), Layout((3, 2), (2, 3))
    composed = Relation.of(a).compose(Relation.of(b))

    assert composed == Relation.of(ComposedLayout(a, 0, b))
    assert composed.is_function()
    assert composed.is_injective()
    assert composed.first_difference(Relation.of(Layout((3, 2), (2, 3)))) == Images(5, (8,), (7,))
    with pytest.raises(LayoutError, match="that of 5 is 8, and 7 for any layout that agrees below it") as caught:
        composed.to_layout()
    assert (caught.value.code, caught.value.index, caught.value.expected, caught.value.found) == ("E804", 5, 8, 7)


def test_composition_of_relations_follows_all_paths() -> None:
    after = Relation([(1, 10), (1, 11), (2, 12), (9, 0)])
    before = Relation([(0, 1), (0, 2), (5, 7)])

    assert after.compose(before).pairs.tolist() == [[0, 10], [0, 11], [0, 12]]
    assert len(Relation([]).compose(before)) == 0


def test_counterexamples() -> None:
    relation = Relation([(0, 3), (1, 4), (2, 3), (2, 5)])

    assert relation.ambiguity() == Images(2, (3, 5))
    assert relation.collision() == Collision(0, 2, 3)
    assert not relation.is_function()
    assert not relation.is_injective()
    assert relation.restrict([0, 1]).is_function()
    assert relation.domain().tolist() == [0, 1, 2]
    assert relation.image().tolist() == [3, 4, 5]


def test_images_shared_twice_name_one_that_both_indices_have() -> None:
    relation = Relation([(0, 3), (1, 1), (1, 2), (2, 1), (2, 2)])

    assert relation.collision() == Collision(1, 2, 1)


@pytest.mark.parametrize(
    "layout",
    [Layout((4, (2, 3)), (3, (12, 1))), Layout((3, 2), (-1, 5)), Layout((2, 2), (0, 0)), Layout(1, 7), Layout((), ())],
)
def test_the_table_of_a_layout_gives_a_layout(layout: Layout) -> None:
    relation = Relation.of(layout)

    assert Relation.of(relation.to_layout()) == relation
    assert Relation.of(relation.to_layout(layout.shape)) == relation


def test_a_layout_refines_the_requested_shape() -> None:
    values = Relation.of(Layout((2, 2, 3), (1, 8, 2)))

    assert values.to_layout((4, 3)) == Layout(((2, 2), 3), ((1, 8), 2))
    assert values.to_layout(((2, 2), (1, 3))) == Layout(((2, 2), (1, 3)), ((1, 8), (0, 2)))
    assert Relation.of(Layout(12)).to_layout((3, 4)) == Layout((3, 4))


def test_a_layout_may_exist_and_none_that_refines_the_shape() -> None:
    values = [Layout((2, 3), (1, 8))(i) for i in range(6)]

    assert Relation.of_values(values).to_layout() == Layout((2, 3), (1, 8))
    assert refusal(values, (3, 2)) == ("E804", 2, 8, 2)
    assert refusal([0, 1, 2, 4], (2, 2)) == ("E804", 3, 4, 3)
    assert refusal([1, 2, 3, 4], (2, 2)) == ("E804", 0, 1, 0)


def test_a_table_is_refused_at_the_first_index_that_no_layout_has() -> None:
    assert refusal([1, 2]) == ("E804", 0, 1, 0)
    assert refusal([0, 1, 5]) == ("E804", 2, 5, 2)
    assert refusal([0, 1, 5, 6, 10, 12]) == ("E804", 5, 12, 11)
    assert refusal([0, 1, 5, 7, 9, 10]) == ("E804", 3, 7, 6)
    assert refusal([0, 1, 5, 6, 11, 12]) == ("E804", 4, 11, 10)
    assert refusal([0, 1, 2, 3, 5, 6]) == ("E804", 4, 5, 4)


def test_differences_that_wrap_around_in_64_bits_are_no_layout() -> None:
    step = 1 << 61

    assert refusal([0, step, 0, step, 0, step, 0, 1]) == ("E804", 7, 1, step)
    # 8 * step is 0 in 64 bits.
    values = [i * step % (1 << 64) for i in range(2)] + [0, 0]
    assert refusal(values) == ("E804", 3, 0, step)


@pytest.mark.parametrize(
    ("pairs", "index", "words"),
    [
        ([], 0, "index 0 has no image"),
        ([(0, 0), (2, 1)], 1, "index 1 has no image"),
        ([(0, 0), (0, 1)], 0, "index 0 has several images"),
        ([(-1, 0), (0, 0)], -1, "index -1 is in its domain"),
    ],
)
def test_a_domain_with_gaps_is_no_layout(pairs: list[tuple[int, int]], index: int, words: str) -> None:
    with pytest.raises(LayoutError, match=words) as caught:
        Relation(pairs).to_layout()
    assert (caught.value.code, caught.value.index) == ("E804", index)


def test_the_shape_has_the_size_of_the_relation() -> None:
    with pytest.raises(LayoutError, match=r"the shape \(2,2\) does not have 6 elements") as caught:
        Relation.of(Layout(6)).to_layout((2, 2))
    assert caught.value.code == "E801"
    with pytest.raises(LayoutError, match=r"\(-2,-3\)"):
        Relation.of(Layout(6)).to_layout((-2, -3))


def test_only_pairs_of_integers_of_62_bits() -> None:
    with pytest.raises(LayoutError, match="holds integers") as caught:
        Relation.of_values([0.5])  # pyright: ignore[reportArgumentType] reason: what is refused
    assert caught.value.code == "E801"
    with pytest.raises(LayoutError, match="holds no pairs"):
        Relation(np.zeros((2, 3), np.int64))
    with pytest.raises(LayoutError, match="62 bits") as caught:
        Relation([(0, 1 << 62)])
    assert caught.value.code == "E810"


def test_large_layouts_and_strides_are_no_table() -> None:
    for layout in (Layout(1 << 27), Layout(2, 1 << 62), ComposedLayout(Layout(4, 1 << 50), 0, Layout(4, 1 << 20))):
        with pytest.raises(LayoutError) as caught:
            Relation.of(layout)
        assert caught.value.code == "E810"


def test_a_swizzled_layout_is_no_layout() -> None:
    relation = Relation.of(ComposedLayout(Swizzle(1, 0, 1), 0, Layout(4)))

    assert relation.inverse() == relation
    with pytest.raises(LayoutError):
        relation.to_layout()
