"""Rewrite expressions under conditions on symbols, and decide conditions by normal form.

`M % 128 == 0` makes M the product 128 * m of a new symbol, `M >= 5` narrows its range, `M == 2 * N` replaces it. In
these terms exact quotients become polynomials, so normal forms alone decide most queries; results are translated back
to the user's symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import gcd
from typing import cast

from attrs import field, frozen

from argus.core import algebra
from argus.core.index import And, Bin, Cmp, Cond, Const, Index, Node, NodeT, Not, Or, Sym, Symbol
from argus.core.index_text import show
from argus.core.layout.symbolic.polynomial import (
    divide_monomial,
    exact_quotient,
    lower_bound,
    monomial,
    polynomial,
    product,
)
from argus.core.walk import fold, rebuild, substitute, symbols, topological


def conjuncts(conditions: Iterable[Cond]) -> tuple[Cond, ...]:
    """The conditions, with conjunctions split into their parts, without repetition."""
    return tuple(
        dict.fromkeys(
            part
            for condition in conditions
            for part in (condition.parts if isinstance(condition, And) else [condition])
        )
    )


def divisors(root: Node) -> tuple[Index, ...]:
    """The divisors of `//` and `%` in an expression, innermost first."""
    return tuple(
        dict.fromkeys(node.right for node in topological([root]) if isinstance(node, Bin) and node.op in {"//", "%"})
    )


@frozen(eq=False)
class Facts:
    """Conditions, and the change of variables that they imply.

    parts: the conjuncts. forms: each replaced symbol in terms of new symbols. origins: new symbol -> (symbol, divisor);
    its value is symbol / divisor, without remainder. rewritten: the conjuncts in the new symbols.
    """

    parts: tuple[Cond, ...]
    forms: Mapping[Symbol, Index]
    origins: Mapping[Symbol, tuple[Symbol, Index]]
    rewritten: frozenset[Cond] = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "rewritten", frozenset(self.in_new_symbols(part) for part in self.parts))

    def in_new_symbols(self, root: NodeT) -> NodeT:
        """The expression or condition in the new symbols; its divisors must be positive."""
        return cast(NodeT, fold(root, self._visit))

    def _visit(self, node: Node, parts: Sequence[Node]) -> Node:
        if isinstance(node, Sym):
            return self.forms.get(node.symbol, node)
        made = rebuild(node, parts)
        if isinstance(made, Bin) and made.op in {"//", "%"}:
            exact = exact_quotient(made.left, made.right)
            if exact is not None:
                return exact if made.op == "//" else algebra.const(0)
        return made

    def in_user_symbols(self, expression: Index) -> Index:
        """The expression in the user's symbols: 128 * m becomes M, and a single m becomes M // 128."""
        inner = {new: algebra.floordiv(algebra.sym(old), by) for new, (old, by) in self.origins.items()}
        terms: list[tuple[Index, int]] = []
        for factors, times in polynomial(expression).items():
            left, done, coefficient = list(factors), list[Index](), times
            while left:
                factor = left.pop()
                if isinstance(factor, Sym) and factor.symbol in self.origins:
                    made, coefficient, left = self._restore_factor(factor.symbol, coefficient, left)
                    done.append(made)
                else:
                    done.append(substitute(factor, inner))
            terms.append((product(tuple(done)), coefficient))
        return algebra.linear(terms, 0)

    def _restore_factor(self, new: Symbol, coefficient: int, left: list[Index]) -> tuple[Index, int, list[Index]]:
        """A new symbol in terms of the old one; cancels its divisor against the coefficient and the other factors."""
        old, by = self.origins[new]
        if isinstance(by, Const):
            common = gcd(coefficient, by.value)
            return algebra.floordiv(algebra.sym(old), by.value // common), coefficient // common, left
        [(factors, times), *more] = polynomial(self.in_new_symbols(by)).items()
        rest = divide_monomial(monomial(left), factors)
        if not more and rest is not None and coefficient % times == 0:
            return algebra.sym(old), coefficient // times, list(rest)
        return algebra.floordiv(algebra.sym(old), by), coefficient, left

    def normal(self, expression: Index) -> Index:
        """The expression with exact quotients simplified."""
        return self.in_user_symbols(self.in_new_symbols(expression))

    def quotient(self, a: Index, b: Index) -> Index | None:
        """a / b if normal forms show that it is exact under the conditions, else None."""
        exact = exact_quotient(self.in_new_symbols(a), self.in_new_symbols(b))
        return None if exact is None else self.in_user_symbols(exact)

    def decide(self, condition: Cond) -> bool | None:
        """True if normal forms prove the condition, False if they refute it, else None. Divisors must be positive."""
        return self._decide(self.in_new_symbols(condition))

    @property
    def contradictory(self) -> bool:
        """Whether normal forms show that the conditions contradict each other."""
        return any(
            part is algebra.FALSE or (isinstance(part, Cmp) and _decide_comparison(part) is False)
            for part in self.rewritten
        )

    def _decide(self, condition: Cond) -> bool | None:
        if condition in self.rewritten:
            return True
        match condition:
            case And(parts=parts):
                found = [self._decide(part) for part in parts]
                return False if False in found else (True if all(found) else None)
            case Or(parts=parts):
                found = [self._decide(part) for part in parts]
                return True if any(found) else (False if None not in found else None)
            case Not(part=part):
                opposite = self._decide(part)
                return None if opposite is None else not opposite
            case Cmp():
                known = _decide_comparison(condition)
                return False if known is None and algebra.negate(condition) in self.rewritten else known


def _decide_comparison(condition: Cmp) -> bool | None:
    more = lower_bound(algebra.sub(condition.right, condition.left))
    less = lower_bound(algebra.sub(condition.left, condition.right))
    if condition.op == "<=":
        return True if more is not None and more >= 0 else (False if less is not None and less >= 1 else None)
    if (more is not None and more >= 1) or (less is not None and less >= 1):
        return False
    return False if _is_nonzero_remainder(condition) else None


def _is_nonzero_remainder(condition: Cmp) -> bool:
    """Whether the condition is `x % y == 0` with 0 < x < y."""
    remainder = condition.left
    if not isinstance(remainder, Bin) or remainder.op != "%" or condition.right is not algebra.const(0):
        return False
    x, y = remainder.left, remainder.right
    return (lower_bound(x) or 0) >= 1 and (lower_bound(algebra.sub(y, x)) or 0) >= 1


# -- from conditions to changes of variables
# --------------------------------------------------------------------------------

_VariableChange = tuple[Symbol, Index, Symbol | None, Index]
"""A symbol, its new form, the new symbol in that form if any, and that symbol's divisor."""


def facts_from(conditions: Iterable[Cond]) -> Facts:
    """The facts that conditions imply."""
    parts = conjuncts(conditions)
    facts = Facts(parts, {}, {})
    waiting = list(parts)
    while waiting:
        change = next(_variable_changes(facts.in_new_symbols(part) for part in waiting), None)
        if change is None:
            break
        facts = _apply_change(facts, change)
    return facts


def _variable_changes(parts: Iterator[Cond]) -> Iterator[_VariableChange]:
    for part in parts:
        if isinstance(part, Cmp):
            rules: tuple[Callable[[Cmp], _VariableChange | None], ...] = (
                _multiple_change,
                _range_change,
                _equation_change,
            )
            for rule in rules:
                change = rule(part)
                if change is not None:
                    yield change


def _multiple_change(part: Cmp) -> _VariableChange | None:
    """`f * x % c == 0` for a symbol x and a positive divisor."""
    remainder = part.left
    if part.op != "==" or part.right is not algebra.const(0) or not isinstance(remainder, Bin) or remainder.op != "%":
        return None
    [(factors, coefficient), *more] = list(polynomial(remainder.left).items()) or [((), 0)]
    if more or len(factors) != 1 or not isinstance(factors[0], Sym):
        return None
    symbol, by = factors[0].symbol, remainder.right
    if isinstance(by, Const):
        by = algebra.const(by.value // gcd(coefficient, by.value))
    elif coefficient != 1 or symbol in symbols(by) or by.range[0] is None or by.range[0] < 1:
        return None
    return _divide_symbol(symbol, by)


def _divide_symbol(symbol: Symbol, by: Index) -> _VariableChange:
    low, high = symbol.low, symbol.high
    if isinstance(by, Const):
        low = None if low is None else -(-low // by.value)
        high = None if high is None else high // by.value
    else:
        low = None if low is None or low < 0 else min(low, 1)
        high = None if high is None or high < 0 else high
    new = Symbol(f"{symbol.name}/({show(by)})", "fresh", low, high)
    return symbol, algebra.mul(by, algebra.sym(new)), new, by


def _range_change(part: Cmp) -> _VariableChange | None:
    """`c <= x` or `x <= c`, where it narrows the range of x."""
    if part.op != "<=":
        return None
    if isinstance(part.left, Const) and isinstance(part.right, Sym):
        symbol = part.right.symbol
        low, high = part.left.value, symbol.high
        news = symbol.low is None or symbol.low < low
    elif isinstance(part.right, Const) and isinstance(part.left, Sym):
        symbol = part.left.symbol
        low, high = symbol.low, part.right.value
        news = symbol.high is None or symbol.high > high
    else:
        return None
    if not news or (low is not None and high is not None and low > high):
        return None
    new = Symbol(f"{symbol.name}'", "fresh", low, high)
    return symbol, algebra.sym(new), new, algebra.const(1)


def _equation_change(part: Cmp) -> _VariableChange | None:
    """`x == e` for a symbol x that does not occur in e."""
    if part.op != "==":
        return None
    for side, other in ((part.left, part.right), (part.right, part.left)):
        if isinstance(side, Sym) and side.symbol not in symbols(other):
            return side.symbol, other, None, algebra.const(1)
    return None


def _apply_change(facts: Facts, change: _VariableChange) -> Facts:
    symbol, form, new, by = change
    forms = {old: substitute(each, {symbol: form}) for old, each in facts.forms.items()}
    if symbol not in facts.origins:
        forms[symbol] = form
    origins = {each: origin for each, origin in facts.origins.items() if each != symbol}
    if new is not None:
        old, before = facts.origins.get(symbol, (symbol, algebra.const(1)))
        origins[new] = (old, algebra.mul(before, facts.in_user_symbols(by)))
    return Facts(facts.parts, forms, origins)
