"""Integers that have one value in a case: ends of ranges, and what a bound that is met leaves open no longer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from argus.core import algebra
from argus.core.algebra.integers import linear_terms
from argus.core.index import Bin, Cmp, Cond, Const, Coord, Index, Node, Sum, Sym, Symbol
from argus.core.proof.values.held.terms import mapped, replaced
from argus.core.values.expr import Expr, Reduce
from argus.core.values.rewriting import integers, nodes
from argus.core.walk import fold, mentions, rebuild, topological, within

Holds = Callable[[Cond], bool]
_FIXED = (0, 1, 2)


def at_edges(holds: Holds, cases: Iterable[Cond], *roots: Expr) -> tuple[Expr, ...]:
    """The expressions with such integers as what they are where all of these hold. holds: what is shown there."""
    for case in cases:
        edge = _edge(holds, case)
        roots = tuple(_exchanged(root, *edge) for root in roots) if edge is not None else roots
    known = _ends(holds, *roots)
    return tuple(replaced(root, known) for root in roots)


def with_fixed_quotients(holds: Holds, *roots: Expr) -> tuple[Expr, ...]:
    """The expressions with each quotient that is one of a few numbers, alone or with symbols that are added to it.

    holds: what is shown where they are used.
    """
    parts = tuple(dict.fromkeys(node for root in roots for node in topological(integers(root))))
    for quotient in (each for each in parts if isinstance(each, Bin) and _is_closed_quotient(each)):
        beside = dict.fromkeys((algebra.const(0), *(_added_to(quotient, each) for each in parts)))
        values = (algebra.sub(n, each) for each in beside for n in _FIXED)
        value = next((each for each in values if holds(algebra.eq(quotient, each))), None)
        if value is not None:
            roots = tuple(_exchanged(root, quotient, value) for root in roots)
    return roots


def _is_closed_quotient(of: Bin) -> bool:
    """Whether it is a quotient by a number, of no variable that a reduction binds."""
    return of.op == "//" and isinstance(of.right, Const) and not mentions(of, (Coord,))


def _added_to(quotient: Bin, whole: Node) -> Index:
    """The symbols that have the quotient's factor in a sum."""
    terms = whole.terms if isinstance(whole, Sum) else ()
    factor = next((f for atom, f in terms if atom is quotient), 0)
    return algebra.linear([(atom, 1) for atom, f in terms if f == factor and isinstance(atom, Sym)], 0)


def _ends(holds: Holds, *roots: Expr) -> dict[Symbol, Index]:
    """Ends of ranges that are one of the numbers that other ranges end at."""
    ends = dict.fromkeys(each.high for root in roots for each in nodes(root) if isinstance(each, Reduce))
    numbers = [each for each in ends if isinstance(each, Const)]
    pairs = ((each.symbol, number) for each in ends if isinstance(each, Sym) for number in numbers)
    return {symbol: number for symbol, number in pairs if holds(algebra.eq(algebra.sym(symbol), number))}


def _edge(holds: Holds, case: Cond) -> tuple[Index, Index] | None:
    """x and what it is, where x is at most that in this case, and no less elsewhere: `N // 8 <= 1` of N > 0 is 1.

    A quotient, or an extremum, may also be a sum of symbols, quotients and extrema.
    """
    if not isinstance(case, Cmp):
        return None
    difference = algebra.sub(case.left, case.right)
    for atom, factor in linear_terms(difference)[0]:
        value = algebra.mul(algebra.sub(difference, algebra.mul(atom, factor)), -factor)
        fits = isinstance(value, Const) or (isinstance(atom, Bin) and _is_sum(value))
        if abs(factor) == 1 and fits and holds(algebra.eq(atom, value)):
            return atom, value
    return None


def _is_sum(index: Index) -> bool:
    return all(isinstance(atom, Sym | Bin) for atom, _ in linear_terms(index)[0])


def _exchanged(root: Expr, atom: Index, value: Index) -> Expr:
    def visit(node: Node, parts: Sequence[Node]) -> Node:
        return value if node is atom else rebuild(node, parts) if parts else node

    def index(of: Index) -> Index:
        return fold(of, visit) if atom in within(of) else of  # pyright: ignore[reportReturnType]  # it stays one

    def cond(of: Cond) -> Cond:
        return fold(of, visit) if atom in within(of) else of  # pyright: ignore[reportReturnType]  # it stays one

    done: dict[Expr, Expr] = {}

    def expression(of: Expr) -> Expr:
        if of not in done:
            done[of] = mapped(of, expression, index, cond)
        return done[of]

    return expression(root)
