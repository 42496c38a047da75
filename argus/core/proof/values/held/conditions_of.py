"""Conditions that occur in expressions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from argus.core import algebra
from argus.core.index import And, Cmp, Cond, Const, Index, Or, Sym, Symbol
from argus.core.values.expr import Choose, Compare, Expr, Reduce
from argus.core.values.rewriting import bound_variables, nodes
from argus.core.walk import symbols


def of_sizes(cond: Cond) -> bool:
    """Whether a condition is about sizes and blocks alone."""
    return all(each.kind in ("size", "block") for each in symbols(cond))


def free_test(root: Expr) -> Cond | None:
    """A test of what is not bound in the expression."""
    bound = bound_variables(root)
    found = (each.test for each in nodes(root) if isinstance(each, Choose) and not isinstance(each.test, Compare))
    return next((each for each in found if symbols(each).isdisjoint(bound)), None)


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
