"""Integers in memory as symbols with a range, which normal forms use: of a read they know the type's range alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from argus.core import algebra
from argus.core.index import Cond, Index, Node, Read, Symbol
from argus.core.values.expr import Expr, Reduce
from argus.core.values.rewriting import integers, mapped, nodes
from argus.core.walk import fold, rebuild, symbols, topological


def named_integers(roots: Sequence[Expr], holds: Callable[[Cond], bool]) -> Mapping[Node, Index]:
    """A symbol for each integer in memory that is provably not negative and depends on no bound variable.

    The number is first in a name, as no tensor's name begins with a digit: each name is that of one integer.
    """
    bound = {node.variable for root in roots for node in nodes(root) if isinstance(node, Reduce)}
    found = {node for root in roots for node in topological(integers(root)) if isinstance(node, Read)}
    least = {each: _least(each, holds) for each in found if symbols(each).isdisjoint(bound)}
    ordered = sorted((each for each, low in least.items() if low is not None), key=lambda each: each.digest)
    return {
        each: algebra.sym(Symbol(f"~{number}{each.array}", "fresh", least[each])) for number, each in enumerate(ordered)
    }


def _least(of: Read, holds: Callable[[Cond], bool]) -> int | None:
    """A number that is proved to be at most the integer: 1 or 0."""
    return next((low for low in (1, 0) if holds(algebra.le(low, of))), None)


def named(root: Expr, names: Mapping[Node, Index]) -> Expr:
    """The expression with integers in memory replaced by their symbols."""
    return mapped(root, lambda index: _renamed(index, names), lambda cond: named_in(cond, names))


def named_in(cond: Cond, names: Mapping[Node, Index]) -> Cond:
    """The condition, likewise."""
    return cast(Cond, _fold(cond, names))


def _renamed(index: Index, names: Mapping[Node, Index]) -> Index:
    return cast(Index, _fold(index, names))


def _fold(root: Node, names: Mapping[Node, Index]) -> Node:
    return fold(root, lambda node, parts: names.get(node) or (rebuild(node, parts) if parts else node))
