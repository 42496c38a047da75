"""Whether an expression is another one where a loop or a bound variable has one of a few numbers."""

from __future__ import annotations

from typing import Protocol

from argus.core import algebra
from argus.core.index import Cond, Index
from argus.core.proof.values.held.folds import NEUTRAL
from argus.core.proof.values.held.joined import joined_cond, zipped
from argus.core.proof.values.held.questions import Questions
from argus.core.proof.values.held.terms import all_symbols, replaced
from argus.core.values.expr import Choose, Compare, Expr, Reduce
from argus.core.values.rewriting import free_symbols, nodes

_FEW = range(4)


class Knowing(Protocol):
    """What holds where expressions are compared (`facts.Known`)."""

    questions: Questions

    def holds(self, goal: Cond) -> bool: ...

    def within(self, *more: Cond) -> Knowing: ...

    def simplified(self, root: Expr) -> Expr: ...


def agrees(known: Knowing, general: Expr, special: Expr) -> bool:
    """Whether `general` is `special` here, where a loop or a bound variable has one of a few numbers."""
    if general is special:
        return True
    if not known.questions.one():
        return False
    if isinstance(general, Reduce) and special is NEUTRAL[general.op]:
        return known.holds(algebra.le(general.high, general.low))
    own, theirs = free_symbols(general), free_symbols(special)  # a number in a symbol's place brings no other symbol
    for symbol in sorted(all_symbols(general), key=lambda each: each.name):
        if not isinstance(special, Choose) and not theirs <= own - {symbol}:
            continue
        for number in _FEW if symbol.kind == "loop" or symbol.name.startswith("~") else ():
            one, here = replaced(general, {symbol: algebra.const(number)}), algebra.eq(algebra.sym(symbol), number)
            if one is special:
                return known.holds(here)
            if any(isinstance(each, Choose) for each in nodes(one)) and known.holds(here):
                return known.simplified(one) is special  # without the tests that are decided there
    if _joined(known, general, special):
        return True
    if isinstance(special, Choose) and not isinstance(special.test, Compare):
        yes, no = known.within(special.test), known.within(algebra.negate(special.test))
        return agrees(yes, general, special.then) and agrees(no, general, special.other)
    return False


def _joined(known: Knowing, one: Expr, two: Expr) -> bool:
    """Whether two expressions of one shape have equal integers here."""

    def index(a: Index, b: Index) -> Index | None:
        return a if a is b or known.holds(algebra.eq(a, b)) else None

    return zipped(one, two, index, lambda a, b: joined_cond(a, b, index)) is not None
