"""Arithmetic of means and variances: sums over counts of the same elements, however they are merged.

A count of elements, their sum and the sum of their squares add up where sets do. What is computed from them is held as
a polynomial over these sums (`ratios`), and where it is a mean or a sum of squared distances of the sets together, it
is one of their union: Welford's way of merging is a case of this and not a rule. What is no such value any more, such
as a square root, is closed: the sets stay with it, each of which an assertion must speak of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import isfinite, nan

from attrs import evolve

from argus.core import algebra
from argus.core.elementwise import evaluate_op
from argus.core.index import Cond, Index
from argus.core.proof.dataflow.separable_index import Piecewise
from argus.core.proof.values.content import Data, Inside, Number, Value
from argus.core.proof.values.multiset_count import COUNTED, Multiset, equal_counts
from argus.core.proof.values.recognisers import ratios
from argus.core.proof.values.recognisers.composed import in_digits
from argus.core.proof.values.recognisers.products import holds_once
from argus.core.proof.values.recognisers.ratios import Many, Own, Polynomial, Power, Size, atom
from argus.core.proof.values.recognisers.splits import common_bounds
from argus.core.proof.values.recognisers.standing import PLAIN, Plain, Statistic
from argus.core.walk import show, substitute

PLACE = "a place"
"""The name of what is counted without looking at it; no tag is called so."""
_SUM_OF = "sum of "

Holds = Callable[[Cond], bool]
Sets = tuple[tuple[str, Multiset], ...]


def is_statistic(value: Value) -> bool:
    return isinstance(value, Data) and isinstance(value.standing, Statistic)


def is_folded(data: Data) -> bool:
    """Whether it is a sum of elements and not of products."""
    return bool(data.sets) and data.root.startswith(_SUM_OF)


def counted(value: Number, bounds: Sequence[Inside], other: Value) -> Data | None:
    """1 where the bounds hold, else 0: what counts elements."""
    first = bounds[0].coordinate if bounds else None
    if value.value != 1 or not isinstance(other, Number) or other.value != 0 or first is None:
        return None
    if isinstance(first, Piecewise):
        return None
    return Data({PLACE: first}, tuple(bounds), 0.0, computed=True, standing=Statistic(ratios.number(1), ()))


def _read(data: Data) -> tuple[Statistic, str] | None:
    """A value as a statistic, and of which elements; None if it is none."""
    if isinstance(data.standing, Statistic):
        return data.standing, data.root
    if not isinstance(data.standing, Plain) or data.closed or data.scales or not isfinite(data.times):
        return None
    if data.root in ("", _SUM_OF):
        return None  # nothing tells what it is
    factor = ratios.number(data.times)
    if data.sets is None:
        return Statistic(ratios.times(atom(Own()), factor), ()), data.root
    if len(data.sets) != 1 or not data.root.startswith(_SUM_OF) or data.inside:
        return None
    return Statistic(ratios.times(atom(Power(1, 0)), factor), tuple(data.sets.items())), data.root[len(_SUM_OF) :]


# -- arithmetic ----------------------------------------------------------------------------------------------


def combined(name: str, left: Data, right: Data, holds: Holds) -> Value | None:
    """An operation on two values of which one is a statistic; None if the result is none."""
    one, two = _read(left), _read(right)
    if one is None or two is None or (one[1] and two[1] and one[1] != two[1]):
        return None
    (mine, theirs), sets = _together(one[0], two[0], holds)
    needs: tuple[Cond, ...] = ()
    if name == "div":
        divisor = _divisor(theirs, sets)
        if divisor is None:
            return None
        theirs, needs = divisor
    value = _computed(name, mine, theirs)
    if value is None or ratios.too_long(value):
        return None
    inside, fill = _padding(name, left, right)
    record = {**right.record, **left.record}
    closed, presumed = _both_closed(left, right), tuple(dict.fromkeys((*left.needs, *right.needs, *needs)))
    return Data(
        record, inside, fill, computed=True, standing=Statistic(value, sets), root=one[1] or two[1], closed=closed,
        needs=presumed,
    )  # fmt: skip


def _computed(name: str, one: Polynomial, two: Polynomial) -> Polynomial | None:
    match name:
        case "add":
            return ratios.tidy(ratios.plus(one, two))
        case "sub":
            return ratios.tidy(ratios.minus(one, two))
        case "mul":
            return ratios.tidy(ratios.times(one, two))
        case "div":
            below = ratios.inverse(two)
            return None if below is None else ratios.tidy(ratios.times(one, below))
        case _:
            return None


def _divisor(value: Polynomial, sets: Sets) -> tuple[Polynomial, tuple[Cond, ...]] | None:
    """What may divide: a count that is guarded, or one of which it is presumed that there is something to count."""
    if len(value) == 1:
        ((monomial, coefficient),) = value.items()
        if coefficient == 1 and len(monomial) == 1:
            ((which, exponent),) = monomial
            if isinstance(which, Power) and which.power == 0 and exponent == 1:
                some = sets[which.of][1].nonempty
                return None if some is algebra.FALSE else (atom(Many(frozenset({which.of}))), (some,))
    return None if ratios.inverse(value) is None else (value, ())


def _padding(name: str, left: Data, right: Data) -> tuple[tuple[Inside, ...], float]:
    """Where a value is padding, and which number is there."""
    both = common_bounds(left, right)
    if both is None:
        return (*left.inside, *right.inside), nan
    alike = [one.fill if one.inside else nan for one in (left, right)]
    return both, evaluate_op(name, *alike) if both and name != "div" else nan


def _both_closed(left: Data, right: Data) -> tuple[tuple[str, Multiset], ...]:
    found = list(left.closed)
    for name, tally in right.closed:
        if not any(name == other and equal_counts(tally, known) is algebra.TRUE for other, known in found):
            found.append((name, tally))
    return tuple(found)


def with_number(name: str, left: Value, right: Value) -> Value | None:
    """A statistic and a number."""
    number, data = (left, right) if isinstance(left, Number) else (right, left)
    assert isinstance(number, Number)
    assert isinstance(data, Data)
    assert isinstance(data.standing, Statistic)
    if not isfinite(number.value):
        return None
    plain, own = ratios.number(number.value), data.standing.value
    if name in ("mul", "div") and number.value == 0 and (name == "mul" or number is left) and data.finite:
        return number if name == "mul" or ratios.inverse(own) is not None else None
    if name == "div" and number is right and number.value != 0:
        value: Polynomial | None = ratios.times(own, {ratios.ONE: 1 / Fraction(number.value)})
    elif name == "div" and number is right:
        return None
    else:
        value = _computed(name, plain, own) if number is left else _computed(name, own, plain)
    if value is None:
        return None
    values = (number.value, data.fill) if number is left else (data.fill, number.value)
    fill = evaluate_op(name, *values) if data.inside and name != "div" else nan
    return evolve(data, standing=evolve(data.standing, value=value), fill=fill, computed=True)


def over(data: Data, size: Index, holds: Holds) -> Value | None:
    """A statistic divided by an integer of the program, which is its count where it is known to be."""
    if not isinstance(data.standing, Statistic):
        return None
    by, sets = Size(size), data.standing.sets
    below: Polynomial = atom(by, -1)
    for number in ratios.mentioned(data.standing.value):
        count = sets[number][1].count
        if count is not None and holds(holds_once(count, algebra.const(0), size)):
            below = atom(Many(frozenset({number})), -1)
            break
    value = ratios.tidy(ratios.times(data.standing.value, below))
    needs = tuple(dict.fromkeys((*data.needs, algebra.le(1, size))))
    return evolve(data, standing=Statistic(value, sets), needs=needs, fill=nan, computed=True)


def guarded(data: Data) -> Data | None:
    """A count that is 1 where it would be 0; None of anything else."""
    if not isinstance(data.standing, Statistic):
        return None
    value = data.standing.value
    sets = ratios.mentioned(value)
    if not sets or value != ratios.total(0, sets) or data.inside:
        return None
    return evolve(data, standing=evolve(data.standing, value=atom(Many(frozenset(sets)))))


# -- sets ----------------------------------------------------------------------------------------------------


def _together(one: Statistic, two: Statistic, holds: Holds) -> tuple[tuple[Polynomial, Polynomial], Sets]:
    """Two values over one list of sets, each set in it once."""
    sets = list(one.sets)
    numbers: dict[int, int] = {}
    for number, each in enumerate(two.sets):
        numbers[number] = _placed(sets, each, holds)
    return (one.value, ratios.renumbered(two.value, numbers)), tuple(sets)


def _placed(sets: list[tuple[str, Multiset]], each: tuple[str, Multiset], holds: Holds) -> int:
    for number, known in enumerate(sets):
        chosen = _one_set(known, each, holds)
        if chosen is not None:
            sets[number] = chosen
            return number
    sets.append(each)
    return len(sets) - 1


def _one_set(one: tuple[str, Multiset], two: tuple[str, Multiset], holds: Holds) -> tuple[str, Multiset] | None:
    """The set that both are, if they have the same elements, or as many where one is only counted."""
    if one[0] == two[0]:
        return one if _holds_always(equal_counts(one[1], two[1]), holds) else None
    if PLACE not in (one[0], two[0]):
        return None
    place, named = (one, two) if one[0] == PLACE else (two, one)
    if not place[1].runs or not named[1].runs:
        return None
    moved = _moved(place[1], algebra.sub(named[1].runs[0].low, place[1].runs[0].low))
    return named if _holds_always(equal_counts(moved, named[1]), holds) else None


def _holds_always(cond: Cond, holds: Holds) -> bool:
    return cond is algebra.TRUE or (cond is not algebra.FALSE and holds(cond))


def _moved(tally: Multiset, by: Index) -> Multiset:
    """The set of numbers that are greater by so much: as many."""
    back = {COUNTED: algebra.sub(algebra.sym(COUNTED), by)}
    runs = tuple(
        evolve(e, low=algebra.add(e.low, by), high=algebra.add(e.high, by), rest=substitute(e.rest, back))
        for e in tally.runs
    )
    return Multiset(runs, substitute(tally.other, back))


def merged(statistic: Statistic, holds: Holds) -> Statistic:
    """The same with sets that are one set counted as one, and without those that it speaks of nowhere."""
    sets: list[tuple[str, Multiset]] = []
    numbers = {number: _placed(sets, statistic.sets[number], holds) for number in ratios.mentioned(statistic.value)}
    return Statistic(ratios.renumbered(statistic.value, numbers), tuple(sets))


def united(value: Value) -> Value:
    """A count, a sum, a mean or a sum of squares of several sets as one of their union; other values as they are."""
    if not isinstance(value, Data) or not isinstance(value.standing, Statistic):
        return value
    sets = [value.standing.sets[number] for number in ratios.mentioned(value.standing.value)]
    found = ratios.united(value.standing.value)
    if found is None or len({name for name, _ in sets}) != 1:
        return value
    whole = sets[0][1]
    for _, tally in sets[1:]:
        whole = whole.plus(tally)
    return evolve(value, standing=Statistic(found, ((sets[0][0], whole),)))


# -- folds ---------------------------------------------------------------------------------------------------


def started(statistic: Statistic, name: str, tally: Multiset, holds: Holds) -> Statistic | None:
    """The sum of it over elements that differ in a name, of which these are taken; without a name, they are counted."""
    if ratios.degree(statistic.value) > (0 if name == PLACE else 2):
        return None
    new = len(statistic.sets)
    value = ratios.summed(statistic.value, new)
    return merged(Statistic(value, (*statistic.sets, (name, tally))), holds)


def summed_set(statistic: Statistic) -> tuple[int, ...]:
    """The sets, by number, in whose sums the value is linear: adding up such values adds up that set."""
    if ratios.has_own(statistic.value):
        return ()
    return tuple(n for n in ratios.mentioned(statistic.value) if ratios.linear_in(statistic.value, n))


def sets_of(statistic: Statistic) -> frozenset[str]:
    """The names of the sets that a value speaks of."""
    return frozenset(statistic.sets[number][0] for number in ratios.mentioned(statistic.value))


def sets_over(data: Data, name: str) -> tuple[Multiset, ...]:
    """The sets over a name that a value is summed over, or is a statistic of; none where it is of others too."""
    if not isinstance(data.standing, Statistic):
        return () if data.sets is None or name not in data.sets else (data.sets[name],)
    found = [data.standing.sets[number] for number in ratios.mentioned(data.standing.value)]
    return tuple(tally for _, tally in found) if all(each == name for each, _ in found) else ()


# -- the end -------------------------------------------------------------------------------------------------


def closed(value: Data) -> Data:
    """The value as something computed from whole sets, which assertions must speak of; in words, what it is."""
    if not isinstance(value.standing, Statistic):
        return value
    sets = value.standing.sets
    used = ratios.mentioned(value.standing.value)
    found = list(value.closed)
    for name, tally in (sets[number] for number in used):
        if not any(name == other and equal_counts(tally, known) is algebra.TRUE for other, known in found):
            found.append((name, tally))
    form = told(value.standing, value.root)
    return evolve(
        value, standing=PLAIN, closed=tuple(found), form=form, root=form, times=1.0, computed=True, fill=nan, sets=None
    )


def told(statistic: Statistic, root: str) -> str:
    """What a statistic of elements is, in words."""
    value = statistic.value
    constant = value.get(ratios.ONE, Fraction(0))
    rest = ratios.minus(value, ratios.number(float(constant)))
    text = _told(rest, statistic.sets, root)
    number = in_digits(float(constant))
    return f"add({text}, {number})" if constant and rest else text if rest else number


def _told(value: Polynomial, sets: Sets, root: str) -> str:
    if value == atom(Own()):
        return root
    own = {monomial: c for monomial, c in value.items() if monomial == frozenset({(Own(), 1)})}
    rest = {monomial: c for monomial, c in value.items() if monomial not in own}
    for number, (name, _) in enumerate(sets):
        one = frozenset({number})
        forms = {
            "number": ratios.total(0, (number,)), "sum": ratios.total(1, (number,)), "mean": ratios.mean(one),
            "squared distances from the mean": ratios.squares(one), "variance": ratios.variance(one),
        }  # fmt: skip
        for word, form in forms.items():
            if ratios.equal(rest, form) and not own:
                return f"{word} of {root or 'elements'} over {name}"
            if own and own == atom(Own()) and ratios.equal(rest, ratios.minus({}, form)):
                return f"sub({root}, {word} of {root} over {name})"
    return " + ".join(sorted(_term(monomial, c, sets, root) for monomial, c in value.items()))


def _term(monomial: ratios.Monomial, coefficient: Fraction, sets: Sets, root: str) -> str:
    parts = [in_digits(float(coefficient))] if coefficient != 1 or not monomial else []
    for which, exponent in sorted(monomial, key=str):
        match which:
            case Own():
                text = root
            case Power(power=0, of=number) | Power(power=1, of=number) | Power(power=2, of=number):
                what = ("number", "sum", "sum of squares")[which.power]
                text = f"{what} of {root or 'elements'} over {sets[number][0]}"
            case Many(of=of):
                over_names = sorted({sets[number][0] for number in of})
                text = f"number of {root or 'elements'} over {', '.join(over_names)}"
            case Size(value=size):
                text = show(size)
            case Power():
                text = f"sum of powers of {root}"
        parts.append(f"({text})" + (f"^{exponent}" if exponent != 1 else ""))
    return " ".join(parts)
