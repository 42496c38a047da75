"""Transfer functions of marks under element-wise operations: one state table per operation.

Padding of 0 is neutral for sums and padding of -inf for maxima: there it is neither a value nor garbage. Combinations
without a rule become OPAQUE, which is not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from argus.interp.memory.cells import BOTTOM, FILLED, LOW, NUMBER, OPAQUE, OUTSIDE, PLAIN, TOP, ZERO, IntArray

RECORD = 1
"""Stands for any record with names."""
BOTH = 2
"""The outcome for two records: their union."""

KINDS = (BOTTOM, OUTSIDE, TOP, ZERO, OPAQUE, LOW, FILLED, NUMBER, PLAIN, RECORD)
_LOWEST = min(KINDS)
Rule = Callable[[int, int], int]


def _spoils(a: int, b: int) -> int | None:
    """The dominating state: garbage, then untracked, then padding that is not neutral; None if neither has one."""
    if {a, b} & {TOP, BOTTOM}:
        return TOP
    return next((state for state in (OPAQUE, FILLED) if state in (a, b)), None)


def _numbers(a: int, b: int) -> int:
    """The outcome for values, numbers and zeros, none of which absorbs or is neutral to the other."""
    if a == b == RECORD:
        return BOTH
    if RECORD in (a, b):
        return RECORD
    return a if a == b else NUMBER


def _sum(a: int, b: int) -> int:
    found = _spoils(a, b)
    if found is not None:
        return found
    if LOW in (a, b):
        return LOW
    if OUTSIDE in (a, b):
        other = b if a == OUTSIDE else a
        return {OUTSIDE: OUTSIDE, ZERO: OUTSIDE, RECORD: RECORD}.get(other, FILLED)
    return _numbers(a, b)


def _difference(a: int, b: int) -> int:
    return FILLED if b == LOW and _spoils(a, b) is None else _sum(a, b)


def _product(a: int, b: int) -> int:
    if OUTSIDE in (a, b) and not {a, b} & {TOP, BOTTOM, FILLED, LOW}:
        return ZERO if ZERO in (a, b) else OUTSIDE
    found = _spoils(a, b)
    if found is not None:
        return found
    if LOW in (a, b):
        return FILLED
    if ZERO in (a, b):
        return ZERO
    return _numbers(a, b)


def _quotient(a: int, b: int) -> int:
    found = _spoils(a, b)
    if found is not None:
        return found
    if b == ZERO:
        return OPAQUE
    return FILLED if b == OUTSIDE else _product(a, b)


def _greatest(a: int, b: int) -> int:
    found = _spoils(a, b)
    if found is not None:
        return found
    if LOW in (a, b):
        return b if a == LOW else a
    if OUTSIDE in (a, b):
        other = b if a == OUTSIDE else a
        return OUTSIDE if other in (OUTSIDE, ZERO) else OPAQUE if other == RECORD else FILLED
    return _numbers(a, b)


def _least(a: int, b: int) -> int:
    return LOW if LOW in (a, b) and _spoils(a, b) is None else _greatest(a, b)


BINARY: Mapping[str, Rule] = {
    "add": _sum,
    "sub": _difference,
    "mul": _product,
    "div": _quotient,
    "max": _greatest,
    "min": _least,
}
_ZERO_STAYS = {LOW: FILLED}
_EXPONENTIAL = {LOW: OUTSIDE, OUTSIDE: FILLED, ZERO: NUMBER}
_LOGARITHM = {ZERO: LOW, OUTSIDE: LOW, LOW: FILLED}
UNARY: Mapping[str, Mapping[int, int]] = {
    "neg": _ZERO_STAYS,
    "abs": _ZERO_STAYS,
    "sqrt": _ZERO_STAYS,
    "tanh": _ZERO_STAYS,
    "reciprocal": {LOW: FILLED, OUTSIDE: FILLED, ZERO: OPAQUE},
    "rsqrt": {LOW: FILLED, OUTSIDE: FILLED, ZERO: OPAQUE},
    "exp": _EXPONENTIAL,
    "exp2": _EXPONENTIAL,
    "log": _LOGARITHM,
    "log2": _LOGARITHM,
}
LINEAR = frozenset(("neg", "add", "sub", "mul", "div"))
"""Operations under which a sum of products remains one; any other completes it."""


def _table(rule: Rule) -> IntArray:
    size = RECORD - _LOWEST + 1
    table = np.full((size, size), OPAQUE, np.int64)
    for a in KINDS:
        for b in KINDS:
            table[a - _LOWEST, b - _LOWEST] = rule(a, b)
    return table


_TABLES = {name: _table(rule) for name, rule in BINARY.items()}


def outcomes(name: str, left: IntArray, right: IntArray) -> IntArray:
    """The kind of each result: a state, PLAIN, RECORD (of whichever has one) or BOTH."""
    kinds = (np.minimum(side, RECORD) - _LOWEST for side in (left, right))
    return _TABLES[name][tuple(kinds)]


def mapped(name: str, marks: IntArray) -> IntArray:
    """The marks after a unary operation."""
    found = marks
    for state, becomes in UNARY[name].items():
        if (marks == state).any():
            found = np.where(marks == state, becomes, found)
    return found


def negated(marks: IntArray) -> IntArray:
    """The marks after multiplication by a negative number."""
    return mapped("neg", marks)
