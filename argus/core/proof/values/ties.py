"""Names that others decide, by relations that the program asserts, such as a scale's block of k by k.

A set of such numbers needs no claim of its own: where elements are multiplied, it is asked that the relation holds
between their tags, so what the claims say of the deciding names says what is multiplied by them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from math import prod

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.index import And, Cond, Index, Symbol
from argus.core.ir import Relation
from argus.core.proof.values.named_parts import Binder, Part, Parts
from argus.core.walk import substitute, symbols

_MOST = 256
Holds = Callable[[Sequence[Cond], Cond], bool]
"""Whether a goal follows from conditions."""


@frozen
class Tie:
    """A relation between components that leaves one number for a name, given those of the other names."""

    name: str
    others: frozenset[str]
    cond: Cond
    components: tuple[tuple[Symbol, str], ...]


def ties(claims: Iterable[Relation], holds: Holds) -> tuple[Tie, ...]:
    """The names that relations decide; those with an earlier iteration's components are none between names."""
    found: list[Tie] = []
    for claim in claims:
        if any(of.back for _, of in claim.names):
            continue
        names = {symbol: of.name for symbol, of in claim.names}
        for name in dict.fromkeys(names.values()):
            tie = _tie(claim.cond, names, name)
            if tie is not None and _decides(tie, holds):
                found.append(tie)
    return tuple(found)


def _tie(cond: Cond, names: Mapping[Symbol, str], name: str) -> Tie | None:
    """What a relation says of a name; None if it does not relate it to others."""
    mine = {symbol for symbol, other in names.items() if other == name}
    conds = [part for part in (cond.parts if isinstance(cond, And) else (cond,)) if symbols(part) & mine]
    named = symbols(*conds)
    components = tuple((symbol, other) for symbol, other in names.items() if symbol in named)
    others = frozenset(other for _, other in components if other != name)
    return Tie(name, others, algebra.all_of(conds), components) if others else None


def _decides(tie: Tie, holds: Holds) -> bool:
    """Whether two numbers that meet the relation with the same others are equal."""
    one, two = (algebra.sym(Symbol(f"{tie.name}{prime}", "fresh")) for prime in ("", "'"))
    known: dict[str, Index] = {other: algebra.sym(Symbol(other, "fresh")) for other in tie.others}
    return holds([_of(tie, {**known, tie.name: each}) for each in (one, two)], algebra.eq(one, two))


def _of(tie: Tie, values: Mapping[str, Index]) -> Cond:
    return substitute(tie.cond, {symbol: values[name] for symbol, name in tie.components})


def tied(parts: Parts, name: str, among: Mapping[str, Parts], known: Sequence[Tie]) -> Parts:
    """Parts of a name that one factor alone carries: with the condition that all relations that decide it hold.

    among: all names of the product.
    """
    asked = [tie for tie in known if tie.name == name and tie.others <= among.keys()]
    many = max((prod(len(among[other]) for other in tie.others) for tie in asked), default=0)
    if not asked or many * len(parts) > _MOST:
        return parts
    return tuple(evolve(part, tie=_both(part.tie, [_goal(tie, part, among) for tie in asked])) for part in parts)


def _both(known: Cond | None, more: Sequence[Cond]) -> Cond:
    return algebra.all_of(more if known is None else (known, *more))


def _goal(tie: Tie, part: Part, among: Mapping[str, Parts]) -> Cond:
    names = sorted(tie.others)
    goals: list[Cond] = []
    for others in product(*(among[name] for name in names)):
        values = {tie.name: part.value, **{name: other.value for name, other in zip(names, others, strict=True)}}
        given = [cond for each in (part, *others) for cond in (*each.guards, *map(_range, each.binders))]
        goals.append(algebra.implies(algebra.all_of(given), _of(tie, values)))
    return algebra.all_of(goals)


def for_each(parts: Parts, binder: Binder) -> Parts:
    """Parts whose relations are to hold for every value of a variable."""
    return tuple(
        part
        if part.tie is None or binder.variable not in symbols(part.tie)
        else evolve(part, tie=algebra.implies(_range(binder), part.tie))
        for part in parts
    )


def joined(one: Part, two: Part) -> Cond | None:
    """The condition of two parts with equal tags; the relation of one says what both belong to."""
    return one.tie if two.tie is None else _both(one.tie, [two.tie])


def _range(binder: Binder) -> Cond:
    variable = algebra.sym(binder.variable)
    return algebra.all_of((algebra.le(binder.low, variable), algebra.lt(variable, binder.high), binder.where))
