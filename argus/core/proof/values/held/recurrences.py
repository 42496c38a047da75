"""Shapes of recurrences: what one iteration does with the tile that it found."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from argus.core.proof.values.held.terms import plus
from argus.core.values.expr import Choose, Compare, Element, Expr, Fn, Test, choose, expr, fn
from argus.core.values.rewriting import nodes

ZERO, ONE = expr(0), expr(1)


@frozen
class Linear:
    """factor * tile + rest, neither of which mentions the tile."""

    factor: Expr
    rest: Expr


def times(a: Expr, b: Expr) -> Expr:
    """a * b, simplified where one is 0 or 1."""
    if a is ZERO or b is ZERO:
        return ZERO
    return b if a is ONE else a if b is ONE else fn("mul", a, b)


def linear(of: Expr, tile: Element) -> Linear | None:
    """The expression as a linear one of the tile; None if it is not written as one."""
    if of is tile:
        return Linear(ONE, ZERO)
    if tile not in set(nodes(of)):
        return Linear(ZERO, of)
    match of:
        case Fn(name="add" | "sub" | "neg" | "mul" | "div" as name, args=args):
            found = [linear(each, tile) for each in args]
            known = [each for each in found if each is not None]
            return _combined(name, known) if len(known) == len(found) else None
        case Choose(test=test, then=then, other=other):
            if isinstance(test, Compare) and tile in {*nodes(test.left), *nodes(test.right)}:
                return None
            one, two = linear(then, tile), linear(other, tile)
            if one is None or two is None:
                return None
            return Linear(_choice(test, one.factor, two.factor), _choice(test, one.rest, two.rest))
        case _:
            return None


def _choice(test: Test, then: Expr, other: Expr) -> Expr:
    return then if then is other else choose(test, then, other)


def _combined(name: str, args: list[Linear]) -> Linear | None:
    match name, args:
        case "add", [a, b]:
            return Linear(plus(a.factor, b.factor), plus(a.rest, b.rest))
        case "sub", [a, b]:
            return _combined("add", [a, Linear(_negated(b.factor), _negated(b.rest))])
        case "neg", [a]:
            return Linear(_negated(a.factor), _negated(a.rest))
        case "mul", [a, b]:
            if b.factor is not ZERO:
                a, b = b, a
            return Linear(times(a.factor, b.rest), times(a.rest, b.rest)) if b.factor is ZERO else None
        case "div", [a, b]:
            if b.factor is not ZERO:
                return None
            return Linear(*(ZERO if each is ZERO else fn("div", each, b.rest) for each in (a.factor, a.rest)))
        case _:
            return None


def _negated(of: Expr) -> Expr:
    return of if of is ZERO else fn("neg", of)


def folded(op: str, of: Expr, tile: Element) -> Expr | None:
    """The term, if the expression is op(tile, term) and the term does not mention the tile."""
    found = list(operands(op, of))
    others = [each for each in found if each is not tile]
    if len(others) + 1 != len(found) or not others or any(tile in set(nodes(each)) for each in others):
        return None
    term = others[0]
    for each in others[1:]:
        term = fn(op, term, each)
    return term


def operands(op: str, of: Expr) -> Iterator[Expr]:
    """What a nested operation is of, in order."""
    if isinstance(of, Fn) and of.name == op:
        for each in of.args:
            yield from operands(op, each)
    else:
        yield of
