"""Tags that differ where values were combined: a fault once a claim about the result is violated."""

from __future__ import annotations

from collections.abc import Callable, Collection

from attrs import define, field, frozen

from argus.core.ir import Stmt
from argus.interp.values.sets import MISSING

_KEPT = 16


@frozen(eq=False)
class _Suspicion:
    components: tuple[int, int]
    report: Callable[[], None]


@define(eq=False)
class Suspicions:
    """The first statements' executions that combined elements with different components of a name."""

    _noted: dict[str, dict[Stmt, list[_Suspicion]]] = field(factory=dict[str, dict[Stmt, list[_Suspicion]]])

    def note(self, name: str, stmt: Stmt, components: tuple[int, int], report: Callable[[], None]) -> None:
        """Keep the report of a combination of two components, which may be harmless."""
        kept = self._noted.setdefault(name, {}).setdefault(stmt, [])
        if len(kept) < _KEPT:
            kept.append(_Suspicion(components, report))

    def explain(self, name: str, members: Collection[int]) -> None:
        """Report the combination that made a set which violates a claim of one integer."""
        every = [each for kept in self._noted.get(name, {}).values() for each in kept]
        fitting = [each for each in every if {c for c in each.components if c >= 0} <= set(members)]
        for each in (fitting or every)[:1]:
            each.report()

    def explain_absence(self, name: str) -> None:
        """Report the combination of values with and without a name."""
        every = [each for kept in self._noted.get(name, {}).values() for each in kept]
        for each in [each for each in every if MISSING in each.components][:1]:
            each.report()
