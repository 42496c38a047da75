"""Facts about the ends of an expression's ranges that normal forms use, each of them shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations

from argus.core import algebra
from argus.core.algebra.integers import linear_terms
from argus.core.index import Cmp, Cond, Index, Read
from argus.core.proof.values.held.conditions_of import conjuncts, tests
from argus.core.values.expr import Expr, Reduce
from argus.core.values.places import limit
from argus.core.values.rewriting import nodes
from argus.core.walk import mentions

Holds = Callable[[Cond], bool]


def lemmas_of(root: Expr, holds: Holds) -> Iterator[Cond]:
    """Proved facts on the order of ranges' ends, and of the bounds that tests set to their variables."""
    reductions = [node for node in nodes(root) if isinstance(node, Reduce)]
    ends = {algebra.sym(node.variable): node.high for node in reductions}
    asked = {cond for node in reductions for test in tests(node) for cond in conjuncts(test)}
    for cond in sorted(asked, key=lambda each: each.digest):
        for node in reductions:
            found = limit(cond, node.variable)
            if found is not None:
                yield from _ordered(found[1], node.high, holds)
                yield from _ordered(found[1], algebra.const(0), holds)
        if isinstance(cond, Cmp):
            terms, _ = linear_terms(algebra.sub(cond.right, cond.left))
            rest = algebra.linear([term for term in terms if term[0] not in ends], 0)
            for atom, factor in terms:
                if atom in ends:
                    yield from _ordered(rest, algebra.mul(ends[atom], abs(factor)), holds)
    for node in reductions:
        yield from _ordered_ends(node, asked, holds)


def _ordered_ends(of: Reduce, asked: Iterable[Cond], holds: Holds) -> Iterator[Cond]:
    """The order of the ends that tests set to a variable, of those that depend on integers from memory.

    What is promised of these only the solver knows, not the normal forms.
    """
    limits = (limit(cond, of.variable) for cond in sorted(asked, key=lambda each: each.digest))
    ends = dict.fromkeys(found[1] for found in limits if found is not None and found[0])
    for one, two in combinations(ends, 2):
        if mentions(one, (Read,)) or mentions(two, (Read,)):
            yield from _ordered(one, two, holds)


def _ordered(a: Index, b: Index, holds: Holds) -> Iterator[Cond]:
    for goal in (algebra.le(a, b), algebra.le(b, a)):
        if goal is not algebra.TRUE and holds(goal):
            yield goal
            return
