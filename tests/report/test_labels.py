"""Placing of the labels of plots: apart, near to where they belong, and within the plot."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as some

from argus.report.labels import LETTER, Label, legible, shortened, spread

HEIGHTS = some.lists(some.floats(-50, 350), max_size=20)


def apart(places: list[float]) -> float:
    ordered = sorted(places)
    return min((after - before for before, after in pairwise(ordered)), default=float("inf"))


@given(HEIGHTS)
def test_places_are_apart_and_in_order(wanted: list[float]) -> None:
    places = spread(wanted, 0.0, 300.0, gap=15.0)

    assert apart(places) >= 15.0 - 1e-6
    assert min(places, default=0.0) >= -1e-6
    assert max(places, default=0.0) <= 300.0 + 1e-6
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    assert [places[place] for place in order] == sorted(places)


def test_labels_that_do_not_touch_stay() -> None:
    assert spread([100.0, 50.0, 80.0], 0.0, 300.0, gap=15.0) == [100.0, 50.0, 80.0]


def test_near_labels_share_the_move() -> None:
    assert spread([100.0, 101.0], 0.0, 300.0, gap=15.0) == pytest.approx([93.0, 108.0])
    assert spread([0.0, 0.0, 200.0], 0.0, 300.0, gap=15.0) == pytest.approx([0.0, 15.0, 200.0])
    assert spread([299.0, 300.0], 0.0, 300.0, gap=15.0) == pytest.approx([285.0, 300.0])


def test_more_labels_than_room_are_still_apart() -> None:
    assert spread([5.0] * 4, 0.0, 20.0, gap=15.0) == pytest.approx([0.0, 15.0, 30.0, 45.0])


@given(some.lists(some.builds(Label, some.floats(0, 500), some.floats(1, 60), some.just("x"), some.booleans())))
def test_what_is_kept_is_legible(labels: list[Label]) -> None:
    kept = legible(labels)

    for number, one in enumerate(kept):
        assert all(abs(one.at - other.at) >= (one.extent + other.extent) / 2 for other in kept[number + 1 :])
    dropped = [label for label in labels if label not in kept]
    assert all(any(abs(one.at - it.at) < (one.extent + it.extent) / 2 + 4 for it in kept) for one in dropped)


def test_major_labels_are_kept_first() -> None:
    crowded = [Label(0.0, 10.0, "5", major=False), Label(8.0, 10.0, "10"), Label(40.0, 10.0, "20", major=False)]

    assert [each.words for each in legible(crowded)] == ["10", "20"]


def test_words_are_cut_to_their_room() -> None:
    assert shortened("short", 100.0) == "short"
    assert shortened("much too long", 5 * LETTER) == "much\N{HORIZONTAL ELLIPSIS}"
    assert shortened("any", 0.0) == "\N{HORIZONTAL ELLIPSIS}"
