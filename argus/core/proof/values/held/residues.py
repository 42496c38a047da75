"""Equality in cases of a coordinate's remainder: y = m q + a, for each a below a literal m that divides it somewhere.

A transposed convolution claims a sum over all taps r where (y - r) % m is 0; what is stored is a sum over the taps of
y's class. For each remainder of y both are the same sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from argus.core import algebra
from argus.core.index import Bin, Const, Index, Symbol
from argus.core.proof.values.held.facts import Known
from argus.core.proof.values.held.terms import chosen, plus, replaced
from argus.core.values.expr import Expr, Reduce, expr
from argus.core.values.rewriting import integers, map_parts, substitute
from argus.core.walk import substitute as substitute_index
from argus.core.walk import symbols, topological

_SPELLED = 9
"""Terms of a sum that are spelled out."""
_MOST_CASES = 32
"""Remainders of all coordinates together."""


def equal_by_residues(known: Known, held: Expr, formula: Expr, at: Sequence[Symbol]) -> bool:
    """Whether both are equal for each remainder of the coordinates `at` that some quotient or remainder divides."""
    found = dict(_divided(held, formula, at))
    return bool(found) and _equal(known, held, formula, list(found.items()), _MOST_CASES)


def _equal(known: Known, held: Expr, formula: Expr, left: list[tuple[Symbol, int]], most: int) -> bool:
    if not left:
        return known.equal(*(_spelled(known.in_digits(known.simplified(each))) for each in (held, formula)))
    (symbol, modulus), *rest = left
    if modulus > most:
        return False
    quotient = algebra.sym(Symbol(f"{symbol.name}~quotient", "fresh", 0))
    for remainder in range(modulus):
        names: dict[Symbol, Index] = {symbol: algebra.add(algebra.mul(quotient, modulus), remainder)}
        given = tuple(substitute_index(cond, names) for cond in known.context)
        here = Known(known.flow, given)
        if not _equal(here, substitute(held, names), substitute(formula, names), rest, most // modulus):
            return False
    return True


def _spelled(root: Expr) -> Expr:
    """The expression with sums over few literal numbers as their terms, each for its own number."""
    done: dict[Expr, Expr] = {}

    def visit(node: Expr) -> Expr:
        if node not in done:
            made = map_parts(node, visit, lambda index: index, lambda cond: cond)
            done[node] = _terms(made) if isinstance(made, Reduce) else made
        return done[node]

    return visit(root)


def _terms(of: Reduce) -> Expr:
    low, high = of.low, of.high
    if of.op != "sum" or not isinstance(low, Const) or not isinstance(high, Const) or high.value - low.value > _SPELLED:
        return of
    found = expr(0)
    for number in range(low.value, high.value):
        names: dict[Symbol, Index] = {of.variable: algebra.const(number)}
        term = chosen(substitute_index(of.where, names), replaced(of.body, names), expr(0))
        found = plus(found, term)
    return found


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
