"""States of numbers under operations: which padding is neutral to which, by the operations' meaning alone."""

from __future__ import annotations

from itertools import product
from math import inf
from random import Random

import pytest

from argus.core.elementwise import evaluate_op
from argus.interp.memory.cells import ABOVE, BOTTOM, HIGH, LOW, NAN, NUMBER, ONE, OPAQUE, PLAIN, TOP, ZERO, padding_of
from argus.interp.values.states import BOTH, LEFT, RIGHT, is_neutral, outcome

NEUTRAL = {"add": 0.0, "sub": 0.0, "mul": 1.0, "div": 1.0, "max": -inf, "min": inf}
EDGES = (0.0, 1.0, -inf, inf, 7.0)


@pytest.mark.parametrize("name", NEUTRAL)
@pytest.mark.parametrize("edge", EDGES)
def test_padding_is_neutral_to_one_operation_each(name: str, edge: float) -> None:
    assert is_neutral(name, padding_of(edge)) == (edge == NEUTRAL[name])


@pytest.mark.parametrize(
    ("name", "left", "right", "result"),
    [
        ("add", PLAIN, ZERO, LEFT),
        ("sub", ZERO, PLAIN, BOTH),
        ("add", ZERO, PLAIN, RIGHT),
        ("mul", PLAIN, ZERO, ZERO),
        ("mul", PLAIN, padding_of(0), padding_of(0)),
        ("mul", ZERO, padding_of(7), ZERO),
        ("add", PLAIN, LOW, LOW),
        ("sub", LOW, LOW, NAN),
        ("mul", LOW, ZERO, NAN),
        ("add", PLAIN, NAN, NAN),
        ("max", PLAIN, HIGH, HIGH),
        ("max", PLAIN, padding_of(0), BOTH),
        ("add", ONE, padding_of(0), ONE),
        ("add", ZERO, padding_of(0), padding_of(0)),
        ("add", ONE, ONE, ABOVE),
        ("mul", NUMBER, ZERO, ZERO),
        ("add", PLAIN, NUMBER, BOTH),
        ("add", PLAIN, PLAIN, BOTH),
        ("add", OPAQUE, ZERO, OPAQUE),
        ("mul", BOTTOM, ZERO, TOP),
        ("mul", LOW, ABOVE, LOW),
        ("mul", LOW, NUMBER, NUMBER),
        ("mul", ABOVE, ABOVE, ABOVE),
        ("mul", ABOVE, PLAIN, BOTH),
        ("sub", ABOVE, ABOVE, NUMBER),
        ("add", ONE, NUMBER, NUMBER),
        ("max", NUMBER, ABOVE, ABOVE),
    ],
)
def test_outcomes_of_states(name: str, left: int, right: int, result: int) -> None:
    assert outcome(name, left, right) == result


RANGES = {ZERO: (0.0, 0.0), ONE: (1.0, 1.0), ABOVE: (2.0**-6, 8.0), NUMBER: (-8.0, 8.0), PLAIN: (-8.0, 8.0)}


@pytest.mark.parametrize("name", NEUTRAL)
def test_what_is_above_0_is_so_for_all_numbers(name: str) -> None:
    drawn = Random(name)  # noqa: S311 reason: a seed makes the numbers repeatable
    for left, right in product(RANGES, repeat=2):
        if outcome(name, left, right) == ABOVE:
            pairs = ((drawn.uniform(*RANGES[left]), drawn.uniform(*RANGES[right])) for _ in range(200))
            assert all(evaluate_op(name, *pair) > 0 for pair in pairs), (left, right)
