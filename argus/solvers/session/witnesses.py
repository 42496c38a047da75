"""Assignments that satisfied earlier queries, tried on new ones: they settle most that can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from weakref import WeakKeyDictionary

from attrs import define, field

from argus.core.index import Bin, Cond, Const, Coord, Held, Node, Read, Symbol
from argus.core.walk import evaluate, within
from argus.solvers.base import definedness

_MOST = 24
"""How many assignments are kept: each is tried on every question until one fits."""
_LONGEST_SHIFT = 64


@define(eq=False)
class Witness:
    """One assignment. A symbol that it does not mention has the number of its range that is nearest to zero."""

    model: dict[Symbol, int]
    _held: dict[Cond, bool] = field(factory=dict[Cond, bool], init=False)

    def satisfies(self, assertions: Sequence[Cond]) -> bool:
        """Whether all assertions are defined and hold; never of one that mentions what is no symbol."""
        return all(self._holds(each) for each in assertions)

    def _holds(self, condition: Cond) -> bool:
        if condition not in self._held:
            self._held[condition] = self._found(condition)
        return self._held[condition]

    def _found(self, condition: Cond) -> bool:
        domains = _domains(condition)
        if domains is None:
            return False
        values = _Completed(self.model)
        return all(bool(evaluate(each, values)) for each in (*domains, condition))


class _Completed(dict[Symbol, int]):
    def __missing__(self, symbol: Symbol) -> int:
        return nearest_to_zero(symbol)


def nearest_to_zero(symbol: Symbol) -> int:
    """The least number of a symbol's range in magnitude."""
    if symbol.low is not None and symbol.low > 0:
        return symbol.low
    return symbol.high if symbol.high is not None and symbol.high < 0 else 0


@define(eq=False)
class Witnesses:
    """The assignments that were of use last, the last one first."""

    _known: list[Witness] = field(factory=list[Witness], init=False)

    def add(self, model: Mapping[Symbol, int]) -> None:
        """Keep a model that has been checked."""
        self._known.insert(0, Witness(dict(model)))
        del self._known[_MOST:]

    def of(self, assertions: Sequence[Cond]) -> Witness | None:
        """One that satisfies all assertions. The order matters to the time alone: first what seldom holds."""
        for place, witness in enumerate(self._known):
            if witness.satisfies(assertions):
                self._known.insert(0, self._known.pop(place))
                return witness
        return None

    def latest(self, most: int) -> tuple[Witness, ...]:
        """So many of them."""
        return tuple(self._known[:most])


_DOMAINS: WeakKeyDictionary[Cond, tuple[Cond, ...] | None] = WeakKeyDictionary()
"""A pure function of conditions, which are interned; None where numbers for the symbols do not settle one."""


def _domains(condition: Cond) -> tuple[Cond, ...] | None:
    if condition not in _DOMAINS:
        numeric = not any(map(_unsettled, within(condition)))
        _DOMAINS[condition] = definedness([condition]) if numeric else None
    return _DOMAINS[condition]


def _unsettled(node: Node) -> bool:
    if isinstance(node, Bin) and node.op in ("<<", ">>"):
        return not isinstance(node.right, Const) or node.right.value > _LONGEST_SHIFT
    return isinstance(node, Read | Held | Coord)
