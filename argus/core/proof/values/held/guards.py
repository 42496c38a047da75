"""Guarded divisors, a / where(S == 0, 1, S), and what is 0 wherever S is."""

from __future__ import annotations

from argus.core import algebra
from argus.core.index import Symbol
from argus.core.proof.values.held.terms import chosen, of_integers, replaced
from argus.core.values.expr import Choose, Expr, Fn, Number, Reduce, Whole, compare, expr, fn
from argus.core.values.numbers import at_least_zero

ZERO, ONE = expr(0), expr(1)


def divided(a: Expr, by: Expr) -> Expr:
    """a / by, where that is 0: a."""
    return fn("div", a, chosen(compare("==", by, 0), ONE, by))


def guarded(of: Expr) -> Expr | None:
    """S, of where(S == 0, 1, S) in its spellings."""
    if not isinstance(of, Choose) or of.then is not ONE:
        return None
    by = of.other
    own = (compare("==", by, 0), compare("==", 0, by))
    return by if of.test in own or of.test is of_integers(own[0]) else None


def vanishes_with(of: Expr, other: Expr) -> bool:
    """Whether `of` is 0 wherever `other`, which is at least 0, is."""
    if of is other or of is ZERO or (isinstance(other, Number) and other.value != 0):
        return True
    match of, other:
        case Reduce(op="sum"), Reduce(op="sum"):
            same = of.low is other.low and of.high is other.high and of.where is other.where
            conds = at_least_zero(other.body)
            if not same or conds is None or any(cond is not algebra.TRUE for cond in conds):
                return False
            here = algebra.sym(Symbol(f"~alike {other.variable.name}", "fresh", 0))
            mine, theirs = (replaced(each.body, {each.variable: here}) for each in (of, other))
            return vanishes_with(mine, theirs)
        case Reduce(op="sum", low=low, high=high), Whole(index=index):
            return low is algebra.const(0) and high is index
        case Choose(test=test, then=then, other=rest), Choose() if test is other.test and other.other is ZERO:
            return rest is ZERO and vanishes_with(then, other.then)
        case Choose(then=then, other=rest), _:
            return vanishes_with(then, other) and vanishes_with(rest, other)
        case Fn(name="mul", args=args), _:
            return any(vanishes_with(each, other) for each in args)
        case Fn(name="div", args=(a, _)), _:
            return vanishes_with(a, other)
        case Fn(name="add" | "sub" | "neg", args=args), _:
            return all(vanishes_with(each, other) for each in args)
        case _:
            return False
