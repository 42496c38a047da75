"""Lowers conditions of many queries into one list of steps, so that parts that queries share are lowered once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from attrs import define, field, frozen

from argus.core.index import Cond, Held, Node, Read, Sym, Symbol
from argus.core.walk import children, topological
from argus.solvers.base import definedness
from argus.solvers.smtlib.form import Step, Variable, operands
from argus.solvers.smtlib.lowering import lowered
from argus.solvers.smtlib.writer import Writer


@frozen(eq=False)
class Element:
    """An array element: the steps of its indices, and the variable that stands for it."""

    sort: str
    array: str
    at: tuple[int, ...]
    value: int


@frozen(eq=False)
class Asserted:
    """A lowered condition. steps: all that must hold, with what defines its quotients and bounds its symbols."""

    steps: tuple[int, ...]
    symbols: tuple[tuple[Symbol, int], ...]
    elements: tuple[Element, ...]


@define(eq=False)
class SharedLowering:
    """The same first-order form as `lower` gives a query, in pieces: one for each condition."""

    _writer: Writer = field(factory=Writer, init=False)
    _place: dict[Node, int] = field(factory=dict[Node, int], init=False)
    _defining: dict[int, tuple[int, ...]] = field(factory=dict[int, "tuple[int, ...]"], init=False)
    """What must hold of a variable, and of those that were written with it: nodes share quotients and bits."""
    _elements: dict[tuple[str, str, tuple[int, ...]], Element] = field(
        factory=dict[tuple[str, str, tuple[int, ...]], Element], init=False
    )
    _known: dict[Cond, Asserted] = field(factory=dict[Cond, Asserted], init=False)

    @property
    def steps(self) -> Sequence[Step]:
        """All steps so far; those of later conditions are added at the end."""
        return self._writer.steps

    def of(self, condition: Cond) -> Asserted:
        """A condition with all that makes it defined. Raises InexpressibleError."""
        known = self._known.get(condition)
        if known is None:
            known = self._known[condition] = self._lowered(condition)
        return known

    def agreements(self, elements: Sequence[Element]) -> Iterator[int]:
        """That elements of one array are equal where their indices are, for each two of them."""
        for one, two in combinations(dict.fromkeys(elements), 2):
            if (one.sort, one.array, len(one.at)) == (two.sort, two.array, len(two.at)):
                yield self._writer.agreement(one.at, one.value, two.at, two.value)

    def _lowered(self, condition: Cond) -> Asserted:
        roots = (*definedness([condition]), condition)
        nodes = topological(roots)
        for node in nodes:
            if node not in self._place:
                self._place[node] = self._step(node, [self._place[child] for child in children(node)])
        return Asserted(
            (*self._defined([self._place[node] for node in nodes]), *(self._place[root] for root in roots)),
            tuple((node.symbol, self._place[node]) for node in nodes if isinstance(node, Sym)),
            tuple(self._element(node) for node in nodes if isinstance(node, Read | Held)),
        )

    def _defined(self, steps: Sequence[int]) -> Iterator[int]:
        """What defines the variables that the steps refer to, and those of that."""
        seen: set[int] = set()
        waiting = list(steps)
        while waiting:
            step = waiting.pop()
            if step not in seen:
                seen.add(step)
                defining = self._defining.get(step, ())
                yield from defining
                waiting += (*operands(self._writer.steps[step]), *defining)

    def _step(self, node: Node, parts: Sequence[int]) -> int:
        if isinstance(node, Read | Held):
            return self._element(node).value
        written, asserted = len(self._writer.steps), len(self._writer.asserted)
        made = lowered(self._writer, node, parts)
        new = tuple(self._writer.asserted[asserted:])
        for place, step in enumerate(self._writer.steps[written:], written) if new else ():
            if isinstance(step, Variable):
                self._defining[place] = new
        return made

    def _element(self, node: Read | Held) -> Element:
        sort, array = ("read", node.array) if isinstance(node, Read) else ("held", node.fragment)
        key = sort, array, tuple(self._place[child] for child in children(node))
        if key not in self._elements:
            self._elements[key] = Element(*key, self._writer.fresh())
        return self._elements[key]
