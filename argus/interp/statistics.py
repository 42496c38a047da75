"""What values are to the mean of their row: means, distances from one, and sums of their squares.

    mean(S)            a multiple of the sum of the elements S
    apart(S)           an element less the mean of S; square(S): that squared; less(S), less2(S): the same of nothing
    shift(S, T)        the mean of S less that of T; shift2(S, T): that squared
    squares(S, T)      the sum over S of squared distances from the mean of T
    moved(S, T)        squares(S, S) and shift2(S, T): what squares(S, T) is, or what joins squares of T to squares of S

`over` is the first set, `before` the second. Numbers that are no elements weigh values and leave them what they are:
they are not judged. What joins in no such way stands for nothing, and its sets are as those of any sum.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from argus.interp.memory import Records
from argus.interp.references import NONE, STATISTICS, Elements, Kind, Standing
from argus.interp.sets import LOOSE, is_set

IntArray = npt.NDArray[np.int64]
NUMBER = -1
"""Stands for an operand that is a number and no element."""
_SQUARED: dict[Kind, Kind] = {"apart": "square", "less": "less2", "shift": "shift2", "mean": "shift2"}
_NOTHING: Elements = frozenset()
_Operand = Standing | None | int


def combined(name: str, one: _Operand, two: _Operand) -> Standing | None:
    """What an operation of two makes of a statistic; None where it makes none. NUMBER: an operand that is a number."""
    left, right = (each if isinstance(each, Standing) and each.kind in STATISTICS else None for each in (one, two))
    if left is None and right is None:
        return None
    match name:
        case "mul" if left is not None and right is not None:
            return _squared(left, right)
        case "mul" | "div" if left is not None and two == NUMBER:
            return None if left.kind == "moved" else left
        case "mul" if right is not None and one == NUMBER:
            return None if right.kind == "moved" else right
        case "sub":
            return _less(left, right, one, two)
        case "add" if left is not None and right is not None:
            return _joined(left, right) or _joined(right, left)
        case _:
            return None


def _squared(one: Standing, two: Standing) -> Standing | None:
    return Standing(_SQUARED[one.kind], one.over, one.before) if one == two and one.kind in _SQUARED else None


def _less(left: Standing | None, right: Standing | None, one: _Operand, two: _Operand) -> Standing | None:
    if right is None:
        known = left is not None and left.kind == "mean"
        return left if known and two == NUMBER else Standing("apart", left.over) if known and left else None
    if right.kind != "mean":
        return None
    if left is None:
        return Standing("less" if one == NUMBER else "apart", right.over)
    return Standing("shift", left.over, right.over) if left.kind == "mean" else None


def _joined(one: Standing, two: Standing) -> Standing | None:
    apart = not one.over & two.over
    match one.kind, two.kind:
        case "mean", "shift" if two.before == one.over and apart:
            return Standing("mean", one.over | two.over)
        case "mean", "less" if two.over == one.over:
            return one
        case "squares", "shift2" if one.over == one.before == two.over:
            return Standing("moved", one.over, two.before) if two.before else one
        case "squares", "less2":
            return one
        case "squares", "moved" if one.over == one.before == two.before and apart:
            return Standing("squares", one.over | two.over, one.over | two.over)
        case _:
            return None


# -- of records ----------------------------------------------------------------------------------------------


def referred(
    records: Records, name: str, left: IntArray, right: IntArray
) -> tuple[IntArray, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """What results stand as, by number, where that is told here, and where nothing is known any more of their sets."""
    one, two = (np.where(marks > 0, records.standing(marks), NUMBER) for marks in (left, right))
    found = np.full(left.shape, NONE, np.int64)
    told, lost = (np.zeros(left.shape, np.bool_) for _ in range(2))
    pairs, back = np.unique(np.stack([one.ravel(), two.ravel()]), axis=1, return_inverse=True)
    for at, (a, b) in enumerate(pairs.T.tolist()):
        where = (back == at).reshape(left.shape)
        mine, theirs = _operand(records, a), _operand(records, b)
        made = combined(name, mine, theirs)
        if made is not None:
            found[where], told[where] = records.standings.number(made), True
        elif _is_statistic(mine) or _is_statistic(theirs):
            shifted = NUMBER in (mine, theirs) and name in ("add", "sub")
            lost[where] = not shifted and not _twice(name, mine, theirs)
        elif name == "div" and a == NONE and b == NUMBER:
            for mark in np.unique(left[where]).tolist():
                own = _elements(records, mark)
                if own:
                    same = where & (left == mark)
                    found[same], told[same] = records.standings.number(Standing("mean", own)), True
    return found, told, lost


def _is_statistic(each: _Operand) -> bool:
    return isinstance(each, Standing) and each.kind in STATISTICS


def _twice(name: str, one: _Operand, two: _Operand) -> bool:
    """Whether a mean is joined with that of elements of which it has some already."""
    if name != "add" or not isinstance(one, Standing) or not isinstance(two, Standing):
        return False
    for mean, shift in ((one, two), (two, one)):
        if (mean.kind, shift.kind) == ("mean", "shift") and mean.over == shift.before:
            return bool(mean.over & shift.over)
    return False


def _operand(records: Records, number: int) -> _Operand:
    return NUMBER if number == NUMBER else records.standings.of(number)


def _elements(records: Records, mark: int) -> Elements:
    """What a sum is over, where that is tracked."""
    if not bool(records.summed(np.array([mark]))[0]):
        return _NOTHING
    sets = {name: c for name, c in records.of(mark).items() if bool(is_set(np.array([c]))[0])}
    if LOOSE in records.of(mark).values():
        return _NOTHING
    found = [(name, each) for name, c in sets.items() for each in records.sets.members(c)]
    return frozenset(found) if len(set(found)) == len(found) else _NOTHING


def folded(records: Records, marks: Sequence[int], result: int) -> Standing | None:
    """What the sum of some values stands as. result: the record that it has so far."""
    known = {records.standings.of(int(number)) for number in records.standing(np.array(marks, np.int64)).tolist()}
    told = {standing for standing in known if standing is None or standing.kind != "less2"}
    kinds = {None if standing is None else standing.kind for standing in told}
    if len(kinds) != 1:
        return None
    first = next(iter(told))
    assert first is not None or kinds == {None}
    if first is None or first.kind not in ("square", "moved"):
        return None
    about = {standing.over if standing.kind == "square" else standing.before for standing in told if standing}
    own = _elements(records, result)
    return Standing("squares", own, about.pop()) if len(about) == 1 and own else None
