"""Nested reductions of one operation over ranges that do not depend on each other: the longest strides are outside.

A sum over lanes of sums over steps is the sum over steps of those over lanes, whose ranges adjoin. Extrema over
variables of different coordinates are in the order of these.
"""

from __future__ import annotations

from functools import cmp_to_key

from argus.core import algebra
from argus.core.index import Index, Symbol
from argus.core.values.ends import at_most
from argus.core.values.expr import Expr, Reduce, reduce_
from argus.core.values.rewriting import elements
from argus.core.walk import substitute, symbols


def ordered(of: Reduce) -> Reduce:
    """The same with its loops in the order of their strides, or of the coordinates that name their variables.

    All conditions are inside. Itself if that is their order.
    """
    nest = _nest(of)
    if len(nest) == 1:
        return of
    variables, inner = [each.variable for each in nest], nest[-1].body
    strides = _strides(variables, inner)
    if strides is not None:
        found = sorted(nest, key=cmp_to_key(lambda a, b: _compared(strides[a.variable], strides[b.variable])))
    elif of.op in ("max", "min"):
        places = _first_places(variables, inner)
        found = sorted(nest, key=lambda each: places[each.variable])
    else:
        return of
    if found == nest:
        return of
    body: Expr = nest[-1].body
    where = algebra.all_of(each.where for each in nest)
    for each in reversed(found):
        body = reduce_(each.op, each.variable, each.low, each.high, body, where)
        where = algebra.TRUE
    assert isinstance(body, Reduce)
    return body


def _nest(of: Reduce) -> list[Reduce]:
    """The loops, from the outermost, as long as the ranges are independent."""
    found, bound = [of], {of.variable}
    while isinstance(inner := found[-1].body, Reduce) and inner.op == of.op:
        if inner.variable in bound or not bound.isdisjoint(symbols(inner.low, inner.high)):
            break
        found.append(inner)
        bound.add(inner.variable)
    return found


def _strides(variables: list[Symbol], body: Expr) -> dict[Symbol, Index] | None:
    """The factor of each variable in the first coordinate that names all of them; 0 for one that it does not name."""
    places = [(each.tensor, axis, at) for each in elements(body) for axis, at in enumerate(each.at)]
    for _, _, at in sorted(places, key=lambda place: place[:2]):
        named = [each for each in variables if each in symbols(at)]
        if len(named) < 2:
            continue
        factors = {each: _factor(at, each) for each in variables}
        if not any(symbols(each) & set(variables) for each in factors.values()):
            return factors
    return None


def _first_places(variables: list[Symbol], body: Expr) -> dict[Symbol, tuple[str, int]]:
    """The first coordinate, by tensor and axis, that names each variable; the first of all for one that none names."""
    found: dict[Symbol, tuple[str, int]] = {}
    found |= dict.fromkeys(variables, ("", 0))
    places = ((each.tensor, axis, at) for each in elements(body) for axis, at in enumerate(each.at))
    for tensor, axis, at in sorted(places, key=lambda place: place[:2], reverse=True):
        found |= dict.fromkeys(symbols(at) & found.keys(), (tensor, axis))
    return found


def _factor(index: Index, variable: Symbol) -> Index:
    zero, one = (substitute(index, {variable: algebra.const(n)}) for n in (0, 1))
    return algebra.sub(one, zero)


def _compared(a: Index, b: Index) -> int:
    """-1 where the stride a is longer: that of constants by their absolute values."""
    a, b = (algebra.neg(each) if at_most(each, 0) else each for each in (a, b))
    return 0 if a is b else -1 if at_most(b, a) else 1 if at_most(a, b) else 0
