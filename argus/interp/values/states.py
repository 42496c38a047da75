"""States of cells without a record under element-wise operations, by the meaning of the operation on sample numbers.

A number is neutral to an operation where the result is the other operand (padding of 0 in a sum, of +inf in a minimum),
and absorbs the other where the result does not depend on it. No operation has rules of its own.
"""

from __future__ import annotations

from functools import cache, lru_cache
from itertools import product

import numpy as np

from argus.core.elementwise import evaluate_op
from argus.interp.memory.cells import (
    ABOVE,
    BOTTOM,
    HIGH,
    LOW,
    LOWEST,
    NAN,
    NUMBER,
    ONE,
    OPAQUE,
    PLAIN,
    TOP,
    ZERO,
    IntArray,
    number_of,
    padding_of,
    without_padding,
)

LEFT, RIGHT, BOTH = 1, 2, 3
"""The result has the record of one operand, to which the other is neutral; or both operands count."""
_DATA = (-1.75, 0.625, 2.875)
_OTHER = -0.5
"""A number of which no sign is known."""
_KNOWN = {
    ZERO: (0.0,),
    ONE: (1.0,),
    LOW: (-np.inf,),
    HIGH: (np.inf,),
    NAN: (np.nan,),
    ABOVE: (0.03125, 0.8125, 5.25),
    NUMBER: (-7.5, -0.375, 0.8125, 5.25),
}


def outcomes(name: str, left: IntArray, right: IntArray) -> IntArray:
    """For each result of a binary operation its state, or which operands' records it has."""
    return _table(name)[np.minimum(left, PLAIN) - LOWEST, np.minimum(right, PLAIN) - LOWEST]


def mapped(name: str, marks: IntArray) -> IntArray:
    """The states after a unary operation; records are unchanged."""
    found = marks
    for state in np.unique(marks[marks < OPAQUE]).tolist():
        made = _state(name, [(value,) for value in _samples(state)], padded=state < NUMBER)
        found = np.where(marks == state, made, found)
    return found


def is_neutral(name: str, state: int) -> bool:
    """Whether elements in this state leave the result of an operation on others unchanged."""
    return state < OPAQUE and outcome(name, PLAIN, state) == LEFT


@lru_cache
def _table(name: str) -> IntArray:
    size = PLAIN - LOWEST + 1
    found = np.zeros((size, size), np.int64)
    for left, right in product(range(LOWEST, PLAIN + 1), repeat=2):
        found[left - LOWEST, right - LOWEST] = outcome(name, left, right)
    return found


@cache
def outcome(name: str, left: int, right: int) -> int:
    """As `outcomes`, of one result; any record is PLAIN."""
    if {left, right} & {TOP, BOTTOM}:
        return TOP
    if OPAQUE in (left, right):
        return OPAQUE
    pairs = list(product(_samples(left), _samples(right)))
    values = [evaluate_op(name, *pair) for pair in pairs]
    if PLAIN not in (left, right) or _only(values) is not None:
        return _state(name, pairs, padded=_is_padded(name, left, right))
    if left == PLAIN and values == [pair[0] for pair in pairs]:
        return LEFT
    return RIGHT if right == PLAIN and values == [pair[1] for pair in pairs] else BOTH


def _is_padded(name: str, left: int, right: int) -> bool:
    """Whether padding determines a result, alone or with other padding or the same number."""
    if left >= NUMBER and right >= NUMBER:
        return False
    if left < NUMBER and right < NUMBER:
        return True
    padding, other = (left, right) if left < NUMBER else (right, left)
    pairs = product(_samples(left), _samples(right))
    neutral = all(evaluate_op(name, *pair) == pair[other == right] for pair in pairs)
    return other == PLAIN or not (_absorbs(name, left, other) or (neutral and other != without_padding(padding)))


def _absorbs(name: str, left: int, state: int) -> bool:
    """Whether one operand, of this state, alone determines the result."""
    others = [(own, any_) if state == left else (any_, own) for own in _samples(state) for any_ in _DATA]
    return state != PLAIN and _only([evaluate_op(name, *pair) for pair in others]) is not None


def _samples(state: int) -> tuple[float, ...]:
    return _DATA if state == PLAIN else _KNOWN[without_padding(state)]


def _state(name: str, arguments: list[tuple[float, ...]], *, padded: bool) -> int:
    values = [evaluate_op(name, *each) for each in arguments]
    value = _only(values)
    if value is None:
        above = all(0 < each < np.inf for each in values)
        return padding_of(_OTHER) if padded else ABOVE if above else NUMBER
    return padding_of(value) if padded else number_of(value)


def _only(values: list[float]) -> float | None:
    """The number that all of these are."""
    return values[0] if np.array_equal(values, values[:1] * len(values), equal_nan=True) else None
