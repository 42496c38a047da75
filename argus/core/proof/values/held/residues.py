"""Equality in cases of a coordinate's remainder: y = m q + a, for each a below a literal m that divides it somewhere.

A transposed convolution claims a sum over all taps r where (y - r) % m is 0; what is stored is a sum over the taps of
y's class. For each remainder of y both are the same sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from argus.core import algebra
from argus.core.index import Bin, Cmp, Const, Index, Symbol
from argus.core.proof.values.held.facts import Known
from argus.core.proof.values.held.terms import chosen, plus, replaced
from argus.core.values.expr import Choose, Compare, Expr, Reduce, expr
from argus.core.values.rewriting import integers, map_parts, nodes, parts, substitute
from argus.core.walk import substitute as substitute_index
from argus.core.walk import symbols, topological

_SPELLED = 16
"""Terms of a sum that are spelled out."""
_MOST_TERMS = 64
"""Of a sum over several ranges, that is compared term by term."""
_MOST_CASES = 32
"""Remainders of all coordinates together."""


def equal_by_residues(
    known: Known,
    held: Expr,
    formula: Expr,
    at: Sequence[Symbol],
    *,
    quotients: tuple[Symbol, ...] = (),
    cases: bool = True,
) -> bool:
    """Whether both are equal for each remainder of the coordinates `at` that some quotient or remainder divides.

    quotients: of coordinates whose remainders are known. cases: where that does not show at once, also by cases of what
    is not known.
    """
    found = dict(_divided(held, formula, at))
    if not found and not quotients:
        return False
    return _equal(known, (held, formula), list(found.items()), _MOST_CASES, quotients, cases=cases)


def equal_by_terms(known: Known, held: Expr, formula: Expr, *, cases: bool = True) -> bool:
    """Whether both are equal once sums over few literal numbers are their terms; False for none, or many."""
    if max(_terms_of(held), _terms_of(formula)) > _MOST_TERMS:
        return False
    terms = _spelled(held), _spelled(formula)
    return terms != (held, formula) and known.equal(*map(known.simplified, terms), cases=cases)


def _terms_of(root: Expr) -> int:
    """The most terms that a sum within it becomes."""
    counts: dict[Expr, int] = {}

    def count(node: Expr) -> int:
        if node not in counts:
            own = _extent(node) if isinstance(node, Reduce) else None
            counts[node] = max(map(count, parts(node)), default=1) * (own or 1)
        return counts[node]

    return count(root)


def _equal(
    known: Known,
    sides: tuple[Expr, Expr],
    left: list[tuple[Symbol, int]],
    most: int,
    quotients: tuple[Symbol, ...] = (),
    *,
    cases: bool,
) -> bool:
    if not left:
        forms = [known.in_digits(known.simplified(each)) for each in sides]
        ways = [[_spelled(each, beside) for each in forms] for beside in (frozenset(quotients), None)]
        compared = Known.equal if cases else _equal_by_choices
        return any(compared(known, *each) for each in (ways if ways[0] != ways[1] else ways[:1]))
    (symbol, modulus), *rest = left
    if modulus > most:
        return False
    number = Symbol(f"{symbol.name}~quotient", "fresh", 0)
    quotient = algebra.sym(number)
    for remainder in range(modulus):
        names: dict[Symbol, Index] = {symbol: algebra.add(algebra.mul(quotient, modulus), remainder)}
        here = Known(known.flow, tuple(substitute_index(cond, names) for cond in known.context))
        held, formula = (substitute(each, names) for each in sides)
        if not _equal(here, (held, formula), rest, most // modulus, (*quotients, number), cases=cases):
            return False
    return True


def _equal_by_choices(known: Known, held: Expr, formula: Expr) -> bool:
    """Whether both are equal as they are written, in each case of the tests by which what is held is chosen."""
    if not isinstance(held, Choose) or isinstance(held.test, Compare):
        return known.equal(held, formula, cases=False)
    branches = (held.test, held.then), (algebra.negate(held.test), held.other)
    return all(_equal_by_choices(known.within(test), value, formula) for test, value in branches)


def has_terms(root: Expr) -> bool:
    """Whether it has a sum over few literal numbers."""
    return any(isinstance(each, Reduce) and _extent(each) is not None for each in nodes(root))


def _spelled(root: Expr, beside: frozenset[Symbol] | None = None) -> Expr:
    """The expression with sums over few literal numbers as their terms, each for its own number.

    beside: only sums over numbers that make places together with one of these, as taps do with places of a window.
    """
    done: dict[Expr, Expr] = {}

    def visit(node: Expr) -> Expr:
        if node not in done:
            made = map_parts(node, visit, lambda index: index, lambda cond: cond)
            few = isinstance(made, Reduce) and (beside is None or _are_met(made, beside))
            done[node] = _terms(made) if few and isinstance(made, Reduce) else made
        return done[node]

    return visit(root)


def _are_met(of: Reduce, others: frozenset[Symbol]) -> bool:
    """Whether a coordinate or a comparison has the variable and one of the others."""
    found = (symbols(each) for each in topological(integers(of.body)) if isinstance(each, Cmp | Index))
    return any(of.variable in each and not others.isdisjoint(each) for each in found)


def _terms(of: Reduce) -> Expr:
    extent = _extent(of)
    if extent is None or not isinstance(of.low, Const):
        return of
    found = expr(0)
    for number in range(of.low.value, of.low.value + extent):
        names: dict[Symbol, Index] = {of.variable: algebra.const(number)}
        term = chosen(substitute_index(of.where, names), replaced(of.body, names), expr(0))
        found = plus(found, term)
    return found


def _extent(of: Reduce) -> int | None:
    """How many terms a sum over few literal numbers has; None of others."""
    low, high = of.low, of.high
    if of.op != "sum" or not isinstance(low, Const) or not isinstance(high, Const):
        return None
    return max(0, high.value - low.value) if high.value - low.value <= _SPELLED else None


def _divided(held: Expr, formula: Expr, at: Sequence[Symbol]) -> Iterator[tuple[Symbol, int]]:
    """The coordinates that are divided by literals, each with the least one."""
    for symbol in at:
        by = {
            node.right.value
            for each in (held, formula)
            for node in topological(integers(each))
            if isinstance(node, Bin)
            and node.op in ("//", "%")
            and isinstance(node.right, Const)
            and symbol in symbols(node.left)
        }
        if by and min(by) > 1:
            yield symbol, min(by)
