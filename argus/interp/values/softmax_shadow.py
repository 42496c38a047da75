"""Kinds of values in a softmax (I23): row maxima, differences from them, exponentials and their sums.

    maximum             the maximum of the elements `over`
    minus_maximum       an element minus that maximum
    maximum_difference  the maximum of `before` minus the maximum of `over`
    exponential         the exponential of minus_maximum, or a sum of such; `over` is its reference
    correction          the exponential of maximum_difference, which rescales exponentials from `before` to `over`
    inverse_sum         a number divided by a sum of exponentials

Sums and quotients of exponentials require the same reference, and a correction must start from that of the value that
it rescales. A record's value kind is a number, 0 for none. Kinds of statistics are described in `statistics`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from attrs import define, field, frozen

from argus.interp.values.sets import MISSING, Sets

IntArray = npt.NDArray[np.int64]
Elements = frozenset[tuple[str, int]]
"""The elements that a maximum or a sum is over, as pairs of a tag name and a component."""
Kind = Literal[
    "maximum",
    "minus_maximum",
    "maximum_difference",
    "exponential",
    "correction",
    "inverse_sum",
    "mean",
    "deviation",
    "squared_deviation",
    "minus_mean",
    "minus_mean_squared",
    "mean_difference",
    "squared_mean_difference",
    "sum_of_squares",
    "shifted_squares",
    "unequal_weights",
]
"""First the kinds of a softmax, then those of `statistics`."""

NONE = 0
STATISTICS: frozenset[Kind] = frozenset(
    (
        "mean",
        "deviation",
        "squared_deviation",
        "minus_mean",
        "minus_mean_squared",
        "mean_difference",
        "squared_mean_difference",
        "sum_of_squares",
        "shifted_squares",
        "unequal_weights",
    )
)


@frozen
class ValueKind:
    """The kind of a value, with the elements that it refers to.

    over, before: as in the description of the kind. scale: of a statistic, the number that it was multiplied by; None
    if unknown. back: of a difference of two means, the scale of the second one, if it differs.
    """

    kind: Kind
    over: Elements
    before: Elements = frozenset()
    scale: float | None = 1.0
    back: float | None = 1.0

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The tag names of the elements that it refers to."""
        return tuple(sorted({name for name, _ in self.over | self.before}))


@define(eq=False)
class ValueKinds:
    """All value kinds so far, by number.

    doubtful: something was scaled in a way that scales don't track. scaled: a sum was multiplied by a number.
    """

    doubtful: bool = False
    scaled: bool = False
    _known: dict[ValueKind, int] = field(factory=dict[ValueKind, int])
    _all: list[ValueKind] = field(factory=list[ValueKind])
    _in_softmax: list[bool] = field(factory=lambda: [False])
    _components: dict[int, dict[str, int]] = field(factory=dict[int, dict[str, int]])

    @property
    def any(self) -> bool:
        """Whether there are any."""
        return bool(self._all)

    def of(self, number: int) -> ValueKind | None:
        """The value kind of a number; None for 0 and below."""
        return None if number <= NONE else self._all[number - 1]

    def number(self, value: ValueKind | None) -> int:
        """The number of a value kind, added if new; 0 for None."""
        if value is None:
            return NONE
        if value not in self._known:
            self._all.append(value)
            self._in_softmax.append(value.kind not in STATISTICS)
            self._known[value] = len(self._all)
        return self._known[value]

    def without_statistics(self, numbers: IntArray) -> IntArray:
        """The numbers, with those of statistics replaced by 0."""
        kept = np.array(self._in_softmax, np.bool_)
        return np.where(kept[numbers], numbers, NONE)

    def components(self, sets: Sets, number: int) -> dict[str, int]:
        """`components` of the value kind of this number; cached."""
        known = self._components.get(number)
        if known is None:
            known = self._components[number] = components(sets, self.of(number))
        return known

    def exponentials(self, numbers: IntArray) -> npt.NDArray[np.bool_]:
        """Which of these numbers are exponentials."""
        kinds = np.array([False, *(value.kind == "exponential" for value in self._all)], np.bool_)
        return kinds[numbers]

    def mapped(self, name: str, one: IntArray) -> IntArray:
        """The kinds after a unary operation."""
        numbers, back = np.unique(one, return_inverse=True)
        found = [self.number(_exponential(name, self.of(int(number)))) for number in numbers]
        return np.array(found, np.int64)[back].reshape(one.shape)

    def combined(self, name: str, one: IntArray, two: IntArray) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """The kinds after a binary operation, and where the operands' references differ."""
        return self._pairwise(lambda a, b: _combined(name, a, b), one, two)

    def _pairwise(
        self,
        rule: Callable[[ValueKind | None, ValueKind | None], tuple[ValueKind | None, bool]],
        a: IntArray,
        b: IntArray,
    ) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        first, back = distinct_combinations(a.ravel(), b.ravel())
        numbers = zip(a.ravel()[first].tolist(), b.ravel()[first].tolist(), strict=True)
        outcomes = [rule(self.of(one), self.of(two)) for one, two in numbers]
        found = np.array([self.number(kind) for kind, _ in outcomes], np.int64)
        bad = np.array([wrong for _, wrong in outcomes], np.bool_)
        return found[back].reshape(a.shape), bad[back].reshape(a.shape)


def distinct_combinations(*columns: npt.NDArray[Any]) -> tuple[IntArray, IntArray]:
    """The first position of each distinct row of the columns, and the number of the row at each position."""
    code = np.zeros(columns[0].shape, np.int64)
    for column in columns:
        if column.size and bool((column != column[0]).any()):
            values, which = np.unique(column, return_inverse=True)
            code = code * len(values) + which
    _, first, back = np.unique(code, return_index=True, return_inverse=True)
    return first, back.astype(np.int64)


def components(sets: Sets, value: ValueKind | None) -> dict[str, int]:
    """The set components of a statistic, by tag name; empty for values that keep their record's own components."""
    if value is None or value.kind not in STATISTICS - {"deviation", "squared_deviation"}:
        return {}
    differences = ("mean_difference", "squared_mean_difference")
    elements = value.over | value.before if value.kind in differences else value.over
    if value.kind in ("minus_mean", "minus_mean_squared"):
        return dict.fromkeys(value.names, MISSING)
    return {name: sets.of(each for own, each in elements if own == name) for name in value.names}


def _exponential(name: str, one: ValueKind | None) -> ValueKind | None:
    if one is None or name not in ("exp", "exp2") or one.kind not in ("minus_maximum", "maximum_difference"):
        return None
    return ValueKind("exponential" if one.kind == "minus_maximum" else "correction", one.over, one.before)


def _combined(name: str, one: ValueKind | None, two: ValueKind | None) -> tuple[ValueKind | None, bool]:
    both = (name, None if one is None else one.kind, None if two is None else two.kind)
    if one is None or two is None:
        return _with_any(both, one or two), False
    match both:
        case ("max", "maximum", "maximum"):
            return ValueKind("maximum", one.over | two.over), False
        case ("sub", "maximum", "maximum"):
            return ValueKind("maximum_difference", two.over, one.over), False
        case ("mul", "exponential", "correction"):
            return ValueKind("exponential", two.over), one.over != two.before
        case ("mul", "correction", "exponential"):
            return ValueKind("exponential", one.over), two.over != one.before
        case ("add", "exponential", "exponential"):
            return one, one.over != two.over
        case (
            ("mul", "exponential", "inverse_sum")
            | ("mul", "inverse_sum", "exponential")
            | ("div", "exponential", "exponential")
        ):
            return None, one.over != two.over
        case _:
            return None, False


def _with_any(both: tuple[str, Kind | None, Kind | None], known: ValueKind | None) -> ValueKind | None:
    """The kind of a result of a value with a kind and one without."""
    if known is None:
        return None
    match both:
        case ("sub", None, "maximum"):
            return ValueKind("minus_maximum", known.over)
        case ("mul", "exponential", None) | ("mul", None, "exponential"):
            return known
        case ("div", None, "exponential"):
            return ValueKind("inverse_sum", known.over)
        case _:
            return None
