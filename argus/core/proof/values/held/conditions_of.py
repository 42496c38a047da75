"""Conditions that occur in expressions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from argus.core import algebra
from argus.core.index import And, Bin, Cmp, Cond, Const, Index, Or, Sym, Symbol
from argus.core.values.expr import Choose, Compare, Expr, Reduce
from argus.core.values.rewriting import bound_variables, integers, nodes
from argus.core.walk import symbols, topological


def of_sizes(cond: Cond) -> bool:
    """Whether a condition is about sizes and blocks alone."""
    return all(each.kind in ("size", "block") for each in symbols(cond))


def free_test(root: Expr) -> Cond | None:
    """A test of what is not bound in the expression, or which operand a maximum or minimum of integers is."""
    bound = bound_variables(root)
    return next((each for each in (*_tests(root), *_orders(root)) if symbols(each).isdisjoint(bound)), None)


def free_tests(root: Expr) -> Iterator[Cond]:
    """The tests by which the expression chooses, of what is not bound in it."""
    bound = bound_variables(root)
    return (each for each in _tests(root) if symbols(each).isdisjoint(bound))


def _tests(root: Expr) -> Iterator[Cond]:
    for each in nodes(root):
        if isinstance(each, Choose) and not isinstance(each.test, Compare):
            yield each.test


def _orders(root: Expr) -> Iterator[Cond]:
    """Of each maximum and minimum, whether its first operand is at most its second."""
    for each in topological(integers(root)):
        if isinstance(each, Bin) and each.op in ("min", "max"):
            yield algebra.le(each.left, each.right)


def inhabited_tests(root: Expr) -> Iterator[Cond]:
    """That there is something in the ranges of an expression's reductions, of those that bind nothing around them."""
    bound = bound_variables(root)
    for each in nodes(root):
        some = algebra.lt(each.low, each.high) if isinstance(each, Reduce) else algebra.TRUE
        if some is not algebra.TRUE and some is not algebra.FALSE and symbols(some).isdisjoint(bound):
            yield some


def tests(of: Reduce) -> Iterator[Cond]:
    """The conditions in the body of a reduction, and its own."""
    for node in nodes(of.body):
        if isinstance(node, Choose) and not isinstance(node.test, Compare):
            yield node.test
    yield of.where


def conjuncts(cond: Cond) -> Sequence[Cond]:
    """The parts of a condition, and its opposite."""
    own = cond.parts if isinstance(cond, And | Or) else (cond,)
    return (*own, algebra.negate(cond))


def point(cond: Cond) -> dict[Symbol, Index]:
    """The symbol that an equation gives a number."""
    if isinstance(cond, Cmp) and cond.op == "==":
        for one, other in ((cond.left, cond.right), (cond.right, cond.left)):
            if isinstance(one, Sym) and isinstance(other, Const):
                return {one.symbol: other}
    return {}
