"""Sums of products with divisors that are apart from 0, or guarded: a / where(S == 0, 1, S).

Divisors are cleared as if none were 0; the result is checked again for each way in which they can be: a guarded
divisor is a sum of parts that are at least 0, and where one is 0, so is what vanishes with it (the sum of the elements
that it counts).
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations

from attrs import define, field, frozen

from argus.core import algebra
from argus.core.algebra.integers import linear_terms
from argus.core.proof.values.held.facts import Known
from argus.core.proof.values.held.folds import Range, reduction
from argus.core.proof.values.held.guards import ONE, ZERO, divided, guarded, vanishes_with
from argus.core.proof.values.held.products import Monomial, Terms, order, ratio, scaled, total, without
from argus.core.proof.values.held.terms import all_symbols, chosen, plus
from argus.core.values.expr import Choose, Expr, Fn, Number, Reduce, Whole, choose, expr, fn
from argus.core.values.numbers import above_zero, at_least_zero
from argus.core.values.rewriting import map_parts, nodes

_LARGEST = 400
_TERMS = 300
_PARTS = 4


@frozen(eq=False)
class Divisor:
    """What a factor divides by. guarded: the factor is 1 where the divisor is 0; else it never is."""

    of: Expr
    terms: Mapping[Monomial, Fraction]
    guarded: bool


@define(eq=False)
class Fractions:
    """Sums of products over numbered factors. known: what holds where they are used."""

    known: Known
    factors: list[Expr] = field(factory=list[Expr], init=False)
    divisors: dict[int, Divisor] = field(factory=dict[int, Divisor], init=False)
    _numbers: dict[Expr, int] = field(factory=dict[Expr, int], init=False)

    # -- reading -----------------------------------------------------------------------------------------

    def terms(self, of: Expr) -> Terms:
        """The expression as a sum of products."""
        match of:
            case Number(value=value):
                return {(): value} if value else {}
            case Whole(index=index):
                parts, offset = linear_terms(index)
                found: Terms = {(): Fraction(offset)} if offset else {}
                for atom, factor in parts:
                    found = total(found, {((self.number(expr(atom)), 1),): Fraction(factor)})
                return found
            case Fn(name="add", args=(a, b)):
                return total(self.terms(a), self.terms(b))
            case Fn(name="sub", args=(a, b)):
                return total(self.terms(a), scaled(self.terms(b), -1))
            case Fn(name="neg", args=(a,)):
                return scaled(self.terms(a), -1)
            case Fn(name="mul", args=(a, b)):
                return self.product(self.terms(a), self.terms(b))
            case Fn(name="div", args=(a, b)):
                return self.product(self.terms(a), self._reciprocal(b))
            case Fn(name="reciprocal", args=(a,)):
                return self._reciprocal(a)
            case Choose(test=test, then=then, other=other) if other is ZERO and then is not ONE:
                return self.product({((self.number(choose(test, 1, 0)), 1),): Fraction(1)}, self.terms(then))
            case Reduce(op="sum", low=low, where=where) if low is algebra.const(0) and where is algebra.TRUE:
                return self._summed(of)
            case _:
                return {((self.number(of), 1),): Fraction(1)}

    def number(self, of: Expr) -> int:
        """The number of a factor."""
        if of not in self._numbers:
            self._numbers[of] = len(self.factors)
            self.factors.append(of)
        return self._numbers[of]

    def _reciprocal(self, of: Expr) -> Terms:
        if isinstance(of, Number) and of.value:
            return {(): 1 / of.value}
        by = guarded(of)
        if by is None and not self._apart(of):
            return {((self.number(fn("div", 1, of)), 1),): Fraction(1)}
        terms = self.terms(of if by is None else by)
        if len(terms) == 1 and () in terms:
            return {(): 1 / terms[()]}
        for number, each in self.divisors.items():
            if each.terms == terms and each.guarded == (by is not None):
                return {((number, 1),): Fraction(1)}
        name = fn("div", 1, of) if by is None else divided(ONE, by)
        number = self.number(name)
        self.divisors[number] = Divisor(of if by is None else by, terms, by is not None)
        return {((number, 1),): Fraction(1)}

    def _apart(self, of: Expr) -> bool:
        conds = above_zero(of)
        return conds is not None and all(self.known.holds(each) for each in conds)

    def _summed(self, of: Reduce) -> Terms:
        """The sum of a sum is one of sums; what the variable does not occur in comes out."""
        inner = Fractions(self.known)
        parts = inner.terms(of.body)
        found: Terms = {}
        for monomial, factor in parts.items():
            outer: Terms = {(): factor}
            within: list[tuple[int, int]] = []
            for number, power in monomial:
                if of.variable in all_symbols(inner.factors[number]):
                    within.append((number, power))
                else:
                    outer = self.product(outer, self._power(inner.factors[number], power))
            body = inner.written({tuple(within): Fraction(1)})
            summed = reduction("sum", [Range(of.variable, of.high)], body)
            whole = self.terms(expr(of.high)) if body is ONE else self._atom(summed)
            found = total(found, self.product(outer, whole))
        return found

    def _atom(self, of: Expr) -> Terms:
        return {((self.number(of), 1),): Fraction(1)}

    def _power(self, of: Expr, power: int) -> Terms:
        one, found = self.terms(of) if isinstance(of, Fn | Number) else self._atom(of), {(): Fraction(1)}
        for _ in range(power):
            found = self.product(found, one)
        return found

    def product(self, a: Terms, b: Terms) -> Terms:
        """The product; tests are their own squares."""
        found: Terms = {}
        for left, x in a.items():
            for right, y in b.items():
                powers = dict(left)
                for number, power in right:
                    powers[number] = powers.get(number, 0) + power
                own = ((n, 1 if _is_test(self.factors[n]) else p) for n, p in powers.items())
                monomial = tuple(sorted(own))
                found[monomial] = found.get(monomial, Fraction(0)) + x * y
        if len(found) > _TERMS:
            raise OverflowError
        return {monomial: factor for monomial, factor in found.items() if factor}

    # -- writing -----------------------------------------------------------------------------------------

    def written(self, of: Terms) -> Expr:
        """The sum of products as an expression."""
        whole = ZERO
        for monomial, factor in sorted(of.items()):
            whole = plus(whole, self._product_written(monomial, factor))
        return whole

    def _product_written(self, monomial: Monomial, factor: Fraction) -> Expr:
        value: Expr | None = None if factor == 1 else expr(factor)
        below: list[Expr] = []
        tests: list[Choose] = []
        for number, power in monomial:
            each = self.factors[number]
            if number in self.divisors:
                below += [each.args[1]] * power if isinstance(each, Fn) else []
            elif _is_test(each) and isinstance(each, Choose):
                tests.append(each)
            else:
                for _ in range(power):
                    value = each if value is None else fn("mul", value, each)
        value = ONE if value is None else value
        for each in below:
            value = fn("div", value, each)
        for test in reversed(tests):
            value = chosen(test.test, value, ZERO)
        return value

    # -- divisors ----------------------------------------------------------------------------------------

    def cleared(self, of: Terms) -> Terms | None:
        """The same with fewer divisors; None if there are no fewer, or if it is not the same everywhere."""
        used = sorted({number for monomial in of for number, _ in monomial if number in self.divisors})
        if not used or not all(self.divisors[number].terms for number in used):  # nothing is divided by 0
            return None
        found = self._apart_from_zero(of, used, {number: self.divisors[number].terms for number in used})
        if self._cost(found) >= self._cost(of) or not self.same(of, found):
            return None
        kept = {number for monomial in found for number, _ in monomial}
        lost = {number for monomial in of for number, _ in monomial} - kept - set(self.divisors)
        return None if any(_is_partial(self.factors[number]) for number in lost) else found

    def _cost(self, of: Terms) -> tuple[int, int]:
        return sum(p for monomial in of for n, p in monomial if n in self.divisors), len(of)

    def _apart_from_zero(self, of: Terms, used: list[int], by: Mapping[int, Mapping[Monomial, Fraction]]) -> Terms:
        """With divisors cleared as if none were 0: quotients and remainders of the division by each."""
        found: Terms = {}
        pending = [(self._over_one(of, used, by))]
        for numerator, powers in pending:
            rest, left = numerator, dict(powers)
            for number in used:
                while left.get(number, 0) and rest:
                    quotient, remainder = self._divided(rest, dict(by[number]))
                    if remainder:
                        if not quotient:
                            break
                        pending.append((remainder, dict(left)))
                    rest = quotient
                    left[number] -= 1
            below = tuple(sorted((n, p) for n, p in left.items() if p))
            found = total(found, self.product(rest, {below: Fraction(1)}))
        return found

    def _over_one(
        self, of: Terms, used: list[int], by: Mapping[int, Mapping[Monomial, Fraction]]
    ) -> tuple[Terms, dict[int, int]]:
        """The numerator over the powers of all divisors."""
        powers = {number: max(dict(monomial).get(number, 0) for monomial in of) for number in used}
        found: Terms = {}
        for monomial, factor in of.items():
            own = dict(monomial)
            term: Terms = {tuple(pair for pair in monomial if pair[0] not in powers): factor}
            for number in used:
                for _ in range(powers[number] - own.get(number, 0)):
                    term = self.product(term, dict(by[number]))
            found = total(found, term)
        return found, powers

    def _divided(self, of: Terms, by: Terms) -> tuple[Terms, Terms]:
        """(quotient, remainder) of the division by one polynomial."""
        lead = max(by, key=order)
        quotient: Terms = {}
        remainder: Terms = {}
        rest = dict(of)
        while rest:
            top = max(rest, key=order)
            factor = ratio(top, lead)
            if factor is None:
                remainder[top] = rest.pop(top)
                continue
            one = {factor: rest[top] / by[lead]}
            quotient = total(quotient, one)
            rest = total(rest, scaled(self.product(one, by), -1))
        return quotient, remainder

    def same(self, a: Terms, b: Terms) -> bool:
        """Whether both are equal, wherever guarded divisors are 0 or not."""
        difference = total(a, scaled(b, -1))
        used = sorted({number for monomial in difference for number, _ in monomial if number in self.divisors})
        guards = [number for number in used if self.divisors[number].guarded]
        parts = list(dict.fromkeys(monomial for number in guards for monomial in self.divisors[number].terms))
        if len(parts) > _PARTS or not all(map(self._is_of_parts, guards)):
            return False
        ways = (zero for count in range(len(parts) + 1) for zero in combinations(parts, count))
        return all(self._is_zero(difference, used, zero) for zero in ways)

    def unchanged(self, of: Expr, one: Expr, divisor: Expr) -> bool:
        """Whether the value is `one` where the divisor, guarded within it, is 0."""
        by, difference = self.terms(divisor), total(self.terms(of), scaled(self.terms(one), -1))
        found = [number for number, each in self.divisors.items() if each.terms == by]
        if not any(self.divisors[number].guarded for number in found):
            return bool(found)
        used = sorted({number for monomial in difference for number, _ in monomial if number in self.divisors})
        return all(map(self._is_of_parts, found)) and self._is_zero(difference, used, tuple(by))

    def _is_of_parts(self, number: int) -> bool:
        """Whether a divisor is a sum of parts that are at least 0 each."""
        terms = self.divisors[number].terms
        factors = (self.factors[each] for monomial in terms for each, _ in monomial)
        return all(c > 0 for c in terms.values()) and all(map(self._at_least_zero, factors))

    def _at_least_zero(self, of: Expr) -> bool:
        conds = at_least_zero(of)
        return conds is not None and all(self.known.holds(cond) for cond in conds)

    def _is_zero(self, of: Terms, used: list[int], zero: tuple[Monomial, ...]) -> bool:
        """Whether the sum is 0 where exactly these parts of divisors are."""
        if () in zero or any(len(monomial) != 1 for monomial in zero):
            return () in zero  # a number is not 0
        gone = {number for number, factor in enumerate(self.factors) if self._vanishes(factor, zero)}
        by = {number: without(self.divisors[number].terms, gone) for number in used}
        rest: Terms = {}
        for monomial, factor in without(of, gone).items():
            own = tuple(pair for pair in monomial if by.get(pair[0]) != {})
            rest = total(rest, {own: factor})
        left = [number for number in used if by[number]]
        return not self._over_one(rest, left, by)[0] if rest else True

    def _vanishes(self, factor: Expr, zero: tuple[Monomial, ...]) -> bool:
        return any(vanishes_with(factor, self.factors[monomial[0][0]]) for monomial in zero)


def _is_test(of: Expr) -> bool:
    return isinstance(of, Choose) and of.then is ONE and of.other is ZERO


def _is_partial(of: Expr) -> bool:
    """Whether a part of the expression may have no value."""
    names = ("div", "log", "log2", "pow", "sqrt", "rsqrt", "reciprocal")
    return any(isinstance(node, Fn) and node.name in names for node in nodes(of))


def simplified(root: Expr, known: Known) -> Expr:
    """The expression with guarded divisors cleared in sums of products, where that leaves fewer."""
    if not _is_guarded(root):
        return root
    done: dict[Expr, Expr] = {}

    def visit(node: Expr) -> Expr:
        if node not in done:
            done[node] = once(node)
        return done[node]

    def once(node: Expr) -> Expr:
        if not _is_arithmetic(node) or not _is_guarded(node):
            return map_parts(node, visit, lambda index: index, lambda cond: cond, chosen)
        found = cleared(node, known)
        return map_parts(node, visit, lambda index: index, lambda cond: cond, chosen) if found is None else found

    return visit(root)


def cleared(of: Expr, known: Known) -> Expr | None:
    """A sum of products with fewer divisors; None if there is no other."""
    if sum(1 for _ in nodes(of)) > _LARGEST or not known.questions.one():
        return None
    engine = Fractions(known)
    try:
        found = engine.cleared(engine.terms(of))
    except OverflowError:
        return None
    return None if found is None else engine.written(found)


def _is_arithmetic(of: Expr) -> bool:
    names = ("add", "sub", "neg", "mul", "div", "reciprocal")
    return (isinstance(of, Fn) and of.name in names) or (isinstance(of, Reduce) and of.op == "sum")


def _is_guarded(root: Expr) -> bool:
    return any(guarded(node) is not None for node in nodes(root))
