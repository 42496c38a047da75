"""Sets of contributions: what is counted, what may cancel, and what an element keeps of its own."""

from __future__ import annotations

import pytest

from argus.interp.values.sets import MISSING, MIXED, PADDED, UNCOUNTED, UNTRACKED, How, Sets


@pytest.fixture
def sets() -> Sets:
    return Sets()


def test_elements_combined_one_by_one_are_a_counted_set(sets: Sets) -> None:
    pair = sets.combined("sum", 3, 4)
    assert sets.members(pair) == (3, 4)
    assert sets.members(sets.combined("sum", pair, 4)) == (3, 4, 4)
    assert sets.members(sets.combined("extremum", pair, 4)) == (3, 4)
    assert sets.combined("sum", 3, 3) == 3


def test_an_element_keeps_its_integer_beside_a_reduction_over_itself(sets: Sets) -> None:
    row = sets.reduced(range(4), "sum")
    hows: tuple[How, ...] = ("sum", "difference", "product", "extremum")
    for how in hows:
        assert sets.combined(how, 2, row) == sets.combined(how, row, 2) == 2
        assert sets.combined(how, 2, UNCOUNTED) == 2


def test_an_element_and_a_reduction_over_others_are_not_tracked(sets: Sets) -> None:
    others = sets.reduced((4, 5), "sum")
    assert sets.combined("sum", 2, others) == UNTRACKED
    assert sets.combined("product", 2, others) == 2


def test_reductions_that_overlap_count_twice_unless_their_weights_are_unknown(sets: Sets) -> None:
    first, second = sets.reduced((0, 1), "sum"), sets.reduced((1, 2), "sum")
    assert sets.members(sets.combined("sum", first, second)) == (0, 1, 1, 2)
    assert sets.combined("difference", first, second) == UNCOUNTED
    assert sets.combined("sum", sets.weighted(first), second) == UNCOUNTED
    assert sets.weighted(sets.combined("sum", first, second)) == UNCOUNTED
    apart = sets.combined("sum", sets.weighted(first), sets.reduced((2, 3), "sum"))
    assert sets.is_range(apart, 0, 4)


def test_a_product_of_reductions_is_not_counted(sets: Sets) -> None:
    row = sets.reduced(range(4), "sum")
    assert sets.combined("product", row, row) == UNCOUNTED


@pytest.mark.parametrize(("flag", "text"), [(MIXED, "{0, 1, nothing}"), (PADDED, "{0, 1, padding}")])
def test_a_set_with_other_values_is_no_range(sets: Sets, flag: int, text: str) -> None:
    made = sets.reduced((0, 1), "sum", flag)
    assert sets.is_range(sets.reduced((0, 1), "sum"), 0, 2)
    assert not sets.is_range(made, 0, 2)
    assert sets.text(made) == text
    assert sets.plain(sets.reduced((1,), "sum", flag)) != 1


def test_a_set_of_one_element_is_that_element_to_a_claim(sets: Sets) -> None:
    assert sets.plain(sets.reduced((5,), "sum")) == 5
    assert sets.plain(sets.weighted(sets.combined("sum", 0, 1))) == sets.plain(sets.combined("sum", 0, 1))


@pytest.mark.parametrize("members", [(-1,), (1 << 22,)])
def test_numbers_beyond_the_bit_sets_are_not_counted(sets: Sets, members: tuple[int, ...]) -> None:
    assert sets.of(members) == UNCOUNTED
    assert sets.of(()) == MISSING
