"""Arithmetic of values that stand in a softmax (I23, I24): which reference comes out, and what must be equal for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import e, inf, isclose, isfinite, log, nan

from attrs import define, evolve, field

from argus.core import algebra
from argus.core.elementwise import evaluate_op
from argus.core.index import Cond
from argus.core.proof.dataflow.bounds import drop_implied_bounds
from argus.core.proof.values.content import (
    Data,
    Number,
    Top,
    Value,
    content_error,
    drop_padding,
    drop_proved_bounds,
    joint_loose_bounds,
)
from argus.core.proof.values.multiset_count import Multiset, Sets, equal_sets, subset_count
from argus.core.proof.values.recognisers import statistics
from argus.core.proof.values.recognisers.composed import (
    any_function,
    both_closed,
    both_needs,
    closed_over,
    computed_from,
    in_digits,
    in_words,
    products_of,
)
from argus.core.proof.values.recognisers.splits import common_bounds
from argus.core.proof.values.recognisers.standing import (
    PLAIN,
    Drop,
    Factor,
    Gap,
    Inverse,
    Logarithm,
    Maximum,
    Plain,
    Power,
    Weight,
    guards,
)

Owed = tuple[str, str, Cond]
"""An invariant, what must hold, and the condition for it."""
_EXPONENTIALS, _LOGARITHMS = ("exp", "exp2"), ("log", "log2")
_BASES = {"exp": e, "exp2": 2.0, "log": e, "log2": 2.0}
_CLOSE = 1e-6
"""How far two numbers of the program may differ that are one in single precision, relatively."""
_KEPT = "the guard of a maximum may be subtracted, that of a sum divided by, and neither kept (I23)"
_NEUTRAL = {"add": 0.0, "max": -inf, "min": inf}
_MOST_WORDS, _MOST_PARTS = 1 << 14, 1 << 12
"""Characters that say what was computed, and things that went into it; twice as many with each `x + x`."""


def _unwieldy(data: Data) -> bool:
    parts = len(data.inside) + len(data.closed) + len(data.terms) + len(data.loose)
    return max(len(data.form), len(data.root)) > _MOST_WORDS or parts > _MOST_PARTS


@define(eq=False)
class Rules:
    """What one statement computes. owed: conditions that its value presumes. holds: whether one is known there."""

    holds: Callable[[Cond], bool]
    owed: list[Owed] = field(factory=list[Owed])

    def op(self, name: str, args: Sequence[Value]) -> Value:
        """An operation from the table, of values already known; loose where one of them is."""
        value = self._op(name, args)
        if not isinstance(value, Data):
            return value
        same_products = name == "add" and all(isinstance(a, Data) and a.factors == value.factors for a in args)
        factors = value.factors if same_products or any(value is arg for arg in args) else ()
        terms = value.terms if any(value is arg for arg in args) else products_of(name, args)
        found = evolve(value, loose=joint_loose_bounds((value, *args)), factors=factors, terms=terms)
        return Top(f"`{name}` is of a value computed in too many steps") if _unwieldy(found) else found

    def _op(self, name: str, args: Sequence[Value]) -> Value:
        for arg in args:
            if not isinstance(arg, Data | Number):
                return Top(content_error(arg))
        numbers = [arg.value for arg in args if isinstance(arg, Number)]
        if any(map(statistics.is_statistic, args)):
            return self._of_statistics(name, args)
        if len(numbers) == len(args):
            return Number(evaluate_op(name, *numbers))
        if len(args) == 1:
            (arg,) = args
            assert isinstance(arg, Data)
            return self._unary(name, arg)
        left, right = args
        if isinstance(left, Number) or isinstance(right, Number):
            return self._with_number(name, left, right)
        assert isinstance(left, Data)
        assert isinstance(right, Data)
        return self._binary(name, left, right)

    @staticmethod
    def truncated(data: Data, form: str) -> Value:
        """A value as an integer, which is another value."""
        if not isinstance(data.standing, Plain):
            return Top(f"{form} has no rule in the verifier")
        return closed_over(data, form)

    def function(self, form: str, args: Sequence[Value]) -> Value:
        """A function of values of which no more is known than what they are."""
        data: list[Data] = []
        for arg in args:
            if isinstance(arg, Number):
                continue
            if not isinstance(arg, Data):
                return Top(content_error(arg))
            plain = statistics.closed(arg)
            if not isinstance(plain.standing, Plain):
                return Top(f"{form} has no rule in the verifier")
            data.append(plain)
        if not data:
            return Top(f"{form}, which is no element")
        found = evolve(any_function(form, data), loose=joint_loose_bounds(args))
        return Top(f"{form[:40]}... is of a value computed in too many steps") if _unwieldy(found) else found

    def _of_statistics(self, name: str, args: Sequence[Value]) -> Value:
        """An operation on sums of powers over sets, which stay such values or are closed."""
        found: Value | None = None
        if len(args) == 2:
            left, right = args
            if isinstance(left, Number) or isinstance(right, Number):
                found = statistics.with_number(name, left, right)
            elif isinstance(left, Data) and isinstance(right, Data):
                found = statistics.combined(name, left, right, self.holds)
        if found is not None:
            return found
        return self._op(name, [statistics.closed(arg) if isinstance(arg, Data) else arg for arg in args])

    # -- one operand -------------------------------------------------------------------------------------

    def _unary(self, name: str, arg: Data) -> Value:
        form = in_words(name, arg.form)
        match arg.standing:
            case Gap(over=over) if name in _EXPONENTIALS:
                fill = 0.0 if arg.fill == -inf and arg.times > 0 else nan
                weight = Weight(over, (name, arg.times, arg.root))
                closed = (*arg.closed, *(arg.sets or {}).items())
                return evolve(
                    arg, standing=weight, fill=fill, sets=None, closed=closed, form=form, times=1.0, computed=True
                )
            case Drop(before=before, after=after) if name in _EXPONENTIALS:
                return evolve(
                    arg,
                    standing=Factor(before, after, (name, arg.times, arg.root)),
                    form=form,
                    times=1.0,
                    computed=True,
                )
            case Weight(over=over, power=power, guarded=False) if name in _LOGARITHMS and arg.sets and arg.times == 1:
                turn = log(_BASES[power[0]]) / log(_BASES[name])
                closed = (*arg.closed, *arg.sets.items())
                standing = Logarithm(over, power, turn)
                return evolve(arg, standing=standing, fill=nan, sets=None, closed=closed, form=form, computed=True)
            case Plain() if name == "neg":
                return self._scaled(arg, -1.0, form)
            case Plain():
                return closed_over(arg, form)
            case _:
                return Top(f"`{name}` of {arg.form} has no rule in the verifier")

    # -- an operand and a number -------------------------------------------------------------------------

    def _with_number(self, name: str, left: Value, right: Value) -> Value:
        number, data = (left, right) if isinstance(left, Number) else (right, left)
        assert isinstance(number, Number)
        assert isinstance(data, Data)
        value = number.value
        form = in_words(name, *(in_digits(value) if arg is number else data.form for arg in (left, right)))
        if value == _NEUTRAL.get(name):
            return self._added_to_nothing(data)
        match name, data.standing:
            case "sub", Maximum(over=over, guarded=guarded) if number is left and value == -inf:
                nothing = evolve(data, standing=Maximum({each: Multiset() for each in over}))
                return self._less(nothing, data, Drop({each: Multiset() for each in over}, over), over, guarded=guarded)
            case "mul", Factor() | Weight() if value == 0 and data.within_bounds.finite:
                return number
            case _, Maximum() | Gap() | Drop() if name in ("mul", "div") and value < 0:
                return Top("a maximum, or what is measured from one, times a number below 0 grows beyond all bounds")
            case "mul", Plain() | Gap() | Drop() | Maximum() | Logarithm() if isfinite(value) and value != 0:
                return self._scaled(data, value, form)
            case "div", Plain() | Gap() | Drop() | Maximum() if number is right and isfinite(value) and value != 0:
                return self._scaled(data, 1 / value, form)
            case "div", Weight(over=over, power=power) if number is left and value == 1:
                return self._inverse(data, over, power, form)
            case _, Plain():
                return closed_over(data, form)
            case _:
                return Top(f"`{name}` of {data.form} and {value:g} has no rule in the verifier")

    @staticmethod
    def _added_to_nothing(data: Data) -> Value:
        """A sum of nothing and a value, or a maximum."""
        if guards(data.standing):
            return Top(_KEPT)
        return data

    @staticmethod
    def _scaled(data: Data, value: float, form: str) -> Value:
        fill = data.fill * value if data.fill != 0 else 0.0
        return evolve(data, times=data.times * value, form=form, computed=True, fill=fill)

    @staticmethod
    def _inverse(data: Data, over: Sets, power: Power, form: str) -> Value:
        if not data.sets:
            return Top(f"one over {data.form} has no rule in the verifier")
        closed = (*data.closed, *data.sets.items())
        needs = (*data.needs, *(tally.nonempty for tally in data.sets.values()))
        standing = Inverse(over, power)
        return evolve(
            data, standing=standing, closed=closed, sets=None, needs=needs, form=form, fill=nan, computed=True
        )

    # -- two operands ------------------------------------------------------------------------------------

    def _binary(self, name: str, left: Data, right: Data) -> Value:
        used = "div" if isinstance(right.standing, Weight) else "sub"
        if guards(left.standing) or (guards(right.standing) and name != used):
            return Top(_KEPT)
        match name, left.standing, right.standing:
            case "max", Maximum(over=one), Maximum(over=two):
                return self._higher(left, right, one, two)
            case "sub", Maximum(over=before), Maximum(over=after, guarded=guarded):
                return self._less(left, right, Drop(before, after), after, guarded=guarded)
            case "sub", Plain(), Maximum(over=after, guarded=guarded):
                return self._less(left, right, Gap(after), after, guarded=guarded)
            case "mul", Weight(), Factor():
                return self._rescaled(left, right)
            case "mul", Factor(), Weight():
                return self._rescaled(right, left)
            case "mul", Weight(over=one, power=power), Inverse(over=two, power=other):
                self._equal_references(left, right, one, two, "the quotient")
                same_power = power == other
                return self._quotient(left, right) if same_power else Top("a quotient of unlike exponentials")
            case "mul", Inverse(), Weight():
                return self._binary(name, right, left)
            case "div", Weight(over=one, power=power), Weight(over=two, power=other) if right.sets and power == other:
                self._equal_references(left, right, one, two, "the quotient")
                inverse = self._inverse(right, two, other, right.form)
                assert isinstance(inverse, Data)
                return self._quotient(left, inverse)
            case "add", Weight(over=one, power=power), Weight(over=two, power=other) if (
                power == other and left.root == right.root
            ):
                self._equal_references(left, right, one, two, "the sum")
                return self._added(left, right)
            case "add", Logarithm(), Maximum():
                return self._whole(left, right)
            case "add", Maximum(), Logarithm():
                return self._whole(right, left)
            case "add", Plain(), Plain() if left.sets and right.sets and left.root == right.root:
                return self._added(left, right)
            case _, Plain(), Plain():
                return computed_from(name, left, right)
            case _:
                return Top(f"`{name}` of {left.form} and {right.form} has no rule in the verifier")

    def _whole(self, part: Data, maximum: Data) -> Value:
        """The logarithm of a sum of exponentials: that of the sum in units of the maximum, and the maximum."""
        assert isinstance(part.standing, Logarithm)
        assert isinstance(maximum.standing, Maximum)
        _, number, root = part.standing.power
        form = in_words("add", part.form, maximum.form)
        if maximum.root != root or not isclose(maximum.times, part.times * number * part.standing.turn, rel_tol=_CLOSE):
            return Top(f"`{form}` is no logarithm of a sum: the maximum is another, or in other units")
        self._equal_references(part, maximum, part.standing.over, maximum.standing.over, "the logarithm")
        record, needs = {**maximum.record, **part.record}, both_needs(part, maximum)
        inside, closed = (*part.inside, *maximum.inside), both_closed(part, maximum)
        return evolve(
            part, record=record, inside=inside, closed=closed, needs=needs,
            standing=PLAIN, fill=nan, form=form, root=form, times=1.0,
        )  # fmt: skip

    def _equal_references(self, left: Data, right: Data, one: Sets, two: Sets, what: str) -> None:
        self.owed.append(("I23", f"{what} is of weights with equal references", equal_sets(one, two)))
        self._one_score(left, right)

    def _one_score(self, left: Data, right: Data) -> None:
        """What two values were computed from is summed over the same sets, where they were made of one thing."""
        for name, mine in (
            (*(left.sets or {}).items(), *left.closed) if isinstance(left.standing, Plain) else left.closed
        ):
            for other, theirs in right.closed:
                if name == other:
                    goal = equal_sets({name: mine}, {name: theirs})
                    self.owed.append(("I23", f"scores that meet are sums over one set of `{name}`", goal))

    def _higher(self, left: Data, right: Data, one: Sets, two: Sets) -> Value:
        if (
            (left.root, left.times) != (right.root, right.times)
            or one.keys() != two.keys()
            or left.inside
            or right.inside
        ):
            return Top(f"the maximum of {left.form} and {right.form} has no rule in the verifier")
        over = {name: one[name].plus(two[name]).support for name in one}
        self._one_score(left, right)
        record, closed = {**right.record, **left.record}, both_closed(left, right)
        return evolve(left, record=record, standing=Maximum(over), needs=both_needs(left, right), closed=closed)

    def _less(self, left: Data, right: Data, standing: Gap | Drop, after: Sets, *, guarded: bool) -> Value:
        """Less a maximum, which is a number wherever it is over something, or guarded."""
        if left.inside and left.fill != -inf:
            left = drop_padding(drop_proved_bounds(self.holds, left))
        if (left.root, left.times) != (right.root, right.times):
            return Top(f"{left.form} less {right.form}, which is a maximum of something else")
        if right.inside or (isinstance(left.standing, Maximum) and left.inside):
            return Top(f"{right.form} is a maximum of padding too")
        some = () if guarded else tuple(tally.nonempty for tally in after.values())
        there = tuple(cond for cond in some if not self.holds(cond))
        if algebra.FALSE in there:
            return Top(f"{right.form} may be -inf where a thread holds no element: guard the subtraction")
        record = {**right.record, **left.record}
        needs, form = (*both_needs(left, right), *there), in_words("sub", left.form, right.form)
        self._one_score(left, right)
        closed = both_closed(left, right)
        return evolve(left, record=record, standing=standing, needs=needs, computed=True, form=form, closed=closed)

    def _rescaled(self, weight: Data, factor: Data) -> Value:
        """A weight in units of another reference; what has no reference must have no weight either."""
        assert isinstance(weight.standing, Weight)
        assert isinstance(factor.standing, Factor)
        before, after = factor.standing.before, factor.standing.after
        if weight.standing.power != factor.standing.power:
            return Top("weights rescaled by another exponential than their own")
        what = "a sum of weights is rescaled from its own reference"
        self.owed.append(("I23", what, equal_sets(weight.standing.over, before)))
        for name, tally in before.items():
            summed = (weight.sets or {}).get(name)
            part = algebra.FALSE if summed is None else subset_count(summed, tally)
            what = f"what is rescaled is part of what its reference over `{name}` is over, or that is over something"
            self.owed.append(("I23", what, algebra.any_of((tally.nonempty, part))))
        record = {**factor.record, **weight.record}
        standing = Weight(after, weight.standing.power)
        inside = (*weight.inside, *factor.inside)
        self._one_score(weight, factor)
        needs, closed = both_needs(weight, factor), both_closed(weight, factor)
        fill = nan if factor.inside else weight.fill
        return evolve(weight, record=record, standing=standing, inside=inside, fill=fill, needs=needs, closed=closed)

    @staticmethod
    def _quotient(left: Data, right: Data) -> Value:
        """Weights over their sum: the reference is gone."""
        record, inside = {**right.record, **left.record}, (*left.inside, *right.inside)
        closed, needs = (*left.closed, *right.closed), both_needs(left, right)
        form = in_words("div", left.form, right.form)
        return evolve(
            left,
            record=record,
            inside=inside,
            closed=closed,
            needs=needs,
            standing=PLAIN,
            fill=nan,
            form=form,
            root=form,
        )

    def _added(self, left: Data, right: Data) -> Value:
        """Two sums over the same names: each number counts as often as in both."""
        if common_bounds(left, right) is None:
            left, right = drop_implied_bounds(self.holds, left, right)
        if left.sets is None or right.sets is None or left.sets.keys() != right.sets.keys():
            return Top(f"{left.form} plus {right.form}: what is summed is not counted by one name")
        inside = common_bounds(left, right)
        if inside is None or left.times != right.times:
            return Top(f"{left.form} plus {right.form} has no rule in the verifier")
        fill = 0.0 if left.fill == right.fill == 0 else nan
        sets = {name: left.sets[name].plus(right.sets[name]) for name in left.sets}
        scales, common = left.scales | right.scales, left.record.keys() & right.record.keys()
        record = {n: part for n, part in {**right.record, **left.record}.items() if n in common or n not in scales}
        needs, closed = both_needs(left, right), both_closed(left, right)
        return evolve(
            left, record=record, inside=inside, fill=fill, sets=sets, needs=needs, closed=closed, scales=scales
        )
