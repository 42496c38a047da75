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

from collections.abc import Callable, Sequence
from functools import partial
from math import isfinite, prod

import numpy as np
import numpy.typing as npt
from attrs import evolve

from argus.interp.memory.cells import AnyArray, Records
from argus.interp.values.sets import LOOSE, is_set
from argus.interp.values.softmax_shadow import NONE, STATISTICS, Elements, Kind, Standing, kinds
from argus.interp.values.weights import UNKNOWN

IntArray = npt.NDArray[np.int64]
NUMBER = -1
"""Stands for an operand that is a number and no element."""
_SQUARED: dict[Kind, Kind] = {"apart": "square", "less": "less2", "shift": "shift2", "mean": "shift2"}
_NOTHING: Elements = frozenset()
_TOLERANCE = 0.01
"""How far a weight may be from what it ought to be: counts are small, and values of 16 bits coarse."""
_Operand = Standing | None | int


def combined(name: str, one: _Operand, two: _Operand, number: float = UNKNOWN) -> Standing | None:
    """What an operation of two makes of a statistic; None where it makes none. NUMBER: an operand that is `number`."""
    left, right = (each if isinstance(each, Standing) and each.kind in STATISTICS else None for each in (one, two))
    if left is None and right is None:
        return None
    match name:
        case "mul" if left is not None and right is not None:
            return _squared(left, right)
        case "mul" | "div" if left is not None and two == NUMBER:
            return _times(left, number if name == "mul" else 1 / number if number else UNKNOWN)
        case "mul" if right is not None and one == NUMBER:
            return _times(right, number)
        case "sub":
            return _less(left, right, one, two)
        case "add" if left is not None and right is not None:
            return _joined(left, right) or _joined(right, left)
        case _:
            return None


def _times(one: Standing, number: float) -> Standing | None:
    if one.kind == "moved" or (one.kind == "uneven" and number in (0, UNKNOWN)):
        return None
    if one.kind == "uneven":
        return one
    return evolve(one, scale=_product(one.scale, number), back=_product(one.back, number))


def _product(scale: float | None, number: float) -> float | None:
    return None if scale is None or not isfinite(number) else scale * number


def _squared(one: Standing, two: Standing) -> Standing | None:
    if (one.kind, one.over, one.before) != (two.kind, two.over, two.before) or one.kind not in _SQUARED:
        return None
    scales = [None if each.kind == "shift" and each.back != each.scale else each.scale for each in (one, two)]
    known = [scale for scale in scales if scale is not None]
    return Standing(_SQUARED[one.kind], one.over, one.before, prod(known) if len(known) == len(scales) else None)


def _less(left: Standing | None, right: Standing | None, one: _Operand, two: _Operand) -> Standing | None:
    if right is None:
        known = left is not None and left.kind == "mean"
        return (
            left
            if known and two == NUMBER
            else Standing("apart", left.over, scale=_own(left))
            if known and left
            else None
        )
    if right.kind != "mean":
        return None
    if left is None:
        less = one == NUMBER
        return Standing("less" if less else "apart", right.over, scale=right.scale if less else _own(right))
    return Standing("shift", left.over, right.over, left.scale, right.scale) if left.kind == "mean" else None


def _joined(one: Standing, two: Standing) -> Standing | None:
    apart, both = not one.over & two.over, one.over | two.over
    match one.kind, two.kind:
        case "mean", "shift" if two.before == one.over and apart:
            return _mean_of_both(one, two)
        case "mean", "less" if two.over == one.over:
            known = one.scale is not None and two.scale is not None
            return evolve(one, scale=(one.scale or 0) - (two.scale or 0) if known else None)
        case "squares", "shift2" if one.over == one.before == two.over:
            if two.before:
                return Standing("moved", one.over, two.before, two.scale if _own(one) else None)
            return one if two.scale == 0 else evolve(one, scale=None)
        case "squares", "less2":
            return one if two.scale == 0 else evolve(one, scale=None)
        case "squares", "moved" if one.over == one.before == two.before and apart:
            fair = _fair(two, lambda: _size(one.over) * _size(two.over) / _size(both))
            return _weighed(both, both, fair if _own(one) else None)
        case "uneven", "shift2" if one.over == two.over:
            return one
        case "uneven", "mean" | "squares" | "uneven" if apart and (not two.before or two.before == two.over):
            return evolve(one, over=both)
        case _:
            return None


def _mean_of_both(one: Standing, shift: Standing) -> Standing:
    """A mean that is moved towards that of further elements: of all of them, if all weigh alike."""
    both = one.over | shift.over
    if one.scale is None or shift.scale is None or shift.back is None or not _one_name(shift):
        return Standing("mean", both, scale=None)
    left = one.scale - shift.back
    if not _close(left / _size(one.over), shift.scale / _size(shift.over)):
        return Standing("uneven", both)
    return Standing("mean", both, scale=left + shift.scale)


def _own(*those: Standing) -> float | None:
    """The scale of what is measured from these: 1 if they are what they are without a scale."""
    return 1.0 if all(each.scale is not None and _close(each.scale, 1) for each in those) else None


def _fair(one: Standing, wanted: Callable[[], float]) -> bool | None:
    """Whether it weighs as much as it ought to; None where that is not known."""
    if one.scale is None or not _one_name(one):
        return None
    return _close(one.scale, wanted())


def _weighed(over: Elements, before: Elements, fair: bool | None) -> Standing:
    """Squares that weigh their elements alike, or do not."""
    return Standing("uneven", over) if fair is False else Standing("squares", over, before, 1.0 if fair else None)


def _size(elements: Elements) -> int:
    return len(elements)


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= _TOLERANCE * max(abs(one), abs(other))


# -- of records ----------------------------------------------------------------------------------------------


def referred(
    records: Records, name: str, left: IntArray, right: IntArray, values: tuple[AnyArray, AnyArray] | None
) -> tuple[IntArray, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """What results stand as, by number, where that is told here, and where nothing is known any more of their sets.

    values: of both operands, where weights are followed.
    """
    one, two = (np.where(marks > 0, records.standing(marks), NUMBER) for marks in (left, right))
    found = np.full(left.shape, NONE, np.int64)
    told, lost = (np.zeros(left.shape, np.bool_) for _ in range(2))
    numbers = _numbers(one, two, values)
    first, back = kinds(one.ravel(), two.ravel(), numbers.ravel())
    for at, place in enumerate(first.tolist()):
        a, b, number = int(one.flat[place]), int(two.flat[place]), float(numbers.flat[place])
        where = (back == at).reshape(left.shape)
        mine, theirs = _operand(records, a), _operand(records, b)
        made = _certain(records, combined(name, mine, theirs, number))
        if made is not None:
            found[where], told[where] = records.standings.number(made), True
        elif _is_statistic(mine) or _is_statistic(theirs):
            shifted = NUMBER in (mine, theirs) and name in ("add", "sub")
            lost[where] = not shifted and not _twice(name, mine, theirs)
        elif _scales(name, a, b, weighed=values is not None):
            marks = left if b == NUMBER else right
            for mark in np.unique(marks[where]).tolist():
                own = _elements(records, mark)
                if own:
                    scale = _size(own) * (number if name == "mul" else 1 / number if number else UNKNOWN)
                    known = isfinite(scale) and len({each for each, _ in own}) == 1
                    same = where & (marks == mark)
                    made = Standing("mean", own, scale=scale if known else None)
                    found[same], told[same] = records.standings.number(made), True
    return found, told, lost


def _scales(name: str, one: int, two: int, *, weighed: bool) -> bool:
    """Whether a plain sum is multiplied by a number; without weights only quotients are means."""
    if name == "div":
        return (one, two) == (NONE, NUMBER)
    return weighed and name == "mul" and (one, two) in ((NONE, NUMBER), (NUMBER, NONE))


def _numbers(one: IntArray, two: IntArray, values: tuple[AnyArray, AnyArray] | None) -> AnyArray:
    """The number that each result has for an operand; UNKNOWN where none has one, or it is not known."""
    unknown = np.full(one.shape, UNKNOWN)
    if values is None:
        return unknown
    left, right = (np.broadcast_to(each, one.shape).astype(np.float64) for each in values)
    found = np.where(one == NUMBER, left, np.where(two == NUMBER, right, UNKNOWN))
    found = np.where((one == NUMBER) & (two == NUMBER), UNKNOWN, found)
    return np.where(np.isfinite(found), found, UNKNOWN)


def _certain(records: Records, made: Standing | None) -> Standing | None:
    """The same; nothing is judged of weights that something made doubtful."""
    if made is not None and made.kind == "uneven" and records.standings.doubtful:
        return None
    return made


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
    parts = [records.sets.named(name, c) for name, c in sets.items()]
    if not all(parts):
        return _NOTHING
    return parts[0] if len(parts) == 1 else _NOTHING.union(*parts)


def folded(records: Records, marks: Sequence[int], result: int) -> Standing | None:
    """What the sum of some values stands as. result: the record that it has so far."""
    known = [records.standings.of(int(number)) for number in records.standing(np.array(marks, np.int64)).tolist()]
    standings = [each for each in known if each is not None and each.kind in STATISTICS - {"less2"}]
    if not standings:
        return None
    own = _elements(records, result)
    plain = any(each is None for each in known)
    if not plain and {each.kind for each in standings} == {"squares"} and _own(*standings):
        return None
    made = None if plain or not own else _certain(records, _together(standings, own))
    records.standings.doubtful |= made is None
    return _plain(made)


def _together(those: Sequence[Standing], own: Elements) -> Standing | None:
    """The sum over `own` of statistics over its parts."""
    match sorted({each.kind for each in those}):
        case ["mean"]:
            return _means(those, own)
        case ["square" | "moved"]:
            return _squares(those, own, those[0].kind)
        case kinds if "uneven" in kinds and set(kinds) <= {"uneven", "mean", "moved", "squares"}:
            return Standing("uneven", own)
        case _:
            return None


def _squares(those: Sequence[Standing], own: Elements, kind: Kind) -> Standing | None:
    about = {each.over if kind == "square" else each.before for each in those}
    if len(about) > 1:
        return None
    of = about.pop()
    if kind == "moved":
        fair = [each.over == of or _fair(each, partial(_size, each.over)) for each in those]
        return _weighed(own, of, None if len(those) == 1 and fair == [False] else _all(fair))
    return Standing("squares", own, of, _own(*those))


def _all(fair: Sequence[bool | None]) -> bool | None:
    return False if False in fair else None if None in fair else True


def _means(those: Sequence[Standing], own: Elements) -> Standing:
    """The sum of means: a multiple of the mean of all, if the elements of each weigh alike."""
    weights = [None if each.scale is None or not _one_name(each) else each.scale / _size(each.over) for each in those]
    known = [weight for weight in weights if weight is not None]
    if len(known) < len(weights):
        return Standing("mean", own, scale=None)
    if not all(_close(weight, known[0]) for weight in known):
        return Standing("uneven", own)
    return Standing("mean", own, scale=known[0] * _size(own))


def _plain(one: Standing | None) -> Standing | None:
    """The same; a sum of which each element weighs 1 stands for nothing more."""
    if one is not None and one.kind == "mean" and one.scale is not None and _close(one.scale, _size(one.over)):
        return None
    return one


def _one_name(one: Standing) -> bool:
    return len(one.names) == 1


def fault(records: Records, one: Standing | None, name: str) -> str | None:
    """What is wrong with a statistic that is claimed to be over all elements of a name."""
    if one is None or one.kind not in ("squares", "moved", "uneven"):
        return None
    if one.kind == "uneven":
        return f"the elements of the sum over `{name}` do not weigh alike"
    if one.over == one.before:
        return None
    own, mean = (
        records.sets.text(records.sets.of(sorted(at for of, at in each if of == name)))
        for each in (one.over, one.before)
    )
    return f"squared distances over {name} = {own} are from the mean over {name} = {mean}"
