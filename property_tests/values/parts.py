"""Parts of an expression: changed at one place, or everywhere."""

from __future__ import annotations

from collections.abc import Callable

from argus.core import algebra
from argus.core.index import Index, Symbol
from argus.core.values import rewriting
from argus.core.values.expr import Choose, Compare, Expr, Fn, Reduce, choose, compare, fn, reduce_

Change = Callable[[Expr], Expr | None]
"""What a part becomes; None where it does not apply."""


def rebuilt(of: Expr, change: Change) -> Expr:
    """The expression with the outermost parts for which `change` has an answer replaced."""
    found = change(of)
    if found is not None:
        return found
    match of:
        case Fn(name=name, args=args):
            return fn(name, *(rebuilt(each, change) for each in args))
        case Choose(test=test, then=then, other=other):
            new = test
            if isinstance(test, Compare):
                new = compare(test.op, rebuilt(test.left, change), rebuilt(test.right, change))
            return choose(new, rebuilt(then, change), rebuilt(other, change))
        case Reduce():
            return over(of, of.low, of.high, rebuilt(of.body, change))
        case _:
            return of


def everywhere(of: Expr, change: Change) -> Expr | None:
    """The expression with all parts changed for which there is an answer, innermost first; None if there are none."""
    done = False

    def inner(part: Expr) -> Expr:
        nonlocal done
        whole = rewriting.map_parts(part, inner, lambda index: index, lambda cond: cond)
        found = change(whole)
        done = done or found is not None
        return whole if found is None else found

    result = inner(of)
    return result if done else None


def changed(of: Expr, change: Change, place: int) -> Expr | None:
    """The expression with the change made at its `place`-th possible place, None if there are fewer."""
    left = place
    done = False

    def once(part: Expr) -> Expr | None:
        nonlocal left, done
        found = None if done else change(part)
        if found is None:
            return None
        left -= 1
        done = left < 0
        return found if done else None

    result = rebuilt(of, once)
    return result if done else None


def places(of: Expr, change: Change) -> int:
    """The number of places at which the change may be made."""
    found = 0

    def count(part: Expr) -> None:
        nonlocal found
        found += change(part) is not None

    rebuilt(of, count)
    return found


def over(of: Reduce, low: algebra.IndexLike, high: algebra.IndexLike, body: Expr | None = None) -> Reduce:
    """The reduction over another range, or of another body."""
    return reduce_(of.op, of.variable, low, high, of.body if body is None else body, of.where)


def body_at(of: Reduce, at: Index) -> Expr:
    """The body for the variable's value `at`, which may name the variable itself."""
    return rewriting.substitute(of.body, {of.variable: at})


def inner_variable(of: Expr, like: Symbol) -> Symbol:
    """A variable that occurs nowhere in the expression."""
    used = {each.name for each in rewriting.bound_variables(of) | rewriting.free_symbols(of)} | {like.name}
    return next(Symbol(f"{like.name}{n}", "fresh") for n in range(100) if f"{like.name}{n}" not in used)
