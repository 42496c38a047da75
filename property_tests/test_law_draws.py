"""Property: an operand that is drawn for a law is small, and deciding the law for it takes few calls.

No draw may take a second. Calls of functions (Python's and C's) and elements of tables are counted in place of time: a
second has some millions of calls.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from argus.layout import Layout, Swizzle
from argus.testing.laws import LAWS, Law, Operand
from argus.testing.operands import operands
from property_tests.depth import examples

MOST_CALLS = 500_000
MOST_ELEMENTS = 8**3
"""Of one layout; a law tabulates products of two at most."""
COSTLY = [
    ("pseudo-inverse", (Layout((7, 7, 7), (-12, -12, -12)),)),
    ("pseudo-inverse", (Layout((8, 8, 7), (-10, -12, -11)),)),
    ("a swizzle composes with every layout", (Swizzle(3, 1, -4), Layout((7, 2, 2), (-12, 9, 8)))),
]
"""Operands that took seconds while searches for an inverse compared only points below the size of a chain."""


def calls_of(action: Callable[[], object]) -> int:
    """How many functions an action calls."""
    made = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal made
        made += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(before)
    return made


@pytest.mark.share(4)
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name.replace(" ", "-"))
@settings(max_examples=examples(100))
@given(data=st.data())
def test_draws_are_small_and_laws_are_decided_at_once(law: Law, data: DataObject) -> None:
    drawn = data.draw(operands(law))

    assert [each for each in drawn if isinstance(each, Layout) and each.size() > MOST_ELEMENTS] == []
    assert calls_of(lambda: law.breach(*drawn)) <= MOST_CALLS


@pytest.mark.parametrize(("name", "drawn"), COSTLY, ids=lambda each: each if isinstance(each, str) else "")
def test_the_costliest_draws_are_decided_at_once(name: str, drawn: tuple[Operand, ...]) -> None:
    (law,) = (each for each in LAWS if each.name == name)

    assert calls_of(lambda: law.breach(*drawn)) <= MOST_CALLS


def test_calls_are_counted() -> None:
    assert 1000 <= calls_of(lambda: [abs(number) for number in range(1000)]) <= 1010
