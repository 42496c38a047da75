"""Tiles that are quotients: x = P / S with sums P and S over the iterations, and sums of terms that mention these.

A mean that is updated is such a tile. S' x' - S x must not depend on x; then it is the term of P. Of a sum whose terms
mention P / S, a part telescopes: terms are those of a plain sum plus the change of P Q / S for two such tiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement

from argus.core import algebra
from argus.core.index import Const, Index, Symbol
from argus.core.proof.values.held.carried import Form, Iterations
from argus.core.proof.values.held.facts import Known
from argus.core.proof.values.held.folds import Range, reduction
from argus.core.proof.values.held.fractions import Fractions
from argus.core.proof.values.held.guards import ZERO, divided, guarded, vanishes_with
from argus.core.proof.values.held.terms import plus, replaced
from argus.core.values.expr import Element, Expr, Fn, Reduce, Whole, fn
from argus.core.values.rewriting import nodes

_MORE = 64


def mean(loop: Iterations, step: Expr, mine: Element, entry: Expr, known: Known, begin: Known) -> Form | None:
    """The form of a tile that is a quotient, 0 at first; None if it is none."""
    if entry is not ZERO:
        return None
    step = begin.settled(step)
    k = algebra.sym(loop.symbol)
    for following in _divisors(step):
        for weight in _before(loop, following, known):
            engine = Fractions(known)
            try:
                term = _term(engine, fn("sub", fn("mul", following, step), fn("mul", weight, mine)))
                kept = engine.unchanged(step, mine, following)
            except OverflowError:
                continue
            if term is None or mine in set(nodes(term)) or not kept:
                continue
            number = Symbol("~iteration", "fresh", 0)

            def whole(at: Index, term: Expr = term, number: Symbol = number) -> Expr:
                return reduction("sum", [Range(number, loop.count(at))], loop.at(term, algebra.sym(number)))

            def form(at: Index, weight: Expr = weight) -> Expr:
                return divided(whole(at), replaced(weight, {loop.symbol: at}))

            if vanishes_with(whole(k), weight):
                return form
    return None


def _divisors(step: Expr) -> Iterator[Expr]:
    """What the expression divides by."""
    for node in nodes(step):
        if isinstance(node, Fn) and node.name in ("div", "reciprocal"):
            by = guarded(node.args[-1])
            yield node.args[-1] if by is None else by


def _before(loop: Iterations, following: Expr, known: Known) -> Iterator[Expr]:
    """What may be the divisor at the head of the iteration: a part of it, or it in the iteration before."""
    if isinstance(following, Fn) and following.name == "add":
        for part in following.args:
            then = _following(loop, part)
            if then is not None and known.same(then, following):
                yield part
    if isinstance(following, Whole):
        yield replaced(following, {loop.symbol: algebra.sub(algebra.sym(loop.symbol), loop.step)})


def _term(engine: Fractions, of: Expr) -> Expr | None:
    terms = engine.terms(of)
    found = engine.cleared(terms)
    return engine.written(terms if found is None else found)


def telescoped(loop: Iterations, term: Expr, known: Known, begin: Known) -> tuple[Expr, Form] | None:
    """The terms of a plain sum, and a form that is 0 at first; the sum of `term` is the plain one plus that form."""
    term = begin.settled(term)
    quotients = list(dict.fromkeys(_quotients(loop, term)))
    for (p, by), (q, other) in combinations_with_replacement(quotients, 2):
        begun = all(_is_empty(replaced(each, {loop.symbol: loop.start})) for each in (p, q))
        if by is not other or not begun:
            continue
        nexts = [found for each in (p, q, by) if (found := _following(loop, each)) is not None]
        if len(nexts) < 3:
            continue
        now, after = divided(fn("mul", p, q), by), divided(fn("mul", *nexts[:2]), nexts[2])
        for sign in (1, -1):
            change = fn("mul", sign, fn("sub", after, now))
            try:
                plain = _term(Fractions(known), fn("add", term, change))
            except OverflowError:
                continue
            if plain is not None and not any(map(loop.sums, nodes(plain))):
                return plain, lambda at, s=sign, n=now: fn("mul", -s, replaced(n, {loop.symbol: at}))
    return None


def _quotients(loop: Iterations, of: Expr) -> Iterator[tuple[Reduce, Expr]]:
    """(P, S) of the tiles P / S at the head of the iteration."""
    for node in nodes(of):
        if isinstance(node, Fn) and node.name == "div":
            top, by = node.args[0], guarded(node.args[1])
            if by is not None and isinstance(top, Reduce) and top.op == "sum" and loop.sums(top):
                yield top, by


def _following(loop: Iterations, of: Expr) -> Expr | None:
    """A sum over the iterations, in the next one: it, and what that adds."""
    following = algebra.add(algebra.sym(loop.symbol), loop.step)
    match of:
        case Whole():
            return replaced(of, {loop.symbol: following})
        case Reduce(op="sum", variable=variable, high=high, body=body):
            then = replaced(of, {loop.symbol: following})
            if not isinstance(then, Reduce) or then.body is not body or then.low is not algebra.const(0):
                return None
            more = algebra.sub(then.high, high)
            if not isinstance(more, Const) or not 1 <= more.value <= _MORE:
                return None
            number = Symbol("~added", "fresh", 0)
            at = algebra.add(high, algebra.sym(number))
            return plus(of, reduction("sum", [Range(number, more)], replaced(body, {variable: at})))
        case _:
            return None


def _is_empty(of: Expr) -> bool:
    return isinstance(of, Reduce) and of.low is algebra.const(0) and of.high is algebra.const(0)
