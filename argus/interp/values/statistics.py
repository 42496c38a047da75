"""Kinds of values in statistics (mean, variance, their online updates): means, deviations, sums of squares.

    mean(S)                        a multiple of the sum of the elements S
    deviation(S)                   an element minus the mean of S
    squared_deviation(S)           its square
    minus_mean(S)                  a number that is no element, minus the mean of S
    minus_mean_squared(S)          its square
    mean_difference(S, T)          the mean of S minus the mean of T
    squared_mean_difference(S, T)  its square
    sum_of_squares(S, T)           the sum over S of squared deviations from the mean of T
    shifted_squares(S, T)          sum_of_squares(S, S) plus squared_mean_difference(S, T), which merges partial sums
    unequal_weights(S)             a combination of the elements S with different weights, wrong for a statistic

`over` is the first set, `before` the second. Numbers that are no elements scale values without changing their kind, and
are not checked. Other combinations have no kind; their sets are those of any sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import isfinite, prod

import numpy as np
import numpy.typing as npt
from attrs import evolve

from argus.interp.memory.cells import AnyArray, Records
from argus.interp.values.sets import UNTRACKED, is_set
from argus.interp.values.softmax_shadow import (
    NONE,
    STATISTICS,
    Elements,
    Kind,
    ValueKind,
    distinct_combinations,
)
from argus.interp.values.weights import UNKNOWN

IntArray = npt.NDArray[np.int64]
NUMBER = -1
"""Stands for an operand that is a number and not computed from elements."""
_SQUARED: dict[Kind, Kind] = {
    "deviation": "squared_deviation",
    "minus_mean": "minus_mean_squared",
    "mean_difference": "squared_mean_difference",
    "mean": "squared_mean_difference",
}
_MERGEABLE = frozenset(("unequal_weights", "mean", "shifted_squares", "sum_of_squares"))
_NOTHING: Elements = frozenset()
_TOLERANCE = 0.01
"""Relative tolerance of weights: counts are small, and 16-bit values are coarse."""
_Operand = ValueKind | None | int


def combined(name: str, one: _Operand, two: _Operand, number: float = UNKNOWN) -> ValueKind | None:
    """The statistic that a binary operation makes; None if it makes none. An operand NUMBER has the value `number`."""
    left, right = (each if isinstance(each, ValueKind) and each.kind in STATISTICS else None for each in (one, two))
    if left is None and right is None:
        return None
    match name:
        case "mul" if left is not None and right is not None:
            return _squared(left, right)
        case "mul" | "div" if left is not None and two == NUMBER:
            return _scale(left, number if name == "mul" else 1 / number if number else UNKNOWN)
        case "mul" if right is not None and one == NUMBER:
            return _scale(right, number)
        case "sub":
            return _minus_mean(left, right, one, two)
        case "add" if left is not None and right is not None:
            return _merge(left, right) or _merge(right, left)
        case _:
            return None


def _scale(one: ValueKind, number: float) -> ValueKind | None:
    if one.kind == "shifted_squares" or (one.kind == "unequal_weights" and number in (0, UNKNOWN)):
        return None
    if one.kind == "unequal_weights":
        return one
    return evolve(one, scale=_product(one.scale, number), back=_product(one.back, number))


def _product(scale: float | None, number: float) -> float | None:
    return None if scale is None or not isfinite(number) else scale * number


def _squared(one: ValueKind, two: ValueKind) -> ValueKind | None:
    if (one.kind, one.over, one.before) != (two.kind, two.over, two.before) or one.kind not in _SQUARED:
        return None
    scales = [None if each.kind == "mean_difference" and each.back != each.scale else each.scale for each in (one, two)]
    known = [scale for scale in scales if scale is not None]
    return ValueKind(_SQUARED[one.kind], one.over, one.before, prod(known) if len(known) == len(scales) else None)


def _minus_mean(left: ValueKind | None, right: ValueKind | None, one: _Operand, two: _Operand) -> ValueKind | None:
    if right is None:
        known = left is not None and left.kind == "mean"
        return (
            left
            if known and two == NUMBER
            else ValueKind("deviation", left.over, scale=_own(left))
            if known and left
            else None
        )
    if right.kind != "mean":
        return None
    if left is None:
        less = one == NUMBER
        return ValueKind("minus_mean" if less else "deviation", right.over, scale=right.scale if less else _own(right))
    return ValueKind("mean_difference", left.over, right.over, left.scale, right.scale) if left.kind == "mean" else None


def _merge(one: ValueKind, two: ValueKind) -> ValueKind | None:
    apart, both = not one.over & two.over, one.over | two.over
    match one.kind, two.kind:
        case "mean", "mean_difference" if two.before == one.over and apart:
            return _mean_of_both(one, two)
        case "mean", "minus_mean" if two.over == one.over:
            known = one.scale is not None and two.scale is not None
            return evolve(one, scale=(one.scale or 0) - (two.scale or 0) if known else None)
        case "sum_of_squares", "squared_mean_difference" if one.over == one.before == two.over:
            if two.before:
                return ValueKind("shifted_squares", one.over, two.before, two.scale if _own(one) else None)
            return one if two.scale == 0 else evolve(one, scale=None)
        case "sum_of_squares", "minus_mean_squared":
            return one if two.scale == 0 else evolve(one, scale=None)
        case "sum_of_squares", "shifted_squares" if one.over == one.before == two.before and apart:
            fair = _has_weight(two, lambda: _size(one.over) * _size(two.over) / _size(both))
            return _sum_of_squares(both, both, fair if _own(one) else None)
        case "unequal_weights", "squared_mean_difference" if one.over == two.over:
            return one
        case "unequal_weights", "mean" | "sum_of_squares" | "unequal_weights" if apart and (
            not two.before or two.before == two.over
        ):
            return evolve(one, over=both)
        case _:
            return None


def _mean_of_both(one: ValueKind, shift: ValueKind) -> ValueKind:
    """A mean updated with further elements: the mean of all of them, if all have equal weights."""
    both = one.over | shift.over
    if one.scale is None or shift.scale is None or shift.back is None or not _one_name(shift):
        return ValueKind("mean", both, scale=None)
    left = one.scale - shift.back
    if not _close(left / _size(one.over), shift.scale / _size(shift.over)):
        return ValueKind("unequal_weights", both)
    return ValueKind("mean", both, scale=left + shift.scale)


def _own(*those: ValueKind) -> float | None:
    """The scale of a result computed from these: 1 if all of them are unscaled, else None."""
    return 1.0 if all(each.scale is not None and _close(each.scale, 1) for each in those) else None


def _has_weight(one: ValueKind, wanted: Callable[[], float]) -> bool | None:
    """Whether its scale is the required one; None if unknown."""
    if one.scale is None or not _one_name(one):
        return None
    return _close(one.scale, wanted())


def _sum_of_squares(over: Elements, before: Elements, fair: bool | None) -> ValueKind:
    """A sum of squares; `unequal_weights` if its weights are wrong."""
    return (
        ValueKind("unequal_weights", over)
        if fair is False
        else ValueKind("sum_of_squares", over, before, 1.0 if fair else None)
    )


def _size(elements: Elements) -> int:
    return len(elements)


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= _TOLERANCE * max(abs(one), abs(other))


# -- records -------------------------------------------------------------------------------------------------


def classify(
    records: Records, name: str, left: IntArray, right: IntArray, values: tuple[AnyArray, AnyArray] | None
) -> tuple[IntArray, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """The value kinds of results, by number; where they are determined here; and where their sets become untracked.

    values: of both operands, if weights are tracked.
    """
    one, two = (np.where(marks > 0, records.kind(marks), NUMBER) for marks in (left, right))
    found = np.full(left.shape, NONE, np.int64)
    decided, untracked = (np.zeros(left.shape, np.bool_) for _ in range(2))
    numbers = _numbers(one, two, values)
    first, back = distinct_combinations(one.ravel(), two.ravel(), numbers.ravel())
    for at, place in enumerate(first.tolist()):
        a, b, number = int(one.flat[place]), int(two.flat[place]), float(numbers.flat[place])
        where = (back == at).reshape(left.shape)
        mine, theirs = _operand(records, a), _operand(records, b)
        made = _certain(records, combined(name, mine, theirs, number))
        if made is not None:
            found[where], decided[where] = records.kinds.number(made), True
        elif _is_statistic(mine) or _is_statistic(theirs):
            shifted = NUMBER in (mine, theirs) and name in ("add", "sub")
            untracked[where] = not shifted and not _twice(name, mine, theirs)
        elif _scales(name, a, b, weighed=values is not None):
            marks = left if b == NUMBER else right
            for mark in np.unique(marks[where]).tolist():
                own = _elements(records, mark)
                if own:
                    scale = _size(own) * (number if name == "mul" else 1 / number if number else UNKNOWN)
                    known = isfinite(scale) and len({each for each, _ in own}) == 1
                    same = where & (marks == mark)
                    made = ValueKind("mean", own, scale=scale if known else None)
                    found[same], decided[same] = records.kinds.number(made), True
    return found, decided, untracked


def _scales(name: str, one: int, two: int, *, weighed: bool) -> bool:
    """Whether a sum is multiplied by a number, which makes a mean; without weights only quotients count as means."""
    if name == "div":
        return (one, two) == (NONE, NUMBER)
    return weighed and name == "mul" and (one, two) in ((NONE, NUMBER), (NUMBER, NONE))


def _numbers(one: IntArray, two: IntArray, values: tuple[AnyArray, AnyArray] | None) -> AnyArray:
    """The value of each result's operand that is a number; UNKNOWN if there is none, or it is not known."""
    unknown = np.full(one.shape, UNKNOWN)
    if values is None:
        return unknown
    left, right = (np.broadcast_to(each, one.shape).astype(np.float64) for each in values)
    found = np.where(one == NUMBER, left, np.where(two == NUMBER, right, UNKNOWN))
    found = np.where((one == NUMBER) & (two == NUMBER), UNKNOWN, found)
    return np.where(np.isfinite(found), found, UNKNOWN)


def _certain(records: Records, made: ValueKind | None) -> ValueKind | None:
    """The kind, or None if it depends on unreliable weights."""
    if made is not None and made.kind == "unequal_weights" and records.kinds.doubtful:
        return None
    return made


def _is_statistic(each: _Operand) -> bool:
    return isinstance(each, ValueKind) and each.kind in STATISTICS


def _twice(name: str, one: _Operand, two: _Operand) -> bool:
    """Whether a mean is updated with elements that it already contains."""
    if name != "add" or not isinstance(one, ValueKind) or not isinstance(two, ValueKind):
        return False
    for mean, shift in ((one, two), (two, one)):
        if (mean.kind, shift.kind) == ("mean", "mean_difference") and mean.over == shift.before:
            return bool(mean.over & shift.over)
    return False


def _operand(records: Records, number: int) -> _Operand:
    return NUMBER if number == NUMBER else records.kinds.of(number)


def _elements(records: Records, mark: int) -> Elements:
    """The elements that a sum is over; empty if they are not tracked."""
    if not bool(records.summed(np.array([mark]))[0]):
        return _NOTHING
    sets = {name: c for name, c in records.of(mark).items() if bool(is_set(np.array([c]))[0])}
    if UNTRACKED in records.of(mark).values():
        return _NOTHING
    parts = [records.sets.named(name, c) for name, c in sets.items()]
    if not all(parts):
        return _NOTHING
    return parts[0] if len(parts) == 1 else _NOTHING.union(*parts)


def classify_sum(records: Records, marks: Sequence[int], result: int) -> ValueKind | None:
    """The value kind of a sum of values with these marks. result: the mark of the sum so far."""
    known = [records.kinds.of(int(number)) for number in records.kind(np.array(marks, np.int64)).tolist()]
    kinds = [each for each in known if each is not None and each.kind in STATISTICS - {"minus_mean_squared"}]
    if not kinds:
        return None
    own = _elements(records, result)
    plain = any(each is None for each in known)
    if not plain and {each.kind for each in kinds} == {"sum_of_squares"} and _own(*kinds):
        return None
    made = None if plain or not own else _certain(records, _together(kinds, own))
    records.kinds.doubtful |= made is None
    return _plain(made)


def _together(those: Sequence[ValueKind], own: Elements) -> ValueKind | None:
    """The kind of a sum, over `own`, of statistics of its parts."""
    match sorted({each.kind for each in those}):
        case ["mean"]:
            return _means(those, own)
        case ["squared_deviation" | "shifted_squares"]:
            return _squares(those, own, those[0].kind)
        case kinds if "unequal_weights" in kinds and set(kinds) <= _MERGEABLE:
            return ValueKind("unequal_weights", own)
        case _:
            return None


def _squares(those: Sequence[ValueKind], own: Elements, kind: Kind) -> ValueKind | None:
    about = {each.over if kind == "squared_deviation" else each.before for each in those}
    if len(about) > 1:
        return None
    of = about.pop()
    if kind == "shifted_squares":
        fair = [each.over == of or _has_weight(each, partial(_size, each.over)) for each in those]
        return _sum_of_squares(own, of, None if len(those) == 1 and fair == [False] else _all(fair))
    return ValueKind("sum_of_squares", own, of, _own(*those))


def _all(fair: Sequence[bool | None]) -> bool | None:
    return False if False in fair else None if None in fair else True


def _means(those: Sequence[ValueKind], own: Elements) -> ValueKind:
    """The kind of a sum of means: a multiple of the mean of all, if all elements have equal weights."""
    weights = [None if each.scale is None or not _one_name(each) else each.scale / _size(each.over) for each in those]
    known = [weight for weight in weights if weight is not None]
    if len(known) < len(weights):
        return ValueKind("mean", own, scale=None)
    if not all(_close(weight, known[0]) for weight in known):
        return ValueKind("unequal_weights", own)
    return ValueKind("mean", own, scale=known[0] * _size(own))


def _plain(one: ValueKind | None) -> ValueKind | None:
    """The kind; None for a mean in which each element has weight 1, which is a plain sum."""
    if one is not None and one.kind == "mean" and one.scale is not None and _close(one.scale, _size(one.over)):
        return None
    return one


def _one_name(one: ValueKind) -> bool:
    return len(one.names) == 1


def fault(records: Records, one: ValueKind | None, name: str) -> str | None:
    """The fault of a statistic that is claimed to be over all elements of a name, in words; None if there is none."""
    if one is None or one.kind not in ("sum_of_squares", "shifted_squares", "unequal_weights"):
        return None
    if one.kind == "unequal_weights":
        return f"the elements of the sum over `{name}` have different weights"
    if one.over == one.before:
        return None
    own, mean = (
        records.sets.text(records.sets.of(sorted(at for of, at in each if of == name)))
        for each in (one.over, one.before)
    )
    return f"squared deviations over {name} = {own} are from the mean over {name} = {mean}"
