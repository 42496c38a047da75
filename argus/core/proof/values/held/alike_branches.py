"""Values that are chosen by the test by which a reference is, as one function of the reference after the iteration.

Where a test holds, the reference becomes c and the value is a; elsewhere it stays d and the value is b. If a is g(c)
and b is g(d), the value is g of the reference after the iteration, whatever the test says: a factor exp(d - c), or 1.
"""

from __future__ import annotations

from argus.core.proof.values.held.emptiness import has_element
from argus.core.proof.values.held.facts import Known
from argus.core.proof.values.held.rescaling import NOTHING, ZERO, Reference
from argus.core.proof.values.held.terms import exchanged, mapped
from argus.core.values.expr import Choose, Compare, Expr, choose, expr
from argus.core.values.rewriting import nodes


def by_reference(of: Expr, ref: Reference, known: Known, first: Known) -> Expr:
    """The expression with such values as functions of the reference. known: within the loop. first: before it."""
    step = ref.step
    if not isinstance(step, Choose) or not isinstance(step.test, Compare):
        return of
    sides = ((step.then, step.other), (step.other, step.then))
    done: dict[Expr, Expr] = {}

    def visit(node: Expr) -> Expr:
        if node not in done:
            found = None
            if isinstance(node, Choose) and node.test is step.test:
                for side, values in enumerate(((node.then, node.other), (node.other, node.then))):
                    found = found or joined(sides[side], values, first_side=side == 0)
            done[node] = found or mapped(node, visit, lambda index: index, lambda cond: cond)
        return done[node]

    def joined(becomes: tuple[Expr, Expr], values: tuple[Expr, Expr], *, first_side: bool) -> Expr | None:
        made = exchanged(values[0], {becomes[0]: ref.following})
        if ref.following not in set(nodes(made)):
            return None
        if not known.same(exchanged(made, {ref.following: becomes[1]}), values[1]):
            return None
        return made if has_element(first, ref.entry) or is_taken(first_side=first_side) else None

    def is_taken(*, first_side: bool) -> bool:
        """Whether a reference of -inf takes the side of which the form was read: they are equal for numbers only."""
        ends = (ZERO, expr(1)) if first_side else (expr(1), ZERO)
        return known.same(exchanged(choose(step.test, *ends), {ref.now: NOTHING}), ZERO)

    return visit(of)
