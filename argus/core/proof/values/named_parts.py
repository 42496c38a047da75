"""Parts of a value: elements with one tag, under conditions, for all values of bound variables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.index import Cond, Index, Symbol
from argus.core.proof.values.content import Names
from argus.core.values.expr import ReduceOp
from argus.core.walk import symbols

ONE = algebra.const(1)


@frozen
class Binder:
    """A bound variable in [low, high) where the condition holds."""

    variable: Symbol
    low: Index
    high: Index
    where: Cond


@frozen
class Part:
    """Elements with this tag, one for each value of the bound variables, `times` often, where all guards hold.

    beside: the symbols of all that they are multiplied by, their own included. tie: the condition for other names of
    the same products to decide the tag, by relations that the program asserts; None if none is asserted.
    """

    value: Index
    binders: tuple[Binder, ...] = ()
    guards: tuple[Cond, ...] = ()
    times: Index | None = ONE
    beside: frozenset[Symbol] = frozenset()
    tie: Cond | None = None

    @property
    def bound(self) -> frozenset[Symbol]:
        """The bound variables."""
        return frozenset(each.variable for each in self.binders)

    @property
    def collected(self) -> bool:
        """Whether it is more than one element."""
        return bool(self.binders) or self.times is not ONE

    def under(self, conds: Iterable[Cond]) -> Part:
        """The part where conditions hold too."""
        more = [cond for cond in conds if cond is not algebra.TRUE and cond not in self.guards]
        return evolve(self, guards=_ordered((*self.guards, *more))) if more else self


def common_context(one: Part, two: Part) -> tuple[Cond, ...]:
    """Where both parts are there: the ranges of their bound variables, and their guards."""
    ranges = (
        cond
        for each in dict.fromkeys((*one.binders, *two.binders))
        for cond in (
            algebra.le(each.low, algebra.sym(each.variable)),
            algebra.lt(algebra.sym(each.variable), each.high),
        )
    )
    return (*ranges, *one.guards, *two.guards)


Tags = Mapping[str, Names | str]
"""The tags of the elements of tensors by the tensors' names, over coordinates; or why they are not known."""
Parts = tuple[Part, ...]
Agree = Callable[[Part, Part], bool]
"""Whether the tags of two parts are equal, for all values of the bound variables."""


def known_tags(tags: Tags, tensor: str) -> Names:
    """The tags of a tensor's elements; none where they are not known."""
    found = tags.get(tensor, ())
    return () if isinstance(found, str) else found


def _ordered(conds: Iterable[Cond]) -> tuple[Cond, ...]:
    return tuple(sorted(dict.fromkeys(conds), key=lambda each: each.digest))


@frozen
class Closed:
    """A complete collection of parts under a name. given: conditions without which nothing depends on it."""

    name: str
    op: ReduceOp
    parts: Parts
    given: tuple[Cond, ...] = ()

    def where(self, test: Cond) -> Closed:
        """The collection in one case of a value."""
        return self if test in self.given else evolve(self, given=_ordered((*self.given, test)))

    def without(self, variable: Symbol) -> Closed:
        """The collection as if it were there for every number of a variable."""
        return evolve(self, given=tuple(cond for cond in self.given if variable not in symbols(cond)))


def distinct(collections: Iterable[Closed]) -> tuple[Closed, ...]:
    """Collections without those that are there anyway; of two opposite cases, one that is there in both."""
    cases: dict[Closed, list[frozenset[Cond]]] = {}
    for each in collections:
        known = cases.setdefault(evolve(each, given=()), [])
        _add_case(known, frozenset(each.given))
    return tuple(evolve(each, given=_ordered(case)) for each, known in cases.items() for case in known)


def _add_case(known: list[frozenset[Cond]], case: frozenset[Cond]) -> None:
    if any(each <= case for each in known):
        return
    known[:] = [each for each in known if not case <= each]
    for cond in case:
        opposite = case - {cond} | {algebra.negate(cond)}
        if opposite in known:
            known.remove(opposite)
            _add_case(known, case - {cond})
            return
    known.append(case)
