"""Reductions of which one term counts: the sum over sequences b of f(b) where starts[b] <= q < starts[b + 1].

If x satisfies the range and the condition of a reduction, and whatever satisfies them equals x, the reduction is its
body at x: of one term, a sum, a product, a maximum and a minimum are that term. Both are asked of the solver; the
candidates for x are the indices at which known conditions, and promises about what the reduction's condition reads,
read a tensor that the condition reads, too, and then the integers from memory in what the reduction is compared with,
such as the expert of a tile.

Integers that a promise says to be equal to others are those: tokens[inverse[t, j]] is t.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from attrs import evolve

from argus.core import algebra
from argus.core.index import And, Cmp, Cond, Index, Node, Read
from argus.core.proof.values.held.facts import Known
from argus.core.values.expr import Expr, Reduce, reduce_
from argus.core.values.rewriting import integers, map_parts, nodes, own_integers, substitute
from argus.core.walk import fold, mentions, rebuild, symbols, topological
from argus.core.walk import substitute as substitute_index


def with_single_terms(root: Expr, known: Known, other: Expr) -> Expr:
    """The expression with reductions replaced by the term that counts, and integers by those that they equal.

    other: what it is compared with.
    """
    if not _reads_integers(root):
        return root
    if isinstance(root, Reduce):
        return _reduced(root, known, other)

    def index(of: Index) -> Index:
        return cast(Index, _promised(of, known))

    def cond(of: Cond) -> Cond:
        return cast(Cond, _promised(of, known))

    return map_parts(root, lambda part: with_single_terms(part, known, other), index, cond)


def _reads_integers(root: Expr) -> bool:
    return any(mentions(each, (Read,)) for node in nodes(root) for own in own_integers(node) for each in own)


def _reduced(root: Reduce, known: Known, other: Expr) -> Expr:
    # What is known of a variable of this name outside is not about this one.
    known = evolve(known, context=tuple(cond for cond in known.context if root.variable not in symbols(cond)))
    if root.where is not algebra.TRUE:
        candidates = dict.fromkeys((*_candidates(root, known), *_read_integers(other)))
        found = next((at for at in candidates if _only(root, at, known)), None)
        if found is not None:
            return with_single_terms(substitute(root.body, {root.variable: found}), known, other)
    variable = algebra.sym(root.variable)
    inside = known.within(algebra.le(root.low, variable), algebra.lt(variable, root.high), root.where)
    body = with_single_terms(root.body, inside, other)
    return root if body is root.body else reduce_(root.op, root.variable, root.low, root.high, body, root.where)


def _read_integers(other: Expr) -> Iterator[Index]:
    """The integers from memory in an expression."""
    return (node for node in topological(integers(other)) if isinstance(node, Read))


def _candidates(of: Reduce, known: Known) -> Iterator[Index]:
    """The indices at which what is known reads what the reduction's condition reads at its variable."""
    variable = algebra.sym(of.variable)
    arrays = {each.array for each in _reads(of.where) if each.at == (variable,)}
    promised = (cond for each in _reads(of.where) for cond in _promises(each, known))
    found = (each.at[0] for cond in (*known.context, *promised) for each in _reads(cond) if each.array in arrays)
    return iter(dict.fromkeys(at for at in found if of.variable not in symbols(at)))


def _reads(cond: Node) -> Iterator[Read]:
    return (node for node in topological([cond]) if isinstance(node, Read))


def _only(of: Reduce, at: Index, known: Known) -> bool:
    """Whether the variable satisfies the range and the condition at this value, and at no other."""
    variable = algebra.sym(of.variable)
    counts = algebra.all_of((algebra.le(of.low, variable), algebra.lt(variable, of.high), of.where))
    there = substitute_index(counts, {of.variable: at})
    return known.holds(there) and known.within(counts).holds(algebra.eq(variable, at))


def _promises(of: Read, known: Known) -> tuple[Cond, ...]:
    """What is promised of an integer, if its index lies in the tensor: not known by itself."""
    buffer = next((each for each in known.flow.timeline.kernel.parameters if each.name == of.array), None)
    promise = algebra.TRUE if buffer is None else substitute_index(buffer.promise, {}, of.at)
    return promise.parts if isinstance(promise, And) else (promise,)


def _promised(of: Node, known: Known) -> Node:
    """The integers or conditions with reads replaced by what promises about their indices say that they equal."""
    if not mentions(of, (Read,)):
        return of

    def visit(node: Node, parts: Sequence[Node]) -> Node:
        made = rebuild(node, parts) if parts else node
        if not isinstance(made, Read):
            return made
        return next((each for each in _equals(made, known) if known.holds(algebra.eq(made, each))), made)

    return fold(of, visit)


def _equals(of: Read, known: Known) -> Iterator[Index]:
    """What promises about the indices of a read equate with it."""
    for inner in (node for at in of.at for node in _reads(at)):
        for cond in _promises(inner, known):
            if isinstance(cond, Cmp) and cond.op == "==" and of in (cond.left, cond.right):
                yield cond.right if cond.left is of else cond.left
