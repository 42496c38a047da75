"""Arithmetic of values that stand in a softmax (I23, I24): which reference comes out, and what must be equal for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, isfinite, nan

from attrs import define, evolve, field

from argus.core import algebra
from argus.core.elementwise import ELEMENT_OPS
from argus.core.index import Cond
from argus.core.proof.content import (
    Data,
    Inside,
    Multiplied,
    Number,
    Top,
    Value,
    both_loose,
    loosened,
    unpadded,
    why_not,
)
from argus.core.proof.separate import Component
from argus.core.proof.splits import common_bounds
from argus.core.proof.standing import PLAIN, Drop, Factor, Gap, Inverse, Maximum, Plain, Power, Weight
from argus.core.proof.tally import Sets, Tally, alike, same, within

Owed = tuple[str, str, Cond]
"""An invariant, what must hold, and the condition for it."""
_EXPONENTIALS = ("exp", "exp2")
_NEUTRAL = {"add": 0.0, "max": -inf, "min": inf}


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
        terms = value.terms if any(value is arg for arg in args) else _terms(name, args)
        return evolve(value, loose=both_loose((value, *args)), factors=factors, terms=terms)

    def _op(self, name: str, args: Sequence[Value]) -> Value:
        for arg in args:
            if not isinstance(arg, Data | Number):
                return Top(why_not(arg))
        numbers = [arg.value for arg in args if isinstance(arg, Number)]
        if len(numbers) == len(args):
            return Number(float(ELEMENT_OPS[name].meaning(*numbers)))
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

    # -- one operand -------------------------------------------------------------------------------------

    def _unary(self, name: str, arg: Data) -> Value:
        form = _form(name, arg.form)
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
            case Plain() if name == "neg":
                return self._scaled(arg, -1.0, form)
            case Plain():
                return _closed(arg, form)
            case _:
                return Top(f"`{name}` of {arg.form} has no rule in the verifier")

    # -- an operand and a number -------------------------------------------------------------------------

    def _with_number(self, name: str, left: Value, right: Value) -> Value:
        number, data = (left, right) if isinstance(left, Number) else (right, left)
        assert isinstance(number, Number)
        assert isinstance(data, Data)
        value = number.value
        form = _form(name, *(f"{value:g}" if arg is number else data.form for arg in (left, right)))
        if value == _NEUTRAL.get(name):
            return self._added_to_nothing(data)
        match name, data.standing:
            case "sub", Maximum(over=over, guarded=guarded) if number is left and value == -inf:
                nothing = evolve(data, standing=Maximum({each: Tally() for each in over}))
                return self._less(nothing, data, Drop({each: Tally() for each in over}, over), over, guarded=guarded)
            case "mul", Factor() | Weight() if value == 0 and not data.needs:
                return number
            case _, Maximum() if name in ("mul", "div") and value < 0:
                return Top("a maximum times a number below 0 is none")
            case "mul", Plain() | Gap() | Drop() | Maximum() if isfinite(value) and value != 0:
                return self._scaled(data, value, form)
            case "div", Plain() | Gap() | Drop() | Maximum() if number is right and isfinite(value) and value != 0:
                return self._scaled(data, 1 / value, form)
            case "div", Weight(over=over, power=power) if number is left and value == 1:
                return self._inverse(data, over, power, form)
            case _, Plain():
                return _closed(data, form)
            case _:
                return Top(f"`{name}` of {data.form} and {value:g} has no rule in the verifier")

    @staticmethod
    def _added_to_nothing(data: Data) -> Value:
        """A sum of nothing and a value, or a maximum."""
        if isinstance(data.standing, Maximum) and data.standing.guarded:
            return Top("the guard of a maximum may be subtracted, and not kept (I23)")
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
        needs = (*data.needs, *(tally.some for tally in data.sets.values()))
        standing = Inverse(over, power)
        return evolve(
            data, standing=standing, closed=closed, sets=None, needs=needs, form=form, fill=nan, computed=True
        )

    # -- two operands ------------------------------------------------------------------------------------

    def _binary(self, name: str, left: Data, right: Data) -> Value:
        for one in (left, right):
            if isinstance(one.standing, Maximum) and one.standing.guarded and (name != "sub" or one is left):
                return Top("the guard of a maximum may be subtracted, and not kept (I23)")
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
                self._equal_references(one, two, "the quotient")
                same_power = power == other
                return self._quotient(left, right) if same_power else Top("a quotient of unlike exponentials")
            case "mul", Inverse(), Weight():
                return self._binary(name, right, left)
            case "div", Weight(over=one, power=power), Weight(over=two, power=other) if right.sets and power == other:
                self._equal_references(one, two, "the quotient")
                inverse = self._inverse(right, two, other, right.form)
                assert isinstance(inverse, Data)
                return self._quotient(left, inverse)
            case "add", Weight(over=one, power=power), Weight(over=two, power=other) if (
                power == other and left.root == right.root
            ):
                self._equal_references(one, two, "the sum")
                return self._added(left, right)
            case "add", Plain(), Plain() if left.sets and right.sets and left.root == right.root:
                return self._added(left, right)
            case _, Plain(), Plain():
                return _generic(name, left, right)
            case _:
                return Top(f"`{name}` of {left.form} and {right.form} has no rule in the verifier")

    def _equal_references(self, one: Sets, two: Sets, what: str) -> None:
        self.owed.append(("I23", f"{what} is of weights with equal references", alike(one, two)))

    @staticmethod
    def _higher(left: Data, right: Data, one: Sets, two: Sets) -> Value:
        if (
            (left.root, left.times) != (right.root, right.times)
            or one.keys() != two.keys()
            or left.inside
            or right.inside
        ):
            return Top(f"the maximum of {left.form} and {right.form} has no rule in the verifier")
        over = {name: one[name].plus(two[name]).once for name in one}
        record, closed = {**right.record, **left.record}, _both_closed(left, right)
        return evolve(left, record=record, standing=Maximum(over), needs=_needs(left, right), closed=closed)

    def _less(self, left: Data, right: Data, standing: Gap | Drop, after: Sets, *, guarded: bool) -> Value:
        """Less a maximum, which is a number wherever it is over something, or guarded."""
        if left.inside and left.fill != -inf:
            left = loosened(unpadded(self.holds, left))
        if (left.root, left.times) != (right.root, right.times):
            return Top(f"{left.form} less {right.form}, which is a maximum of something else")
        if right.inside or (isinstance(left.standing, Maximum) and left.inside):
            return Top(f"{right.form} is a maximum of padding too")
        some = () if guarded else tuple(tally.some for tally in after.values())
        there = tuple(cond for cond in some if not self.holds(cond))
        if algebra.FALSE in there:
            return Top(f"{right.form} may be -inf where a thread holds no element: guard the subtraction")
        record = {**right.record, **left.record}
        needs, form = (*_needs(left, right), *there), _form("sub", left.form, right.form)
        closed = _both_closed(left, right)
        return evolve(left, record=record, standing=standing, needs=needs, computed=True, form=form, closed=closed)

    def _rescaled(self, weight: Data, factor: Data) -> Value:
        """A weight in units of another reference; what has no reference must have no weight either."""
        assert isinstance(weight.standing, Weight)
        assert isinstance(factor.standing, Factor)
        before, after = factor.standing.before, factor.standing.after
        if weight.standing.power != factor.standing.power:
            return Top("weights rescaled by another exponential than their own")
        what = "a sum of weights is rescaled from its own reference"
        self.owed.append(("I23", what, alike(weight.standing.over, before)))
        for name, tally in (weight.sets or {}).items():
            if name in before:
                goal = algebra.any_of((before[name].some, within(tally, before[name])))
                self.owed.append(("I23", f"what is summed over `{name}` is part of what its reference is over", goal))
        record = {**factor.record, **weight.record}
        standing = Weight(after, weight.standing.power)
        inside = (*weight.inside, *factor.inside)
        needs, closed = _needs(weight, factor), _both_closed(weight, factor)
        return evolve(weight, record=record, standing=standing, inside=inside, needs=needs, closed=closed)

    @staticmethod
    def _quotient(left: Data, right: Data) -> Value:
        """Weights over their sum: the reference is gone."""
        record, inside = {**right.record, **left.record}, (*left.inside, *right.inside)
        closed, needs = (*left.closed, *right.closed), _needs(left, right)
        form = _form("div", left.form, right.form)
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

    @staticmethod
    def _added(left: Data, right: Data) -> Value:
        """Two sums over the same names: each number counts as often as in both."""
        if left.sets is None or right.sets is None or left.sets.keys() != right.sets.keys():
            return Top(f"{left.form} plus {right.form}: what is summed is not counted by one name")
        inside = common_bounds(left, right)
        if inside is None or left.times != right.times:
            return Top(f"{left.form} plus {right.form} has no rule in the verifier")
        fill = 0.0 if left.fill == right.fill == 0 else nan
        sets = {name: left.sets[name].plus(right.sets[name]) for name in left.sets}
        scales, common = left.scales | right.scales, left.record.keys() & right.record.keys()
        record = {n: part for n, part in {**right.record, **left.record}.items() if n in common or n not in scales}
        needs, closed = _needs(left, right), _both_closed(left, right)
        return evolve(
            left, record=record, inside=inside, fill=fill, sets=sets, needs=needs, closed=closed, scales=scales
        )


def _terms(name: str, args: Sequence[Value]) -> tuple[Multiplied, ...]:
    """What a product of two elements, or a sum of such products, is the sum of."""
    known = [arg for arg in args if isinstance(arg, Data) and arg.terms and arg.plain and not arg.sets]
    if len(known) != len(args) or len(args) != 2:
        return ()
    factors = [len(term.tensors) for arg in known for term in arg.terms]
    if name == "add" and set(factors) == {2}:
        return tuple(term for arg in known for term in arg.terms)
    if name != "mul" or factors != [1, 1] or any(arg.computed for arg in known):
        return ()
    (one,), (two,) = (arg.terms for arg in known)
    product = Multiplied((*one.tensors, *two.tensors), (*one.places, *two.places), (*one.inside, *two.inside))
    return (product,)


def _closed(data: Data, form: str) -> Data:
    """A function of one value that is not linear: sums that went into it are over."""
    closed = (*data.closed, *(data.sets or {}).items())
    return evolve(data, form=form, root=form, times=1.0, computed=True, fill=nan, sets=None, closed=closed)


def _generic(name: str, left: Data, right: Data) -> Value:
    """Things computed from two plain values: what went into them stays known. One sum times something is a sum."""
    record: dict[str, Component] = {**left.record, **right.record}
    inside: tuple[Inside, ...] = (*left.inside, *right.inside)
    linear = (name == "mul" and bool(left.sets) != bool(right.sets)) or (name == "div" and not right.sets)
    sets: dict[str, Tally] = {**(left.sets or {}), **(right.sets or {})} if linear else {}
    over = () if linear else (*(left.sets or {}).items(), *(right.sets or {}).items())
    closed, root = (*left.closed, *right.closed, *over), _form(name, _rooted(left), _rooted(right))
    return Data(
        record, inside, nan, sets or None, _form(name, left.form, right.form), computed=True, root=root, closed=closed,
        needs=_needs(left, right), scales=_only_of_scales(left, right) if sets else frozenset(),
    )  # fmt: skip


def _only_of_scales(left: Data, right: Data) -> frozenset[str]:
    """Of a sum and its scale, the names that the scale alone carries."""
    summed, scale = (left, right) if left.sets else (right, left)
    return summed.scales | (scale.record.keys() - summed.record.keys())


def _rooted(data: Data) -> str:
    return data.root if data.times == 1 else f"{data.times:g} {data.root}"


def _both_closed(left: Data, right: Data) -> tuple[tuple[str, Tally], ...]:
    """What is closed in either, once where it is one set in form."""
    found = list(left.closed)
    for name, tally in right.closed:
        if not any(name == other and same(tally, known) is algebra.TRUE for other, known in found):
            found.append((name, tally))
    return tuple(found)


def _needs(left: Data, right: Data) -> tuple[Cond, ...]:
    return tuple(dict.fromkeys((*left.needs, *right.needs)))


def _form(name: str, *parts: str) -> str:
    return f"{name}({', '.join(parts)})"
