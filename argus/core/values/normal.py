"""The normal form of an expression, and the conditions under which it says the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from attrs import field, frozen

from argus.core import algebra
from argus.core.index import Cond
from argus.core.values import binding
from argus.core.values import polynomial as polys
from argus.core.values.atoms import (
    ONE,
    ZERO,
    NoNormalFormError,
    Poly,
    cell,
    constant,
    number_of,
    of_atom,
)
from argus.core.values.cases import (
    NOTHING,
    Cases,
    Infinite,
    Leaf,
    Open,
    Undefined,
    Value,
    cases,
    on_leaves,
    on_pairs,
    opened,
    settle,
    within,
)
from argus.core.values.conditions import EVERYWHERE, Apart, Condition, Integers, NotNegative, Positive, Scope
from argus.core.values.effort import Effort, size, size_of_product, unlimited
from argus.core.values.expr import (
    Choose,
    Compare,
    Element,
    Expr,
    Fn,
    Infinity,
    Number,
    Reduce,
    Test,
    Whole,
    fn,
    reduce_,
)
from argus.core.values.extended import (
    compared,
    exp_of,
    is_scaled,
    maximum_of,
    opaque_of,
    product_of,
    scaled_open,
    sum_of,
)
from argus.core.values.nests import ordered
from argus.core.values.numbers import above_zero
from argus.core.values.operations import OPERATIONS
from argus.core.values.truth import holds
from argus.core.values.wrapping import wrapped_form
from argus.core.wrapping import BITS

Premises = frozenset[Condition] | None
"""What shows a condition by the shape of its expression; None if nothing is known to."""


@frozen
class NormalForm:
    """The normal form of a value, and the conditions that it needs, as `Normaliser` collects them."""

    value: Value
    conditions: frozenset[Condition]
    shown: Mapping[Condition, frozenset[Condition]]


def normal_form(of: Expr, effort: Effort | None = None) -> NormalForm | str:
    """The normal form of an expression, or why there is none. effort: what it may take; without a limit if None."""
    side = Normaliser(effort or unlimited())
    try:
        value = side.value(of)
    except NoNormalFormError as error:
        return str(error)
    return NormalForm(value, frozenset(side.conditions), side.shown)


FormOf = Callable[[Expr, Effort], NormalForm | str]
"""`normal_form`, or the same with answers kept."""


@frozen
class Normaliser:
    """Normal forms under a path of conditions; collects what they need.

    effort: what they may take. shown: conditions that hold by the shape of their expression, with those on integers
    that this takes.
    """

    effort: Effort
    conditions: set[Condition] = field(factory=set[Condition])
    shown: dict[Condition, frozenset[Condition]] = field(factory=dict[Condition, frozenset[Condition]])
    given: tuple[Cond, ...] = ()
    scope: Scope = EVERYWHERE
    known: dict[Expr, Value] = field(factory=dict[Expr, Value])

    def value(self, of: Expr) -> Value:
        """The normal form. Raises NoNormalFormError."""
        found = self.known.get(of)
        if found is None:
            found = self.known[of] = self._value(of)
            self.effort.spend(_size(found))
        return found

    def _value(self, of: Expr) -> Value:
        match of:
            case Number(value=number):
                return constant(number)
            case Infinity(sign=sign):
                return Infinite(sign)
            case Whole(index=index):
                return polys.count(index)
            case Element(tensor=tensor, at=at):
                return of_atom(cell(tensor, at))
            case Fn():
                return self._function(of)
            case Choose(test=test, then=then, other=other):
                return self._choice(test, then, other)
            case Reduce():
                return self._reduction(of)

    def _under(self, test: Test, *, true: bool = True) -> Normaliser:
        """That of a branch."""
        conds = () if isinstance(test, Compare) else (test if true else algebra.negate(test),)
        return Normaliser(
            self.effort, self.conditions, self.shown, (*self.given, *conds), self.scope.under(test, true=true)
        )

    def _over(self, of: Reduce) -> Normaliser:
        """That of a reduction's body."""
        here = algebra.sym(of.variable)
        conds = algebra.le(of.low, here), algebra.lt(here, of.high), of.where
        return Normaliser(
            self.effort, self.conditions, self.shown, (*self.given, *conds), self.scope.over(of.variable, *conds)
        )

    def _choice(self, test: Test, then: Expr, other: Expr) -> Value:
        holds = self.test(test)
        return self._split(holds, self._under(test).value(then), self._under(test, true=False).value(other))

    def _split(self, holds: Value, then: Value, other: Value) -> Value:
        if isinstance(holds, Poly):
            if holds is ONE or holds is ZERO:
                return then if holds is ONE else other
            self.effort.spend(_size_of_product(holds, then) + _size_of_product(holds, other))
            return cases(holds, within(then, holds, holds=True), within(other, holds, holds=False))
        if isinstance(holds, Cases):
            return cases(holds.test, self._split(holds.then, then, other), self._split(holds.other, then, other))
        return Undefined()

    def test(self, of: Test) -> Value:
        """1 or 0, by cases."""
        if not isinstance(of, Compare):
            return holds(of)
        left, right = self.value(of.left), self.value(of.right)
        return on_pairs(left, right, lambda a, b: compared(of.op, a, b))

    # -- operations ------------------------------------------------------------------------------------

    def _function(self, of: Fn) -> Value:
        entry = OPERATIONS.get(of.name)
        if entry is not None and len(of.args) != entry.arity:
            raise NoNormalFormError(f"`{of.name}` takes {entry.arity} arguments, found {len(of.args)}")
        if entry is not None and entry.definition is not None:
            return self.value(entry.definition(*of.args))
        args = [self.value(each) for each in of.args]
        if of.name in ("mul", "div"):
            self.effort.spend(_size_of_product(args[0], args[1]))
        match of.name:
            case "add":
                return sum_of(args[0], args[1])
            case "mul":
                return on_pairs(args[0], args[1], product_of) if not is_scaled(args) else scaled_open(args)
            case "div":
                known = self._known_above(of.args[1])
                return on_pairs(args[0], args[1], lambda a, b: self._quotient(a, b, known))
            case "pow":
                known = self._known_above(of.args[0])
                return on_pairs(args[0], args[1], lambda a, b: self._power(a, b, known))
            case "exp":
                return on_leaves(args[0], exp_of)
            case "log":
                known = self._known_above(of.args[0])
                return on_leaves(args[0], lambda a: self._log(a, known))
            case "max":
                return maximum_of(args[0], args[1])
            case name if name in BITS:
                return on_leaves(args[0], lambda a: wrapped_form(name, a))
            case _:
                return opaque_of(of.name, args)

    def _need(self, condition: Condition, known: Premises) -> None:
        if known is None:
            self.conditions.add(condition)
        elif condition not in self.shown or known < self.shown[condition]:
            self.shown[condition] = known

    def _known_above(self, of: Expr) -> Premises:
        """The conditions on integers under which the value is above 0 by its shape; None if it is not known to be."""
        found = above_zero(of)
        if found is None:
            return None
        return frozenset(Integers(each, self.given, self.scope) for each in found if each is not algebra.TRUE)

    def _quotient(self, a: Leaf, b: Leaf, known: Premises) -> Value:
        if isinstance(b, Infinite) and isinstance(a, Poly):
            return ZERO
        if not isinstance(b, Poly) or b is ZERO:
            return Undefined()
        if number_of(b) is None:
            self._need(Apart(b, self.scope.of(b.free)), known)
        return product_of(a, polys.power(b, -1))

    def _power(self, a: Leaf, b: Leaf, known: Premises) -> Value:
        exponent = number_of(b) if isinstance(b, Poly) else None
        if not isinstance(a, Poly) or not isinstance(b, Poly):
            return Undefined()
        if exponent is None:
            self._need(Positive(a, self.scope.of(a.free)), known)
            return polys.exp(polys.mul(b, polys.log(a)))
        if exponent.denominator > 1:
            number = number_of(a)
            if number is not None and number <= 0:
                return ZERO if number == 0 and exponent > 0 else Undefined()
            self._need(NotNegative(a, self.scope) if exponent > 0 else Positive(a, self.scope.of(a.free)), known)
        elif exponent < 0:
            if a is ZERO:
                return Undefined()
            self._need(Apart(a, self.scope.of(a.free)), known)
        return polys.power(a, exponent)

    def _log(self, a: Leaf, known: Premises) -> Value:
        if isinstance(a, Infinite):
            return a if a.sign > 0 else Undefined()
        if not isinstance(a, Poly):
            return a
        if a is ZERO:
            return NOTHING
        number = number_of(a)
        if number is not None and number < 0:
            return Undefined()
        self._need(Positive(a, self.scope.of(a.free)), known)
        return polys.log(a)

    # -- reductions ------------------------------------------------------------------------------------

    def _reduction(self, of: Reduce) -> Value:
        of = ordered(of)
        if of.op == "min":
            body = fn("neg", of.body)
            return self.value(fn("neg", reduce_("max", of.variable, of.low, of.high, body, of.where)))
        self.conditions.add(Integers(algebra.le(of.low, of.high), self.given, self.scope))
        body, where = self._over(of).value(of.body), holds(of.where)
        if of.op == "max":
            return self._greatest(of, where, body)
        return self._accumulated(of, where, body)

    def _accumulated(self, of: Reduce, where: Poly, body: Value) -> Value:
        """The sum, or the product, branch by branch: one of infinite terms has no value, unless its set is empty."""
        neutral = ZERO if of.op == "sum" else ONE
        there = binding.inhabited(of.variable, of.low, of.high, where)
        body = settle(within(body, there, holds=True))  # it has this point
        finite = cases(where, body, neutral)
        if isinstance(finite, Poly):
            over = binding.sum_over if of.op == "sum" else binding.product_over
            return over(of.variable, of.low, of.high, finite)
        if isinstance(body, Cases) and of.variable not in body.test.free:
            branches = (self._accumulated(of, where, each) for each in (body.then, body.other))
            return cases(body.test, *branches)
        if isinstance(body, Infinite | Undefined):
            return cases(there, Undefined(), neutral)
        raise NoNormalFormError(f"the body of a {of.op} may be infinite")

    def _greatest(self, of: Reduce, where: Poly, body: Value) -> Value:
        """The maximum, branch by branch: a branch that is -inf adds nothing."""
        body = opened(body)
        if isinstance(body, Poly):
            poly, test = binding.greatest(of.variable, of.low, of.high, where, body)
            return poly if test is ONE else Open(poly, test) if test is not ZERO else NOTHING
        if isinstance(body, Open):  # a maximum of maxima: its empty ones add nothing
            return self._greatest(of, polys.mul(where, body.test), body.of)
        if isinstance(body, Infinite) and body.sign < 0:
            return NOTHING
        if isinstance(body, Cases):
            if of.variable not in body.test.free:
                return cases(body.test, self._greatest(of, where, body.then), self._greatest(of, where, body.other))
            yes, no = polys.mul(where, body.test), polys.mul(where, polys.sub(ONE, body.test))
            return maximum_of(self._greatest(of, yes, body.then), self._greatest(of, no, body.other))
        raise NoNormalFormError("the body of a maximum is infinite or has no value")


def _size(value: Value) -> int:
    """The size of all branches of a value."""
    return sum(map(size, _parts(value)))


def _size_of_product(one: Value, two: Value) -> int:
    """That of a product of two values, whose branches are multiplied each by each."""
    return sum(size_of_product(a, b) for a in _parts(one) for b in _parts(two))


def _parts(value: Value) -> Iterator[Poly]:
    """The polynomials of a value: of its branches, and of its tests."""
    match value:
        case Poly():
            yield value
        case Cases(test=test, then=then, other=other):
            yield test
            yield from _parts(then)
            yield from _parts(other)
        case Open(of=of, test=test):
            yield of
            yield test
        case Infinite() | Undefined():
            yield ONE
