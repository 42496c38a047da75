"""Models of earlier queries, tried on new queries: they decide most of the satisfiable ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast
from weakref import WeakKeyDictionary

from attrs import define, field

from argus.core.index import Bin, Cond, Const, Coord, Held, Node, Symbol
from argus.core.query import Elements, Sat
from argus.core.walk import IntArray, Value, evaluate, symbols, within
from argus.solvers.base import definedness

_MOST = 24
"""How many assignments to keep: a query tries each until one satisfies it."""
_LONGEST_SHIFT = 64


@define(eq=False)
class Witness:
    """One assignment; a symbol without a value in the model has the number of its range nearest to zero.

    elements: of arrays; all others are 0. at_upper_ends: such a symbol has the greatest number of its range, if any.
    """

    model: dict[Symbol, int]
    elements: Elements = field(factory=dict[tuple[str, tuple[int, ...]], int])
    at_upper_ends: bool = False
    _completed: dict[Symbol, int] = field(init=False)
    _held: dict[Cond, bool] = field(factory=dict[Cond, bool], init=False)
    _values: dict[Node, Value] = field(factory=dict[Node, Value], init=False)
    _raised: Witness | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._completed = _AtUpperEnds(self.model) if self.at_upper_ends else _Completed(self.model)

    def satisfies(self, assertions: Sequence[Cond]) -> bool:
        """Whether all assertions are defined and hold; False where one mentions what threads hold, or coordinates."""
        held = self._held
        for each in assertions:
            known = held.get(each)
            if known is None:
                known = held[each] = self._evaluate(each)
            if not known:
                return False
        return True

    def raised(self) -> Witness:
        """The assignment with the greatest number of its range for each other symbol, where that has one."""
        if self._raised is None:
            self._raised = Witness(self.model, self.elements, at_upper_ends=True)
        return self._raised

    def over(self, names: frozenset[Symbol]) -> Witness:
        """The assignment with values for all of these symbols."""
        return Witness({**self.model, **{each: self._completed[each] for each in names}}, self.elements)

    def answer(self, name: str) -> Sat:
        """The assignment as an answer. name: of what found it."""
        return Sat(name, self.model, self.elements)

    def _evaluate(self, condition: Cond) -> bool:
        domains = _domains(condition)
        if domains is None:
            return False
        arrays = cast("Mapping[str, IntArray]", _Arrays(self.elements))
        return all(bool(evaluate(each, self._completed, (), arrays, self._values)) for each in (*domains, condition))


class _Completed(dict[Symbol, int]):
    def __missing__(self, symbol: Symbol) -> int:
        return nearest_to_zero(symbol)


class _AtUpperEnds(dict[Symbol, int]):
    def __missing__(self, symbol: Symbol) -> int:
        return nearest_to_zero(symbol) if symbol.high is None else symbol.high


class _Arrays:
    """The arrays of a model by name."""

    def __init__(self, elements: Elements) -> None:
        self._elements = elements

    def __getitem__(self, name: str) -> _Array:
        return _Array({at: value for (array, at), value in self._elements.items() if array == name})


class _Array(dict[tuple[int, ...], int]):
    def __missing__(self, at: tuple[int, ...]) -> int:
        return 0


def nearest_to_zero(symbol: Symbol) -> int:
    """The number of least magnitude in a symbol's range."""
    if symbol.low is not None and symbol.low > 0:
        return symbol.low
    return symbol.high if symbol.high is not None and symbol.high < 0 else 0


@define(eq=False)
class Witnesses:
    """The most recently useful assignments, the latest first."""

    _known: list[Witness] = field(factory=list[Witness], init=False)

    def add(self, found: Witness) -> None:
        """Add a model that has been checked."""
        self._known.insert(0, found)
        del self._known[_MOST:]

    def of(self, assertions: Sequence[Cond]) -> Witness | None:
        """An assignment that satisfies all assertions, or None. For speed, put assertions that rarely hold first."""
        for place, witness in enumerate(self._known):
            if witness.satisfies(assertions):
                self._known.insert(0, self._known.pop(place))
                return witness
        over = symbols(*assertions)
        for witness in self._known:
            if not over <= witness.model.keys() and witness.raised().satisfies(assertions):
                found = witness.raised().over(over)
                self.add(found)
                return found
        return None

    def newest_of(self, assertions: Sequence[Cond]) -> Witness | None:
        """The newest assignment, if it satisfies all assertions."""
        return next((each for each in self.latest(1) if each.satisfies(assertions)), None)

    def latest(self, most: int) -> tuple[Witness, ...]:
        """At most this many assignments, the latest first."""
        return tuple(self._known[:most])


_DOMAINS: WeakKeyDictionary[Cond, tuple[Cond, ...] | None] = WeakKeyDictionary()
"""Definedness conditions by (interned) condition; None where values for the symbols do not determine its value."""


def _domains(condition: Cond) -> tuple[Cond, ...] | None:
    if condition not in _DOMAINS:
        numeric = not any(map(_undetermined, within(condition)))
        _DOMAINS[condition] = definedness([condition]) if numeric else None
    return _DOMAINS[condition]


def _undetermined(node: Node) -> bool:
    if isinstance(node, Bin) and node.op in ("<<", ">>"):
        return not isinstance(node.right, Const) or node.right.value > _LONGEST_SHIFT
    return isinstance(node, Held | Coord)
