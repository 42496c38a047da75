"""Recurrences that have a closed form by induction, without a rescaled reference.

x' = a x + b                      a product over the iterations, and terms times the factors of later ones
x' = c where t, else x            the extremum of a start and c, where c does not depend on the iteration
x' = p where top < v, else x      the p of the first v that is the greatest, if p grows with the iteration
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from argus.core import algebra
from argus.core.index import Index, Symbol
from argus.core.proof.values.held import terms
from argus.core.proof.values.held.facts import Known
from argus.core.proof.values.held.folds import NEUTRAL, Range, reduction
from argus.core.proof.values.held.recurrences import ZERO, Linear, linear, operands, times
from argus.core.proof.values.held.terms import integer, plus, replaced
from argus.core.values.expr import (
    Choose,
    Compare,
    Element,
    Expr,
    Fn,
    Infinity,
    Number,
    Reduce,
    ReduceOp,
    Whole,
    choose,
    compare,
    expr,
    fn,
)
from argus.core.values.numbers import is_number
from argus.core.values.rewriting import nodes
from argus.core.walk import substitute, symbols

Form = Callable[[Index], Expr]
"""What a tile holds at the head of an iteration, by the loop variable there."""


@frozen
class Iterations:
    """Those of one loop, in order: the loop variable is start + number * step."""

    symbol: Symbol
    start: Index
    step: int

    def count(self, k: Index) -> Index:
        """The number of iterations before the one of k."""
        passed = algebra.sub(k, self.start) if self.step > 0 else algebra.sub(self.start, k)
        return algebra.floordiv(passed, abs(self.step))

    def sums(self, of: Expr) -> bool:
        """Whether the expression is a reduction over the iterations so far."""
        return isinstance(of, Reduce) and self.symbol in symbols(of.high)

    def at(self, of: Expr, number: Index) -> Expr:
        """The expression in the iteration of this number."""
        return replaced(of, {self.symbol: algebra.add(self.start, algebra.mul(number, self.step))})


def carried(loop: Iterations, step: Expr, mine: Element, entry: Expr, known: Known, begin: Known) -> Form | None:
    """A form of which one iteration from k is the form at the next k, and which begins with `entry`; None if none is
    known.

    known: what holds in an iteration. begin: what holds before the loop.
    """
    once = set_once(loop, step, mine, entry)
    if once is not None:
        return once
    found = selection(step, mine)
    if found is not None:
        form = of_extremum(loop, found, entry, "max", known, begin)
        form = of_extremum(loop, found, entry, "min", known, begin) if form is None else form
        if form is not None:
            return form
    rest = linear(known.simplified(step), mine)
    return None if rest is None or rest.factor is ZERO else decayed(loop, rest, entry)


def decayed(loop: Iterations, found: Linear, entry: Expr) -> Form | None:
    """The sum of terms times all later factors; None if what is multiplied may be infinite, or have no value."""
    by_iteration = (node.test for node in nodes(found.factor) if isinstance(node, Choose))
    if any(not isinstance(test, Compare) and loop.symbol in symbols(test) for test in by_iteration):
        return None  # some iterations set it
    if not (is_number(found.factor) and _is_finite(found.rest) and _is_finite(entry)):
        return None
    number, later = Symbol("~iteration", "fresh", 0), Symbol("~later", "fresh", 0)

    def form(k: Index) -> Expr:
        count, here = loop.count(k), algebra.sym(number)
        after = algebra.add(here, 1)
        factors = reduction(
            "product",
            [Range(later, algebra.sub(count, after))],
            loop.at(found.factor, algebra.add(after, algebra.sym(later))),
        )
        added = reduction("sum", [Range(number, count)], times(loop.at(found.rest, here), factors))
        every = reduction("product", [Range(number, count)], loop.at(found.factor, here))
        return plus(times(entry, every), added)

    return form


def set_once(loop: Iterations, step: Expr, mine: Element, entry: Expr) -> Form | None:
    """A number that replaces another for good: the extremum of both, over the iterations that set it."""
    if not isinstance(step, Choose) or not isinstance(entry, Number) or mine in _of_test(step):
        return None
    for new, own, flipped in ((step.then, step.other, False), (step.other, step.then, True)):
        if own is mine and isinstance(new, Number):
            op = "max" if new.value >= entry.value else "min"
            term = choose(step.test, entry, new) if flipped else choose(step.test, new, entry)
            number = Symbol("~iteration", "fresh", 0)
            return lambda k: fn(
                op, entry, reduction(op, [Range(number, loop.count(k))], loop.at(term, algebra.sym(number)))
            )
    return None


def _of_test(of: Choose) -> set[Expr]:
    return {*nodes(of.test.left), *nodes(of.test.right)} if isinstance(of.test, Compare) else set()


@frozen
class Selection:
    """`chosen` where `left` is below `right` (or equal to it, if not strict); else the tile stays as it is."""

    left: Expr
    right: Expr
    strict: bool
    chosen: Index


def selection(step: Expr, mine: Element) -> Selection | None:
    """The step as one; None if it is none."""
    if not isinstance(step, Choose) or not isinstance(test := step.test, Compare) or test.op == "==":
        return None
    kept = step.then is mine
    new, old = (step.other, step.then) if kept else (step.then, step.other)
    if old is not mine or not isinstance(new, Whole) or mine in _of_test(step):
        return None
    left, right = (test.right, test.left) if kept else (test.left, test.right)
    return Selection(left, right, (test.op == "<") is not kept, new.index)


def of_extremum(
    loop: Iterations, found: Selection, entry: Expr, op: ReduceOp, known: Known, begin: Known
) -> Form | None:
    """The number chosen in the first (or last) iteration whose value is the extremum of those so far.

    Values are compared with their running extremum, by `op`, at the head of the iteration.
    """
    top, value = (found.left, found.right) if op == "max" else (found.right, found.left)
    k = algebra.sym(loop.symbol)
    following = algebra.add(k, loop.step)
    first, moved = replaced(top, {loop.symbol: loop.start}), replaced(top, {loop.symbol: following})
    if not _is_finite(value) or not _extends(op, top, moved, value, known):
        return None
    first = begin.simplified(first)
    chosen = found.chosen
    grows = known.holds(algebra.lt(chosen, substitute(chosen, {loop.symbol: following})))
    if not grows and not known.holds(algebra.lt(substitute(chosen, {loop.symbol: following}), chosen)):
        return None
    pick: ReduceOp = "min" if grows == found.strict else "max"
    number = Symbol("~iteration", "fresh", 0)
    before = algebra.const(-1)  # an iteration before the first that would set what is there
    peeled = integer(entry) is integer(loop.at(expr(chosen), before)) and begin.same(loop.at(value, before), first)
    if not peeled and first is not NEUTRAL[op]:
        return None
    here = algebra.sub(algebra.sym(number), int(peeled))

    def form(at: Index) -> Expr:
        now = replaced(top, {loop.symbol: at})
        own = choose(compare("==", loop.at(value, here), now), loop.at(expr(chosen), here), NEUTRAL[pick])
        count = loop.count(at)
        best = reduction(pick, [Range(number, algebra.add(count, int(peeled)))], own)
        return best if peeled else terms.chosen(algebra.lt(0, count), best, entry)

    return form


def _extends(op: ReduceOp, top: Expr, moved: Expr, value: Expr, known: Known) -> bool:
    """Whether an extremum that has moved to the next iteration is the one before, and the value."""
    before, after = list(operands(op, top)), list(operands(op, moved))
    own, new = ([each for each in one if each not in set(other)] for one, other in ((before, after), (after, before)))
    if (
        len(own) != 1
        or len(new) != 1
        or not isinstance(now := own[0], Reduce)
        or not isinstance(then := new[0], Reduce)
    ):
        return known.same(moved, fn(op, top, value))
    same = (now.op, now.variable, now.low, now.where, now.body) == (op, then.variable, then.low, then.where, then.body)
    by_one = then.op == op and algebra.sub(then.high, now.high) is algebra.const(1) and now.where is algebra.TRUE
    return same and by_one and known.same(replaced(now.body, {now.variable: now.high}), value)


def _is_finite(of: Expr) -> bool:
    """Whether the value, where it has one, is a number: no infinite literal, logarithm of 0 or empty extremum in it."""
    return not any(
        isinstance(node, Infinity)
        or (isinstance(node, Fn) and node.name in ("log", "log2"))
        or (isinstance(node, Reduce) and node.op in ("max", "min"))
        for node in nodes(of)
    )
