"""One-edit changes of an expression, most of which change its value."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from argus.core.algebra import add, sub
from argus.core.values.expr import Choose as Choice
from argus.core.values.expr import (
    Compare,
    Element,
    Expr,
    Fn,
    Number,
    Reduce,
    choose,
    compare,
    element,
    expr,
    fn,
    reduce_,
)
from property_tests.small.choosing import Choose
from property_tests.values.parts import Change, over


def _of(kind: type[Reduce], change: Callable[[Reduce], Expr | None]) -> Change:
    return lambda part: change(part) if isinstance(part, kind) else None


def _last(_: Choose) -> Change:
    return _of(Reduce, lambda of: over(of, of.low, sub(of.high, 1)))


def _first(_: Choose) -> Change:
    return _of(Reduce, lambda of: over(of, add(of.low, 1), of.high))


def _longer(_: Choose) -> Change:
    return _of(Reduce, lambda of: over(of, of.low, add(of.high, 1)))


def _another_fold(_: Choose) -> Change:
    return _of(
        Reduce,
        lambda of: reduce_("max" if of.op == "sum" else "sum", of.variable, of.low, of.high, of.body, of.where),
    )


def _operand(choose_: Choose) -> Change:
    """One operand alone: a factor, a summand, a divisor or a rescale that is missing."""
    kept = choose_((0, 1))
    return lambda part: part.args[kept] if isinstance(part, Fn) and len(part.args) == 2 else None


def _sign(_: Choose) -> Change:
    def change(part: Expr) -> Expr | None:
        match part:
            case Fn(name="add", args=(a, b)):
                return a - b
            case Fn(name="sub", args=(a, b)):
                return a + b
            case Fn(name="exp" | "exp2" as name, args=(a,)):
                return fn(name, -a)
            case _:
                return None

    return change


_PAIRS = (("exp", "exp2"), ("log", "log2"), ("max", "min"), ("mul", "div"), ("sqrt", "rsqrt"), ("relu", "abs"))
_OTHER = {**dict(_PAIRS), **{b: a for a, b in _PAIRS}, "tanh": "sigmoid"}


def _function(_: Choose) -> Change:
    return lambda part: fn(_OTHER[part.name], *part.args) if isinstance(part, Fn) and part.name in _OTHER else None


def _number(choose_: Choose) -> Change:
    change = choose_(("add", "mul"))
    return lambda part: (
        expr(part.value + 1 if change == "add" else part.value * 2) if isinstance(part, Number) else None
    )


def _neighbour(_: Choose) -> Change:
    def change(part: Expr) -> Expr | None:
        return (
            element(part.tensor, *part.at[:-1], add(part.at[-1], 1)) if isinstance(part, Element) and part.at else None
        )

    return change


def _axes(_: Choose) -> Change:
    def change(part: Expr) -> Expr | None:
        if not isinstance(part, Element) or len(part.at) != 2 or part.at[0] is part.at[1]:
            return None
        return element(part.tensor, *part.at[::-1])

    return change


def _branches(_: Choose) -> Change:
    return lambda part: choose(part.test, part.other, part.then) if isinstance(part, Choice) else None


def _test(_: Choose) -> Change:
    def change(part: Expr) -> Expr | None:
        if not isinstance(part, Choice) or not isinstance(part.test, Compare):
            return None
        return choose(compare(part.test.op, part.test.left, part.test.right + 1), part.then, part.other)

    return change


EDITS: Mapping[str, Callable[[Choose], Change]] = {
    "without the last element": _last,
    "without the first element": _first,
    "an element more": _longer,
    "another reduction": _another_fold,
    "one operand alone": _operand,
    "another sign": _sign,
    "another function": _function,
    "another number": _number,
    "the next element": _neighbour,
    "axes exchanged": _axes,
    "branches exchanged": _branches,
    "another test": _test,
}
