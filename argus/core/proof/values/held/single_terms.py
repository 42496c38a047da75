"""Reductions of which one term counts: the sum over sequences b of f(b) where starts[b] <= q < starts[b + 1].

If x satisfies the range and the condition of a reduction, and whatever satisfies them equals x, the reduction is its
body at x: of one term, a sum, a product, a maximum and a minimum are that term. Both are asked of the solver; the
candidates for x are the indices at which known conditions read a tensor that the reduction's condition reads, too, and
then the integers from memory in what the reduction is compared with, such as the expert of a tile.
"""

from __future__ import annotations

from collections.abc import Iterator

from argus.core import algebra
from argus.core.index import Cond, Index, Read
from argus.core.proof.values.held.facts import Known
from argus.core.values.expr import Expr, Reduce
from argus.core.values.rewriting import integers, map_parts, substitute
from argus.core.walk import substitute as substitute_index
from argus.core.walk import symbols, topological


def with_single_terms(root: Expr, known: Known, other: Expr) -> Expr:
    """The expression with reductions replaced by the term that counts; those within other reductions are left.

    other: what it is compared with.
    """
    if not isinstance(root, Reduce):
        return map_parts(
            root, lambda part: with_single_terms(part, known, other), lambda index: index, lambda cond: cond
        )
    candidates = dict.fromkeys((*_candidates(root, known), *_read_integers(other)))
    return next((substitute(root.body, {root.variable: at}) for at in candidates if _only(root, at, known)), root)


def _read_integers(other: Expr) -> Iterator[Index]:
    """The integers from memory in an expression."""
    return (node for node in topological(integers(other)) if isinstance(node, Read))


def _candidates(of: Reduce, known: Known) -> Iterator[Index]:
    """The indices at which conditions that hold read what the reduction's condition reads at its variable."""
    variable = algebra.sym(of.variable)
    arrays = {each.array for each in _reads(of.where) if each.at == (variable,)}
    found = (each.at[0] for cond in known.context for each in _reads(cond) if each.array in arrays)
    return iter(dict.fromkeys(at for at in found if of.variable not in symbols(at)))


def _reads(cond: Cond) -> Iterator[Read]:
    return (node for node in topological([cond]) if isinstance(node, Read))


def _only(of: Reduce, at: Index, known: Known) -> bool:
    """Whether the variable satisfies the range and the condition at this value, and at no other."""
    variable = algebra.sym(of.variable)
    counts = algebra.all_of((algebra.le(of.low, variable), algebra.lt(variable, of.high), of.where))
    there = substitute_index(counts, {of.variable: at})
    return known.holds(there) and known.within(counts).holds(algebra.eq(variable, at))
