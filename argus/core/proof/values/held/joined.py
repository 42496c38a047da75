"""Expressions of one shape as one: integers in which they differ become one integer expression."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from argus.core import algebra
from argus.core.index import And, Cmp, Cond, Const, Index, Symbol
from argus.core.proof.values.held.terms import chosen, replaced
from argus.core.values.expr import (
    Choose,
    Compare,
    Element,
    Expr,
    Fn,
    Reduce,
    Test,
    Whole,
    compare,
    element,
    expr,
    fn,
    reduce_,
)


def zipped(
    one: Expr,
    two: Expr,
    on_index: Callable[[Index, Index], Index | None],
    on_cond: Callable[[Cond, Cond], Cond | None],
) -> Expr | None:
    """Two expressions of one shape with their integers joined; None if the shapes or the integers do not match."""
    if one is two:
        return one

    def inner(a: Expr, b: Expr) -> Expr | None:
        return zipped(a, b, on_index, on_cond)

    def joined_test(a: Test, b: Test) -> Test | None:
        if isinstance(a, Compare) and isinstance(b, Compare) and a.op == b.op:
            left, right = inner(a.left, b.left), inner(a.right, b.right)
            return None if left is None or right is None else compare(a.op, left, right)
        return None if isinstance(a, Compare) or isinstance(b, Compare) else on_cond(a, b)

    match one, two:
        case Whole(index=a), Whole(index=b):
            index = on_index(a, b)
            return None if index is None else expr(index)
        case Element(tensor=tensor, at=a), Element(tensor=other, at=b) if tensor == other and len(a) == len(b):
            places = [on_index(x, y) for x, y in zip(a, b, strict=True)]
            known = [place for place in places if place is not None]
            return element(tensor, *known) if len(known) == len(places) else None
        case Fn(name=name, args=a), Fn(name=other, args=b) if name == other and len(a) == len(b):
            args = [inner(x, y) for x, y in zip(a, b, strict=True)]
            return None if None in args else fn(name, *args)
        case Choose(test=s, then=a, other=b), Choose(test=t, then=c, other=d):
            test, then, rest = joined_test(s, t), inner(a, c), inner(b, d)
            return None if test is None or then is None or rest is None else chosen(test, then, rest)
        case Reduce(), Reduce() if (one.op, one.variable, one.low, one.high) == (
            two.op,
            two.variable,
            two.low,
            two.high,
        ):
            body, where = inner(one.body, two.body), on_cond(one.where, two.where)
            return (
                None if body is None or where is None else reduce_(one.op, one.variable, one.low, one.high, body, where)
            )
        case _:
            return None


def joined_cond(one: Cond, two: Cond, on_index: Callable[[Index, Index], Index | None]) -> Cond | None:
    """Two conditions of one form with their integers joined: each part with the first that it can be joined with."""
    if one is two:
        return one
    match one, two:
        case Cmp(op=op, left=a, right=b), Cmp(op=other, left=c, right=d) if op == other:
            found = on_index(algebra.sub(b, a), algebra.sub(d, c))
            return None if found is None else algebra.le(0, found) if op == "<=" else algebra.eq(0, found)
        case And(parts=some), And(parts=others) if len(some) == len(others):
            joined = [each for each in some if each in others]
            left = [each for each in others if each not in joined]
            for part in (each for each in some if each not in joined):
                pairs = ((other, joined_cond(part, other, on_index)) for other in left)
                found = next(((other, both) for other, both in pairs if both is not None), None)
                if found is None:
                    return None
                left.remove(found[0])
                joined.append(found[1])
            return algebra.all_of(joined)
        case _:
            return None


def of_numbers(values: Sequence[Expr], agent: Symbol, low: int) -> Expr | None:
    """The values for consecutive numbers of an agent as one expression, affine in the number; None if it is not."""
    if len(values) == 1:
        return values[0]
    offset = algebra.sub(algebra.sym(agent), low)

    def index(a: Index, b: Index) -> Index | None:
        apart = algebra.sub(b, a)
        return algebra.add(a, algebra.mul(offset, apart)) if isinstance(apart, Const) else None

    def cond(a: Cond, b: Cond) -> Cond | None:
        return joined_cond(a, b, index)

    found = zipped(values[0], values[1], index, cond)
    if found is None:
        return None
    again = (replaced(found, {agent: algebra.const(low + number)}) for number in range(len(values)))
    return found if all(a is b for a, b in zip(again, values, strict=True)) else None
