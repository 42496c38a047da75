from __future__ import annotations

import pytest

from argus.core.layout import ComposedLayout, Layout, LayoutError, LayoutLike, Swizzle
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
from argus.core.layout.witness import Collision, Disagreement, Missed, Outside, Refusal, Shared, Sizes

HUGE = 10**9
SWIZZLED = ComposedLayout(Swizzle(2, 0, 2), 0, Layout((4, 4), (4, 1)))


def test_an_answer_reads_as_a_condition_and_as_a_sentence() -> None:
    yes, no = is_injective(Layout((2, 2))), is_injective(Layout((2, 2), (1, 1)))

    assert yes
    assert not no
    assert str(yes) == "yes: the 4 images of (2,2):(1,2) are distinct"
    assert str(no) == "no: (2,2):(1,1) maps both 1 and 2 to 1"
    assert no.witness == Collision(1, 2, 1)


@pytest.mark.parametrize(
    ("f", "witness"),
    [
        (Layout((4, 2), (1, 4)), None),
        (Layout((4, 2), (-1, 4)), None),
        (Layout((3, 2), (2, 3)), None),
        (Layout((4, 3), (2, 3)), Collision(3, 8, 6)),
        (Layout((3, 4), (5, 0)), Collision(0, 3, 0)),
        (Layout((2, 3), (3, -3)), Collision(0, 3, 0)),
        (Layout((1, 4), (0, 1)), None),
        (Layout((), ()), None),
        (Swizzle(2, 0, -2), None),
        (SWIZZLED, None),
        (ComposedLayout(Swizzle(1, 0, 1), 0, Layout((2, 2), (2, 2))), Collision(1, 2, 3)),
        (ComposedLayout(Layout((2, 2), (1, 1)), 0, Swizzle(1, 0, 1)), Collision(1, 3, 1)),
    ],
)
def test_injective(f: LayoutLike, witness: Collision | None) -> None:
    assert is_injective(f).witness == witness
    assert bool(is_injective(f)) == (witness is None)


@pytest.mark.parametrize(
    ("f", "onto", "witness"),
    [
        (Layout((4, 2), (2, 1)), 9, Missed(8)),
        (Layout((2, 2), (1, 4)), 6, Missed(2)),
        (Layout((2, 2), (1, 4)), 5, Outside(3, 5)),
        (Layout((2, 2), (1, -1)), 2, Outside(2, -1)),
        (Layout((3, 2), (1, 1)), 4, None),
        (Layout(4), 0, Outside(0, 0)),
        (Swizzle(1, 0, 1), 4, None),
        (Swizzle(1, 0, 1), 5, Missed(4)),
        (Swizzle(1, 0, 1), 3, Outside(2, 3)),
        (SWIZZLED, 16, None),
        (ComposedLayout(Swizzle(1, 0, 1), 0, Layout(3)), 3, Outside(2, 3)),
    ],
)
def test_surjective(f: LayoutLike, onto: int, witness: Missed | Outside | None) -> None:
    assert is_surjective(f, onto).witness == witness


def test_bijective_is_onto_and_once() -> None:
    assert is_bijective(Layout((4, 2), (2, 1)))
    assert is_bijective(Layout((2, 2), (1, 1)), 3).witness == Collision(1, 2, 1)
    assert is_bijective(Layout((2, 2), (1, 1))).witness == Missed(3)
    assert is_compact(Layout((2, 2), (1, 4))).witness == Outside(2, 4)
    assert is_compact(SWIZZLED)


@pytest.mark.parametrize(
    ("f", "witness"),
    [
        (Layout((3, 2), (1, 2)), None),
        (Layout((3, 2), (-1, 2)), None),
        (Layout((2, 2), (-1, 4)), Missed(1)),
        (Layout((2, 3), (2, 3)), Missed(1)),
        (Swizzle(2, 1, 2), None),
        (SWIZZLED, None),
        (ComposedLayout(Swizzle(1, 0, 1), 0, Layout(3)), Missed(2)),
    ],
)
def test_contiguous(f: LayoutLike, witness: Missed | None) -> None:
    assert is_contiguous(f).witness == witness


def test_equal_functions() -> None:
    assert functionally_equal(Layout((2, 4), (1, 2)), Layout((4, 2), (1, 4)))
    assert functionally_equal(Layout((2, 4), (1, 3)), Layout((2, 4), (1, 2))).witness == Disagreement(2, 3, 2)
    assert functionally_equal(Layout((2, 4), (1, 3)), Layout((4, 2), (1, 3))).witness == Disagreement(2, 3, 2)
    assert functionally_equal(Layout(4), Layout(5)).witness == Sizes(4, 5)
    assert functionally_equal(Swizzle(1, 0, 1), Layout(4)).witness == Disagreement(2, 3, 2)
    twice = ComposedLayout(Swizzle(1, 0, 1), 0, Swizzle(1, 0, 1))
    assert functionally_equal(twice, Layout(4))
    swizzled = ComposedLayout(Swizzle(1, 0, 1), 0, Layout(6))
    assert functionally_equal(swizzled, Layout(6)).witness == Disagreement(2, 3, 2)


def test_admissible_is_answered_with_the_reason() -> None:
    answer = is_admissible(Layout((6, 2), (1, 7)), Layout((3, 2), (2, 3)))

    assert answer.witness == Refusal("E804", 5, 8, 7)
    assert "at index 5 it is 8" in answer.reason
    assert is_admissible(Layout((4, 2), (2, 1)), Layout(8)).reason == "the composition is (4,2):(2,1)"
    assert is_admissible(Swizzle(1, 0, 1), Layout(8))


def test_disjoint_images() -> None:
    assert is_disjoint(Layout((2, 2), (1, 4)), Layout(2, 2))
    assert is_disjoint(Layout(3, 2), Layout(2, 3))
    assert is_disjoint(Layout(4, 2), Layout(3, 3)).witness == Shared(3, 2, 6)
    assert is_disjoint(SWIZZLED, Layout(2, 16))


def test_complements() -> None:
    assert are_complementary(Layout(4, 2), Layout((2, 3), (1, 8)), 24)
    assert are_complementary(Layout(4, 2), Layout(2), 9).witness == Missed(8)
    assert are_complementary(Layout(2), Layout(2, 1), 3).witness == Collision(1, 2, 1)
    assert are_complementary(Layout(4, 2), Layout(2, 8), 24).witness == Missed(1)
    swizzled = ComposedLayout(Swizzle(1, 0, 1), 0, Layout(4))
    assert are_complementary(swizzled, Layout(2, 4), 8)
    assert are_complementary(swizzled, Layout(2, 4), 7).witness == Outside(6, 7)
    assert are_complementary(swizzled, Layout(2, 4), 9).witness == Missed(8)
    assert are_complementary(swizzled, Layout(2, 0), 4).witness == Collision(0, 4, 0)


def test_large_layouts_need_no_table() -> None:
    layout = Layout((HUGE, HUGE), (HUGE, 1))

    assert is_injective(layout)
    assert is_compact(layout)
    assert is_contiguous(layout)
    assert is_injective(Layout((HUGE, 2), (1, 0))).witness == Collision(0, HUGE, 0)
    assert is_injective(Layout((HUGE, HUGE), (3, 2))).witness == Collision(2, 3 * HUGE, 6)
    assert is_injective(Layout((HUGE, HUGE), (HUGE, -HUGE))).witness == Collision(0, HUGE + 1, 0)
    assert is_compact(Layout((HUGE, HUGE), (HUGE + 1, 1))).witness == Outside(2 * HUGE - 1, HUGE * HUGE)
    assert is_surjective(Layout((HUGE, 2), (2, 2 * HUGE)), 4 * HUGE).witness == Missed(1)
    assert functionally_equal(layout, Layout((HUGE, HUGE), (HUGE, 2))).witness == Disagreement(HUGE, 1, 2)
    assert is_disjoint(Layout(HUGE), Layout(HUGE, HUGE))
    assert are_complementary(Layout(HUGE), Layout(HUGE, HUGE), HUGE * HUGE)
    swizzled = ComposedLayout(Swizzle(3, 4, 3), 0, Layout((1 << 20, 1 << 20)))
    assert is_compact(swizzled)
    assert functionally_equal(swizzled, Layout(1 << 40)).witness == Disagreement(1 << 7, (1 << 7) + (1 << 4), 1 << 7)


@pytest.mark.share(3)
@pytest.mark.parametrize(
    "ask",
    [
        lambda: is_injective(Layout((2, 2, 1000 * HUGE), (1000 * HUGE, 1, 7))),
        lambda: is_injective(ComposedLayout(Layout((3, HUGE), (1, 4)), 0, Layout(HUGE))),
        lambda: is_disjoint(Layout(HUGE, 2), Layout(HUGE, 3)),
        lambda: functionally_equal(ComposedLayout(Layout((3, HUGE)), 0, Layout(HUGE)), Layout(HUGE)),
        lambda: are_complementary(SWIZZLED, Layout(HUGE, 16), 16 * HUGE),
    ],
)
def test_what_neither_modes_nor_a_table_decide_is_refused(ask: object) -> None:
    assert callable(ask)
    with pytest.raises(LayoutError, match="a table holds at most") as caught:
        ask()
    assert caught.value.code == "E810"


@pytest.mark.parametrize(
    ("f", "g"),
    [
        (Layout((2**30, 2), (1, 2**29)), Layout(4, 2**35)),
        (Layout((2**30, 2), (1, 2**29)), Layout(2**40, -1)),
        (Layout((2**30, 2**30), (6, 6)), Layout((5, 2**40), (2**40, 0))),
        (Layout((2**40, 2), (0, 0)), Layout((2**30, 3), (1, 5))),
    ],
    ids=str,
)
def test_ranges_and_common_divisors_decide_disjointness_without_a_table(f: Layout, g: Layout) -> None:
    assert is_disjoint(f, g)
    assert is_disjoint(g, f)


def test_disjointness_by_ranges_agrees_with_the_images() -> None:
    small = [Layout((n, m), (d, e)) for n in (1, 3) for m in (2, 4) for d in (-3, 0, 2) for e in (-6, 0, 1, 6)]
    for f in small:
        for g in small:
            assert bool(is_disjoint(f, g)) == (set(f.table().tolist()) & set(g.table().tolist()) == {0})
