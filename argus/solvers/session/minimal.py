"""Lexicographically least models: minimises one expression after another by bisection over satisfiability checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from argus.core.algebra import eq, le
from argus.core.index import Cond, Coord, Held, Index, Read
from argus.core.query import Answer, GaveUp, Sat, Unsat
from argus.core.walk import evaluate, mentions, symbols
from argus.solvers.base import definedness

Check = Callable[[Sequence[Cond]], Answer]
"""Whether all conditions are satisfiable together."""


def minimal(check: Check, assertions: Sequence[Cond], order: Sequence[Index]) -> Answer:
    """A model that minimises the first expression, then the second among the remaining models, and so on.

    An expression without a known lower bound is not minimised below zero; one that mentions an array element, or
    a symbol that the assertions do not mention, is skipped. Where the solver gives up on a step, the best value found
    so far is used. The expressions must be defined: Unsat and GaveUp refer to the assertions together with the
    definedness of the expressions.
    """
    known = symbols(*assertions)
    usable = [each for each in order if symbols(each) <= known and not mentions(each, (Read, Held, Coord))]
    fixed = [*assertions, *definedness(usable)]
    best = check(fixed)
    if not isinstance(best, Sat):
        return best
    for expression in usable:
        best = _least(check, fixed, expression, best)
        fixed.append(eq(expression, _value(expression, best)))
    return best


def _least(check: Check, fixed: Sequence[Cond], expression: Index, best: Sat) -> Sat:
    """Ask for anything less, which is most often refused; else gallop up from the lower bound, then bisect.

    The cost grows with the least value, not with the one in `best`: so does the difficulty of a query, and where the
    solver gives up on the first one, smaller values are asked for all the same.
    """
    low = expression.range[0]
    low = min(0, _value(expression, best)) if low is None else low
    bound = _value(expression, best) - 1
    step = given_up = 0
    while low < (found := _value(expression, best)):
        answer = check([*fixed, le(expression, bound)])
        match answer:
            case Sat() if bound == found - 1 and step == 0:
                best = answer
            case Sat():
                best, step = answer, (_value(expression, answer) - low) // 2
            case Unsat():
                low, step = bound + 1, 2 * step + 1
            case GaveUp():
                given_up += 1
                if given_up > 1 or bound == low:
                    return best
        bound = min(low + step, _value(expression, best) - 1)
    return best


def _value(expression: Index, answer: Sat) -> int:
    return cast(int, evaluate(expression, answer.model))
