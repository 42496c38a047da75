"""Parts of a value for every value of a variable that a reduction binds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from attrs import evolve

from argus.core import algebra
from argus.core.algebra.integers import linear_terms
from argus.core.index import And, Cmp, Cond, Const, Index, Sym, Symbol
from argus.core.proof.values.named_parts import Binder, Part, Parts
from argus.core.values.expr import ReduceOp
from argus.core.values.places import limit
from argus.core.walk import substitute, symbols


def bound(part: Part, binder: Binder, op: ReduceOp) -> Part:
    """The part for every value of a variable; of a term that does not depend on it, as often as there are values."""
    one = _of_one_value(part, binder)
    if one is not None:
        return one
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


def _of_one_value(part: Part, binder: Binder) -> Part | None:
    """The part, if a condition leaves one value of the variable: there, where that is in the range; else None."""
    conds = (*part.guards, binder.where)
    for cond in conds:
        own = _solved(cond, binder.variable)
        if own is None:
            continue
        at = {binder.variable: own}
        tests = (algebra.le(binder.low, own), algebra.lt(own, binder.high))
        binders = tuple(
            Binder(each.variable, substitute(each.low, at), substitute(each.high, at), substitute(each.where, at))
            for each in part.binders
        )
        times = None if part.times is None else substitute(part.times, at)
        here = evolve(part, value=substitute(part.value, at), binders=binders, guards=(), times=times)
        return here.under((*tests, *(substitute(each, at) for each in conds)))
    return None


def _solved(cond: Cond, variable: Symbol) -> Index | None:
    """The one value of the variable for which an equation holds; None for other conditions."""
    if not isinstance(cond, Cmp) or cond.op != "==":
        return None
    terms, constant = linear_terms(algebra.sub(cond.left, cond.right))
    own = [factor for atom, factor in terms if _is(atom, variable)]
    rest = algebra.linear([term for term in terms if not _is(term[0], variable)], constant)
    if own not in ([1], [-1]) or variable in symbols(rest):
        return None
    return algebra.mul(rest, -own[0])


def _is(atom: Index, variable: Symbol) -> bool:
    return isinstance(atom, Sym) and atom.symbol == variable


def _of_each(part: Part, binder: Binder, op: ReduceOp) -> Part:
    """The part for every value of a variable, if its tags depend on that; else it is there if any value has it.

    A sum of no element is 0, of which no claim about one element says anything; a collection of several must be there.
    """
    part = evolve(part, value=_within(part.value, binder))
    if _names(part, binder):
        return evolve(part, binders=(*part.binders, binder))
    own = [cond for cond in (*part.guards, binder.where) if binder.variable in symbols(cond)]
    rest = evolve(part, guards=tuple(cond for cond in part.guards if cond not in own))
    there = () if op == "sum" and not part.collected else _somewhere(own, binder)
    if there is not None:
        return rest.under(there)
    return evolve(rest, times=None) if op == "sum" else rest.under((algebra.FALSE,))


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


def _somewhere(conds: Sequence[Cond], binder: Binder) -> tuple[Cond, ...] | None:
    """Conditions under which some value of a variable meets all of these; None where one is no bound of it."""
    lows, highs, others = [binder.low], [binder.high], list[Cond]()
    for cond in (part for each in conds for part in (each.parts if isinstance(each, And) else (each,))):
        match limit(cond, binder.variable):
            case (True, end):
                highs.append(end)
            case (_, end):
                lows.append(end)
            case None if binder.variable in symbols(cond):
                return None
            case None:
                others.append(cond)
    return (*(algebra.lt(low, high) for low, high in product(lows, highs)), *others)


def _within(value: Index, binder: Binder) -> Index:
    """The expression, simplified by the variable's range."""
    low, high = binder.low, binder.high
    if not isinstance(low, Const) or not isinstance(high, Const) or binder.variable not in symbols(value):
        return value
    ranged = Symbol(binder.variable.name, "fresh", low.value, high.value - 1)
    tight = substitute(value, {binder.variable: algebra.sym(ranged)})
    return substitute(tight, {ranged: algebra.sym(binder.variable)})
