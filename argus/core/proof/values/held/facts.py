"""Expressions under what is known: tests that a solver decides, and whether two expressions are equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import define, field

from argus.core import algebra
from argus.core.index import Bin, Cond, Index
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.values.held.terms import chosen, mapped, parts
from argus.core.values.conditions import Integers
from argus.core.values.equality import Equal, Undecided, equal
from argus.core.values.expr import Choose, Compare, Expr, Reduce, reduce_
from argus.core.values.places import limit
from argus.core.walk import children, mentions, rebuild


@define(eq=False)
class Known:
    """What holds where an expression is used. Answers are kept."""

    flow: Flow
    context: tuple[Cond, ...]
    _answers: dict[Cond, bool] = field(factory=dict[Cond, bool], init=False)

    def holds(self, goal: Cond) -> bool:
        """Whether the condition provably holds here."""
        if goal is algebra.TRUE or goal is algebra.FALSE:
            return goal is algebra.TRUE
        if goal not in self._answers:
            self._answers[goal] = goal in self.context or self.flow.holds(self.context, goal)
        return self._answers[goal]

    def decided(self, cond: Cond) -> Cond:
        """True or false where that is known, else the condition."""
        if cond is algebra.TRUE or cond is algebra.FALSE:
            return cond
        if self.holds(cond):
            return algebra.TRUE
        return algebra.FALSE if self.holds(algebra.negate(cond)) else cond

    def within(self, *more: Cond) -> Known:
        """What is known where these conditions hold too."""
        return Known(self.flow, (*self.context, *(cond for cond in more if cond is not algebra.TRUE)))

    def simplified(self, root: Expr) -> Expr:
        """The expression without branches that are not taken, and extrema of integers that are decided."""
        return _Simplifying(self).of(root)

    def equal(self, one: Expr, two: Expr) -> bool:
        """Whether the expressions are equal wherever the second one has a value."""
        if one is two:
            return True
        facts = (*self.flow.facts, *self.context)
        answer = equal(one, two, (*facts, *self.lemmas(one), *self.lemmas(two)))
        if isinstance(answer, Undecided) and not answer.reason:
            return all(isinstance(each, Integers) and self._asked(each) for each in answer.conditions)
        return isinstance(answer, Equal)

    def _asked(self, condition: Integers) -> bool:
        return self.flow.prover.follows(condition.given, condition.goal)

    def lemmas(self, root: Expr) -> Iterator[Cond]:
        """Proved facts on the order of ranges' ends, and of the bounds that tests set to their variables."""
        for node in parts(root):
            if isinstance(node, Reduce):
                for test in _tests(node):
                    for cond in _conjuncts(test):
                        found = limit(cond, node.variable)
                        if found is not None:
                            yield from self._ordered(found[1], node.high)
                            yield from self._ordered(found[1], algebra.const(0))

    def _ordered(self, a: Index, b: Index) -> Iterator[Cond]:
        for goal in (algebra.le(a, b), algebra.le(b, a)):
            if goal is not algebra.TRUE and self.holds(goal):
                yield goal
                return


def _tests(of: Reduce) -> Iterator[Cond]:
    for node in parts(of.body):
        if isinstance(node, Choose) and not isinstance(node.test, Compare):
            yield node.test
    yield of.where


def _conjuncts(cond: Cond) -> Sequence[Cond]:
    negated = algebra.negate(cond)
    own = cond.parts if hasattr(cond, "parts") else (cond,)
    return (*own, negated)


class _Simplifying:
    """One simplification; bound variables carry their ranges into what is known."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._done: dict[Expr, Expr] = {}

    def of(self, root: Expr) -> Expr:
        if root not in self._done:
            self._done[root] = self._of(root)
        return self._done[root]

    def _of(self, root: Expr) -> Expr:
        match root:
            case Choose(test=test, then=then, other=other) if not isinstance(test, Compare):
                cond = self._known.decided(test)
                if cond is algebra.TRUE or cond is algebra.FALSE:
                    return self.of(then if cond is algebra.TRUE else other)
                first = self._known.within(cond).simplified(then)
                return chosen(cond, first, self._known.within(algebra.negate(cond)).simplified(other))
            case Reduce(op=op, variable=variable, low=low, high=high, where=where, body=body):
                here = algebra.sym(variable)
                inside = self._known.within(algebra.le(low, here), algebra.lt(here, high), where)
                return reduce_(op, variable, self._index(low), self._index(high), inside.simplified(body), where)
            case _:
                return mapped(root, self.of, self._index, self._known.decided)

    def _index(self, index: Index) -> Index:
        if not mentions(index, (Bin,)):
            return index
        below = children(index)
        done = [self._index(part) if isinstance(part, Index) else part for part in below]
        if isinstance(index, Bin) and index.op in ("min", "max"):
            left, right = done
            assert isinstance(left, Index)
            assert isinstance(right, Index)
            for low, high in ((left, right), (right, left)):
                if self._known.holds(algebra.le(low, high)):
                    return low if index.op == "min" else high
        found = rebuild(index, done) if below else index
        assert isinstance(found, Index)
        return found

