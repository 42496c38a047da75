"""Parts of expressions as unknown numbers: what is equal whatever they are is equal."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field

from argus.core import algebra
from argus.core.index import Symbol
from argus.core.proof.values.held.terms import mapped, renumbered, replaced
from argus.core.values.expr import Choose, Compare, Element, Expr, choose, compare, element, expr
from argus.core.values.rewriting import free_symbols


@define(eq=False)
class Parts:
    """Puts an unknown number in place of each part for which `is_one` holds: one for equal parts.

    name: begins the names of these numbers, apart from those of others. Two parts that differ in the names of variables
    are one function of these variables. tests: whether tests of integers are unknown, too: whether a number is above 0.
    """

    name: str
    is_one: Callable[[Expr], bool] = lambda _: False
    tests: bool = False
    _names: dict[Expr, str] = field(factory=dict[Expr, str], init=False)
    _done: dict[Expr, Expr] = field(factory=dict[Expr, Expr], init=False)

    def of(self, root: Expr) -> Expr:
        """The expression with its outermost such parts replaced."""
        if root not in self._done:
            self._done[root] = self._of(root)
        return self._done[root]

    def _of(self, root: Expr) -> Expr:
        if self.is_one(root):
            return self.number(root)
        if self.tests and isinstance(root, Choose) and not isinstance(root.test, Compare):
            test = compare("<", expr(0), self.number(choose(root.test, expr(1), expr(0))))
            return choose(test, self.of(root.then), self.of(root.other))
        return mapped(root, self.of, lambda index: index, lambda cond: cond)

    def number(self, part: Expr) -> Element:
        """The unknown number in place of a part."""
        bound = sorted((each for each in free_symbols(part) if each.kind == "fresh"), key=_depth)
        places = {each: algebra.sym(Symbol(f"~place {n}", "fresh", 0)) for n, each in enumerate(bound)}
        form = renumbered(replaced(part, places))
        name = self._names.setdefault(form, f"~{self.name} {len(self._names)}")
        return element(name, *map(algebra.sym, bound))


def _depth(symbol: Symbol) -> tuple[int, str]:
    return len(symbol.name), symbol.name
