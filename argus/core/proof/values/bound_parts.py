"""Parts of a value for every value of a variable that a reduction binds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from attrs import evolve

from argus.core import algebra
from argus.core.index import Cond, Const, Index, Symbol
from argus.core.proof.values.named_parts import Binder, Part, Parts
from argus.core.values.expr import ReduceOp
from argus.core.values.places import limit
from argus.core.walk import substitute, symbols


def bound(part: Part, binder: Binder, op: ReduceOp) -> Part:
    """The part for every value of a variable; of a term that does not depend on it, as often as there are values."""
    here = _of_each(part, binder, op)
    if here.binders != part.binders or binder.variable in part.beside or op in ("max", "min"):
        return here
    tests = [cond for cond in (*part.guards, binder.where) if binder.variable in symbols(cond)]
    if not tests:
        length = algebra.sub(binder.high, binder.low)
        return evolve(part, times=None if part.times is None else algebra.mul(part.times, length))
    first = algebra.add(binder.low, 1)
    if all(limit(cond, binder.variable) == (True, first) for cond in tests):
        return here
    return evolve(here, times=None)


def _of_each(part: Part, binder: Binder, op: ReduceOp) -> Part:
    """The part for every value of a variable, if its tags depend on that; else it is there if any value has it.

    A sum of no element is 0, of which no claim about one element says anything.
    """
    part = evolve(part, value=_within(part.value, binder))
    if _names(part, binder):
        return evolve(part, binders=(*part.binders, binder))
    own = [cond for cond in (*part.guards, binder.where) if binder.variable in symbols(cond)]
    rest = evolve(part, guards=tuple(cond for cond in part.guards if cond not in own))
    return rest if op == "sum" else rest.under(_somewhere(own, binder))


def complete_for_each(parts: Parts, binder: Binder) -> Parts:
    """A complete collection for every value of a variable: there at all where all of its parts are.

    A part that only some values have leaves the others incomplete: how often it is there is not known.
    """
    variables = frozenset[Symbol]().union(*(each.bound for each in parts))
    own = [
        {cond for cond in part.guards if binder.variable in (named := symbols(cond)) and variables.isdisjoint(named)}
        for part in parts
    ]
    shared = set[Cond]().union(*own).intersection(*own)
    done: list[Part] = []
    for each in parts:
        guards = tuple(cond for cond in each.guards if cond not in shared)
        part = evolve(each, value=_within(each.value, binder), guards=guards)
        if _names(part, binder):
            part = evolve(part, binders=(*part.binders, binder))
        elif binder.variable in symbols(*guards):
            left = tuple(cond for cond in guards if binder.variable not in symbols(cond))
            part = evolve(part, guards=left, times=None)
        done.append(part)
    return tuple(done)


def _names(part: Part, binder: Binder) -> bool:
    """Whether its tags depend on a variable."""
    ends = (node for each in part.binders for node in (each.low, each.high, each.where))
    return binder.variable in symbols(part.value, *ends)


def varies(part: Part, binder: Binder) -> bool:
    """Whether its tags, or which of its elements are there, depend on a variable."""
    return _names(part, binder) or (part.collected and binder.variable in symbols(*part.guards))


def _somewhere(conds: Sequence[Cond], binder: Binder) -> tuple[Cond, ...]:
    """Conditions under which some value of a variable meets all of these; false where one is no bound of it."""
    lows, highs = [binder.low], [binder.high]
    for cond in conds:
        match limit(cond, binder.variable):
            case (True, end):
                highs.append(end)
            case (_, end):
                lows.append(end)
            case None:
                return (algebra.FALSE,)
    return tuple(algebra.lt(low, high) for low, high in product(lows, highs))


def _within(value: Index, binder: Binder) -> Index:
    """The expression, simplified by the variable's range."""
    low, high = binder.low, binder.high
    if not isinstance(low, Const) or not isinstance(high, Const) or binder.variable not in symbols(value):
        return value
    ranged = Symbol(binder.variable.name, "fresh", low.value, high.value - 1)
    tight = substitute(value, {binder.variable: algebra.sym(ranged)})
    return substitute(tight, {ranged: algebra.sym(binder.variable)})
